"""How evenly values and blocks lie on the servers."""

import pytest

from skymemory.bench.spread import run_spread_bench
from skymemory.sky.constellation import Constellation


@pytest.mark.parametrize("parity", [0, 2])
def test_values_and_blocks_lie_on_all_servers_alike(parity: int) -> None:
    sky = Constellation().replace(
        constellation={"planes": 3, "slots": 5}, cache={"servers": 12, "parity": parity, "centre": [2, 3]}
    )
    calls: list[tuple[int, int]] = []
    report = run_spread_bench(sky, stored=300, progress=lambda done, total: calls.append((done, total)))
    assert calls
    values, blocks = report["rows"]
    assert (values["what"], values["number"], blocks["what"], blocks["number"]) == ("values", 100_000, "blocks", 2_000)
    assert sum(values["bytes"]) == values["block_bytes"] * 100_000 * (1 + parity)
    assert sum(blocks["bytes"]) >= blocks["block_bytes"] * 2_000
    assert values["variation_percent"] < 5
    assert blocks["variation_percent"] < 5
    assert report["stored"]["said"] == report["stored"]["computed"]
    assert min(report["stored"]["said"]) > 0
