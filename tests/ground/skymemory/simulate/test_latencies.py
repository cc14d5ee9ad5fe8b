"""Figure 16's numbers: against a closed form that shares no code with the table, and against the authors' simulator.

`published.csv` holds what the public simulator (github.com/patompa/skymemory, commit 28d5f84) wrote when its
`simulator_runner.py` was run as it is: largest, smallest, mean and standard deviation of all 132 points, rounded to 12 places.
"""

import csv
from math import ceil, hypot, pi, sin, sqrt
from pathlib import Path

import numpy as np
import pytest

from skymemory.simulate.latencies import PAPER, PARAMETERS, Row, Sweep, chunks, most_servers, rows
from skymemory.sky.placement.torus import Torus
from skymemory.wire.address import Satellite

EXACT_S = 1e-9
POINTS = rows()
SWEEP = {parameter: PAPER.values(parameter) for parameter in PARAMETERS}
THEIR_NAMES = {"rotation": "rotation", "hop": "hop", "hop_rotation": "rotation_hop"}
"""of the layouts, in the authors' simulator"""


def test_the_sweep() -> None:
    assert SWEEP["KVC_BYTES"] == tuple(mib * 1_048_576 for mib in range(1, 22))
    assert SWEEP["SERVERS"] == (9, 25, 49, 81)
    assert SWEEP["CHUNK_PROCESSING_TIME"] == pytest.approx([0.002, 0.004, 0.006, 0.008, 0.01, 0.012, 0.014, 0.016, 0.018, 0.02])
    assert SWEEP["ALTITUDE"] == tuple(1000 * km for km in (160, 380, 600, 820, 1040, 1260, 1480, 1700, 1920))
    assert PAPER.held("SERVERS") == {"KVC_BYTES": 21 * 2**20, "CHUNK_PROCESSING_TIME": 0.02, "ALTITUDE": 1_920_000}
    assert [(row.layout, row.parameter, row.value) for row in POINTS] == [
        (layout, parameter, value)
        for layout in ("rotation", "hop", "rotation_hop")
        for parameter in PARAMETERS
        for value in SWEEP[parameter]
    ]


