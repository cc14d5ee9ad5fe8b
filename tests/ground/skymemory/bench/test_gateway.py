"""redis-benchmark at the gateway and at redis-server."""

import os
import shutil

import pytest

from skymemory.bench.gateway import gateway_table, run_gateway_bench
from skymemory.sky.constellation import Constellation


def test_the_report_has_both() -> None:
    for program in ("redis-server", "redis-benchmark"):
        if shutil.which(program) is None:
            if os.environ.get("CI"):
                pytest.fail(f"CI leaves nothing out: {program} is not installed")
            pytest.skip(f"{program} is not installed")
    calls: list[tuple[int, int]] = []
    report = run_gateway_bench(
        Constellation(),
        value_bytes=(3, 1_000_000),
        loads=((2, 1), (2, 4)),
        scale=0.01,
        progress=lambda done, total: calls.append((done, total)),
    )
    rows = [(row["value_bytes"], row["pipeline"], row["command"]) for row in report["rows"]]
    assert rows == [(3, 1, "SET"), (3, 1, "GET"), (3, 4, "SET"), (3, 4, "GET"), (1_000_000, 1, "SET"), (1_000_000, 1, "GET")]
    assert all(row[name][unit] > 0 for row in report["rows"] for name in ("gateway", "redis") for unit in ("per_s", "p50_ms"))
    assert gateway_table(report).row_count == 6
    assert calls == [(1, 3), (2, 3), (3, 3)]
