"""Figure 16 as packets: what the twin measures, held against the equations and against the page that shows it."""

import re
from pathlib import Path

import numpy as np
import pytest

from skymemory.simulate.latencies import PAPER, Row, chunks, rows, server_times_s
from skymemory.simulate.mapping import places
from skymemory.simulate.packet_latencies import MeasuredRow, case_of, measured
from skymemory.twin.paper_case import measure

PAGE = Path(__file__).parents[4] / "docs" / "figures.md"
ROUNDED_S = 7e-6
"""delays are whole microseconds, on six links out and six back"""
POINTS = {(row.layout, row.parameter, row.value): row for row in rows()}
CASES: dict[str, tuple[str, float]] = {
    "none": ("ALTITUDE", 1_920_000),
    "1 MiB": ("KVC_BYTES", 2**20),
    "9 servers": ("SERVERS", 9),
    "2 ms a chunk": ("CHUNK_PROCESSING_TIME", 0.002),
    "160 km": ("ALTITUDE", 160_000),
}
"""of the page: what is not at its last value"""


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, str], MeasuredRow]:
    """Measured rows of the cases on the page, by layout and case."""
    chosen = [POINTS[layout, *point] for layout in ("rotation", "hop", "rotation_hop") for point in CASES.values()]
    names = [(row.layout, name) for row in chosen for name, point in CASES.items() if point == (row.parameter, row.value)]
    return dict(zip(names, measured(chosen), strict=True))


def expected_s(row: Row) -> float:
    """There and back to each server, and the processing of its chunks: until the last of them is done."""
    case = case_of(row)
    satellites = places(row.layout, PAPER.centre, case.servers, PAPER.torus)
    bytes_, none, altitude_m = (np.array([[value]]) for value in (case.block_bytes, 0.0, 1000 * case.altitude_km))
    ways_s = server_times_s(PAPER, satellites, row.layout == "hop", bytes_, none, altitude_m)
    return float((2 * ways_s + case.processing_us / 1e6 * chunks(bytes_, case.servers)).max())


def test_a_round_trip_instead_of_one_way(found: dict[tuple[str, str], MeasuredRow]) -> None:
    for (layout, _), row in found.items():
        point = POINTS[layout, row.parameter, row.value]
        assert row[: len(point)] == point
        assert row.measured_get_s == pytest.approx(expected_s(point), abs=ROUNDED_S), row
        assert row.measured_put_s == row.measured_get_s
        longest_way_s = point.max_s - case_of(point).processing_us / 1e6 * (case_of(point).share - 1)
        assert point.max_s < row.measured_get_s < point.max_s + longest_way_s + ROUNDED_S


def test_a_case_gives_the_same_packets_again() -> None:
    case = case_of(POINTS["rotation_hop", "KVC_BYTES", 2**20])
    assert measure(case) == measure(case)
    assert measure(case).packets >= 2 * case.chunks + 3 * case.servers  # put, get; the question after a put, its answer, the get


def test_the_page_shows_what_the_command_measures(found: dict[tuple[str, str], MeasuredRow]) -> None:
    published = {(row.layout, row.parameter, row.value): row for row in rows(published=True)}
    lines = re.findall(r"^\| ([\w ]+) \| `(\w+)` \|((?: [\d,.]+ \|){4})$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    shown = {(layout, name): [cell.strip() for cell in cells.split("|")[:-1]] for name, layout, cells in lines}
    assert shown.keys() == {(layout, name) for layout, name in found if name in ("none", "9 servers", "160 km")}
    for key, row in found.items():
        times_s = (row.max_s, row.measured_put_s, row.measured_get_s, row.measured_get_s - row.max_s)
        told = [f"{1000 * time_s:,.1f}" for time_s in times_s]
        assert f"{1000 * published[key[0], row.parameter, row.value].max_s:,.1f}" == told[0], key
        assert shown.get(key, told) == told, key