@pytest.mark.parametrize("published", [False, True])
def test_all_points_are_those_of_the_authors_simulator(published: bool) -> None:
    """The sweep touches none of the simulator's faults: corrected and published mappings give the same."""
    with Path(__file__).with_name("published.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    expected = {(THEIR_NAMES[line["strategy"]], line["parameter"], float(line["value"])): line for line in lines}
    points = rows(published=published)
    assert len(points) == len(expected) == 132
    for row in points:
        line = expected[row.layout, row.parameter, row.value]
        for name in ("max_s", "min_s", "mean_s", "std_s"):
            assert getattr(row, name) == pytest.approx(float(line[name]), abs=EXACT_S), (row, name)


def closed_form(row: Row) -> tuple[float, float, float, float]:
    """Largest, smallest and mean time and deviation, server by server, from offsets that are written down, not searched."""
    case = {name: SWEEP[name][-1] for name in SWEEP} | {row.parameter: row.value}
    servers, altitude_m = int(case["SERVERS"]), case["ALTITUDE"]
    chord_m = 2 * (6_371_000 + altitude_m) * sin(pi / 15)
    times = []
    for server, (south, east) in enumerate(offsets(row.layout, servers)):
        hops_m = (abs(south) + abs(east)) * chord_m
        way_m = hops_m if row.layout == "hop" else sqrt((chord_m * hypot(south, east)) ** 2 + altitude_m**2)
        total = ceil(case["KVC_BYTES"] / 12_288)
        mine = total // servers + (server < total % servers)
        times.append(way_m / 2.998e8 + mine * case["CHUNK_PROCESSING_TIME"])
    mean = sum(times) / servers
    return max(times), min(times), mean, sqrt(sum((time - mean) ** 2 for time in times) / servers)


def offsets(layout: str, servers: int) -> list[tuple[int, int]]:
    """Steps south and east of each server from the centre.

    Rings that are found breadth first, looking north, east, south, west, come in the order of their shortest ways written
    with the letters 0 to 3: shorter ones first, then as words in a dictionary.
    """
    side = round(sqrt(servers))
    if layout == "rotation":
        return [(server // side - side // 2, server % side - side // 2) for server in range(servers)]
    arm = side // 2 if layout == "rotation_hop" else 7
    cells = [(south, east) for south in range(-arm, arm + 1) for east in range(-arm, arm + 1)]
    return sorted(cells, key=lambda cell: (len(way(*cell)), way(*cell)))[:servers]


def way(south: int, east: int) -> str:
    return "0" * max(0, -south) + "1" * max(0, east) + "2" * max(0, south) + "3" * max(0, -east)


@pytest.mark.parametrize("row", POINTS, ids=lambda row: f"{row.layout}-{row.parameter}-{row.value:g}")
def test_all_points_are_those_of_the_closed_form(row: Row) -> None:
    assert (row.max_s, row.min_s, row.mean_s, row.std_s) == pytest.approx(closed_form(row), abs=EXACT_S)


def test_chunks_fall_to_servers_in_turn() -> None:
    total, servers = 86, 81  # 1 MiB
    counted = [sum(chunk % servers == server for chunk in range(total)) for server in range(servers)]
    assert chunks(np.array([[2.0**20]]), servers).tolist() == [counted]
    assert chunks(np.array([[1.0]]), 3).tolist() == [[1, 0, 0]]


def test_what_the_figure_says() -> None:
    """Section 4: both rings and window beat either at every altitude; nine times the servers take nearly nine tenths off."""
    largest = {(row.layout, row.parameter, row.value): row.max_s for row in POINTS}
    for altitude in SWEEP["ALTITUDE"]:
        times = [largest[layout, "ALTITUDE", altitude] for layout in ("rotation_hop", "hop", "rotation")]
        assert times == sorted(times)
    for layout in ("rotation", "hop", "rotation_hop"):
        assert largest[layout, "SERVERS", 81] / largest[layout, "SERVERS", 9] == pytest.approx(0.13, abs=0.01)


def test_standard_error_is_the_deviation_over_the_root_of_the_servers() -> None:
    for row in POINTS:
        servers = row.value if row.parameter == "SERVERS" else PAPER.servers
        assert row.se_s == pytest.approx(row.std_s / sqrt(servers), rel=1e-12)


def test_what_the_correction_is_worth_shows_where_the_window_is_no_odd_square() -> None:
    """The paper's own testbed: 10 servers on 5 x 19."""
    testbed = Sweep(Torus(5, 19), Satellite(3, 4), servers=10, altitude_km=550)
    points = {
        published: {(row.layout, row.parameter, row.value): row for row in rows(testbed, published=published)}
        for published in (False, True)
    }
    here = "ALTITUDE", 550_000
    assert np.isnan(points[True]["rotation_hop", *here].max_s)  # server 10 is on no satellite
    assert points[False]["rotation_hop", *here].max_s > 0
    corrected, published = (points[which]["rotation", *here] for which in (False, True))
    assert (corrected.max_s, corrected.mean_s) != (published.max_s, published.mean_s)
    assert points[False]["hop", *here] == points[True]["hop", *here]


def test_a_sweep_has_what_is_held_elsewhere_and_what_fits() -> None:
    small = Sweep(Torus(5, 6), Satellite(3, 3), servers=10, altitude_km=550)
    assert small.values("SERVERS") == (9, 10, 25)
    assert small.values("ALTITUDE") == (160e3, 380e3, 550e3, 600e3, 820e3, 1040e3, 1260e3, 1480e3, 1700e3, 1920e3)
    assert small.held("KVC_BYTES") == {"SERVERS": 10, "CHUNK_PROCESSING_TIME": 0.02, "ALTITUDE": 550_000}
    assert [most_servers(torus) for torus in (Torus(15, 15), Torus(5, 6), Torus(2, 3))] == [81, 25, 6]
    assert {row.value for row in rows(small) if row.parameter == "SERVERS"} == {9, 10, 25}
