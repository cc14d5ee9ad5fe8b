"""The same blocks over links of all kinds."""

import pytest
from rich.console import Console

from skymemory.bench.links import link_models, links_table, run_links_bench
from skymemory.sky.constellation import ConfigError, Constellation
from skymemory.sky.placement.torus import Direction
from skymemory.wire.address import Satellite

SMALL = Constellation().replace(constellation={"planes": 3, "slots": 5}, cache={"servers": 4, "centre": [2, 3]})
FIELDS = {
    *("links", "put_mb_s", "get_mb_s", "put_ratio", "get_ratio", "put_retries", "get_retries"),
    *("put_failures", "misses", "wrong"),
}
NAMES = [
    "off",
    "geometry",
    "geometry, jitter 200 us",
    "geometry, loss 0.1 %",
    "geometry, jitter 200 us, loss 0.1 %",
    "geometry, jitter 200 us, loss 0.1 %, one link cut",
    "geometry, jitter 200 us, loss 0.1 %, one link cut, uplink nearest",
]


def test_a_row_for_each_kind_of_links() -> None:
    calls: list[tuple[int, int]] = []
    report = run_links_bench(
        SMALL, blocks=3, block_bytes=60_000, rounds=2, call_blocks=2, progress=lambda done, total: calls.append((done, total))
    )
    assert calls == [(done, 28) for done in range(1, 29)]  # for each of seven: start, warm up, two rounds
    assert [report[key] for key in ("blocks", "block_bytes", "call_blocks", "rounds")] == [3, 60_000, 2, 2]
    rows = {row["links"]: row for row in report["rows"]}
    assert list(rows) == NAMES
    for row in rows.values():
        assert row["wrong"] == 0
        assert set(row) == FIELDS
    for name in ("off", "geometry"):  # nothing is lost here, so nothing may fail
        assert (rows[name]["put_failures"], rows[name]["misses"]) == (0, 0)
    assert (rows["geometry"]["put_ratio"], rows["geometry"]["get_ratio"]) == (1.0, 1.0)
    assert rows["off"]["get_ratio"] > 1

    console = Console(width=80, record=True)
    console.print(links_table(report))
    text = console.export_text()
    assert "3 blocks of 60,000 bytes, 2 in one call" in text
    assert "1.00 x" in text
    assert "missing, of 6" in text
    assert "uplink" in text  # the last row's name, over several lines


def test_links_are_what_their_names_say() -> None:
    given = SMALL.replace(
        links={"rate_kbps": 9, "delay_us": 70, "override": [{"from": [1, 1], "to": [1, 2], "cut": True}]},
        cache={"window": "physical"},
    )
    models = link_models(given)
    assert list(models) == NAMES
    centre, ahead = Satellite(2, 3), Satellite(2, 4)
    east = {name: model.link_models[centre][Direction.EAST] for name, model in models.items()}
    assert east["off"].ideal
    delay_us = east["geometry"].delay_us
    assert delay_us > 1000
    for name in NAMES[1:]:
        assert east[name].delay_us == delay_us
        assert east[name].rate_kbps == 0
        assert east[name].jitter_us == (200 if "jitter" in name else 0)
        assert east[name].loss_ppm == (1000 if "loss" in name else 0)
        cuts = {
            (origin, direction)
            for origin, links in models[name].link_models.items()
            for direction, link in links.items()
            if link.cut
        }
        assert cuts == ({(centre, Direction.EAST), (ahead, Direction.WEST)} if "cut" in name else set())
        assert models[name].ground_model(*centre).delay_us > 0
    for name, model in models.items():
        assert model.cache.window == "logical"
        assert model.cache.uplink == ("nearest" if "nearest" in name else "window")
        assert model.cache.servers == given.cache.servers
    with pytest.raises(ConfigError, match=r"links\.override\.to is \[3, 1\], not a neighbour"):
        link_models(given.replace(constellation={"planes": 6, "slots": 1}, links={"override": []}, cache={"centre": [3, 1]}))
