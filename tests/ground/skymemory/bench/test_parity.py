"""What lost satellites and lost packets cost gets, as the benchmark measures it."""

import pytest
from rich.console import Console

from skymemory.bench.parity import (
    complete_percent,
    packets_table,
    repair_table,
    run_lost_satellites,
    run_repair,
    satellites_table,
)
from skymemory.sky.constellation import Constellation
from skymemory.testbed.local import LocalConstellation, free_port

SMALL = Constellation().replace(constellation={"planes": 3, "slots": 5}, cache={"centre": [2, 3]})


def test_a_row_for_each_way_to_lose_satellites() -> None:
    calls: list[tuple[int, int]] = []
    rows = run_lost_satellites(SMALL, 0.5, progress=lambda done, total: calls.append((done, total)))
    assert [row["lost"] for row in rows] == ["none", "one killed", "two killed", "two stopped"]
    assert calls == [(done, 4) for done in range(1, 5)]
    for row in rows:
        assert (row["misses"], row["purges"], row["errors"]) == (0, 0, 0)
        assert row["calls"] > 0
        assert row["puts"] > 0
    console = Console(width=120, record=True)
    console.print(satellites_table(rows))
    assert "two stopped" in console.export_text()


def test_what_a_repair_takes() -> None:
    rows = run_repair(SMALL, blocks=2, scrub_s=1, phase_s=2)
    quiet, busy = rows
    assert quiet["rebuilt_chunks"] == 2 * 17  # a chunk of each row
    assert quiet["read_chunks"] >= 2 * (16 * 9 + 6)  # the last row has seven chunks of data; one source is the satellite itself
    assert busy["rebuilt_chunks"] >= quiet["rebuilt_chunks"]
    assert busy["ratio"] > 0
    console = Console(width=140, record=True)
    console.print(repair_table(rows))
    assert "gets and puts" in console.export_text()


@pytest.mark.parametrize(("loss_ppm", "least"), [(0, 100), (10_000, 90)])
def test_gets_are_complete_in_time_over_links_that_lose_packets(loss_ppm: int, least: int) -> None:
    """The figures of docs/design.md are of more gets; a busy machine loses some here."""
    links = {"delay_us": 50_000, "loss_ppm": loss_ppm}
    sky = SMALL.replace(links=links, cache={"servers": 12, "parity": 2, "deadline_ms": 20_000})
    sky = sky.replace(network={"port": free_port(sky)})
    with LocalConstellation(sky):
        assert least <= complete_percent(sky, 60_000, 80) <= 100


def test_the_table_of_lost_packets() -> None:
    rows = [{"block_bytes": 60_000, "loss_percent": 0.0, "without_percent": 99.95, "with_percent": 100.0}]
    console = Console(width=120, record=True)
    console.print(packets_table(rows))
    text = console.export_text()
    assert "60,000" in text
    assert "within 4 round trips of 50 ms" in text
