"""The way of the window's centre, and the servers along it."""

from bisect import bisect_right
from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skymemory.sky.orbit.positions import Site
from skymemory.sky.orbit.schedule import Schedule, WindowChange
from skymemory.sky.orbit.walker import Walker
from skymemory.sky.placement.rolling_layout import Cell
from skymemory.sky.placement.torus import Torus
from skymemory.sky.placement.track import Track
from skymemory.wire.address import Satellite
from support.elements import EPOCH_MS

DAY_MS = 24 * 3_600_000
PAPER = Torus(5, 19)


@st.composite
def centres(draw: st.DrawFn, torus: Torus) -> list[tuple[int, Satellite]]:
    satellites = st.builds(Satellite, st.integers(1, torus.planes), st.integers(1, torus.slots))
    gaps_ms = draw(st.lists(st.integers(1, 500), max_size=30))
    return [(time_ms, draw(satellites)) for time_ms in accumulate(gaps_ms, initial=0)]


tori = st.builds(Torus, st.integers(1, 9), st.integers(1, 20), st.booleans())
cases = tori.flatmap(lambda torus: st.tuples(st.just(torus), centres(torus)))


@pytest.fixture(scope="module")
def day() -> Schedule:
    return Schedule.compute(Walker(5, 19, 550, 86.4, star=True), "walker", Site(52.5, 13.4), 10, EPOCH_MS, DAY_MS)


@given(cases, st.integers(-10, 20_000))
def test_the_centre_at_any_instant(case: tuple[Torus, list[tuple[int, Satellite]]], time_ms: int) -> None:
    torus, given_centres = case
    track = Track.of(torus, given_centres)
    held = max(0, bisect_right([at_ms for at_ms, _ in given_centres], time_ms) - 1)
    assert track.centre(track.row_at(time_ms)) == given_centres[held][1]


@given(cases)
def test_rows_are_changes_by_the_shorter_way(case: tuple[Torus, list[tuple[int, Satellite]]]) -> None:
    torus, given_centres = case
    track = Track.of(torus, given_centres)
    assert track.rows[0] == (0, Cell(*given_centres[0][1]))
    for row, ((_, before), (time_ms, after)) in enumerate(pairwise(track.rows), start=1):
        assert -torus.planes < 2 * (after.plane - before.plane) <= torus.planes
        assert -torus.slots < 2 * (after.slot - before.slot) <= torus.slots
        assert before != after
        assert (track.end_ms(row), track.row_at(time_ms - 1), track.row_at(time_ms)) == (time_ms, row, row + 1)
    assert track.end_ms(len(track.rows)) is None


def test_unrolled_over_both_seams() -> None:
    track = Track.of(
        Torus(4, 19, seam_cut=True),
        [(0, Satellite(4, 2)), (5, Satellite(4, 2)), (10, Satellite(1, 19)), (20, Satellite(3, 9)), (30, Satellite(3, 18))],
    )
    assert track.rows == ((0, Cell(4, 2)), (10, Cell(5, 0)), (20, Cell(7, 9)), (30, Cell(7, 18)))
    layout = track.layout("rotation", 9)
    assert (layout.height, layout.width) == (4, 3)  # a step over two planes: three of four would meet their other end


@settings(max_examples=60, deadline=None)
@given(time_ms=st.integers(0, DAY_MS))
def test_the_centre_of_a_day_over_berlin(day: Schedule, time_ms: int) -> None:
    track = day.track
    assert len(track.rows) > 280
    assert track.centre(track.row_at(time_ms)) == day.centre(time_ms)


@settings(max_examples=30, deadline=None)
@given(servers=st.integers(1, 95), from_row=st.integers(1, 250), late=st.integers(1, 4))
def test_successors_bring_every_share_home(day: Schedule, servers: int, from_row: int, late: int) -> None:
    """Whoever is outside hands on, by the last window it was in; some rows late if the window is not half the torus."""
    late = late if servers <= 25 else 1
    track = day.track
    layout = track.layout("rotation_hop", servers)

    def next_home(row: int, satellite: Satellite) -> Satellite:
        windows = (track.cell(before) for before in range(row, max(0, row - 41), -1))
        last = next(cell for cell in windows if layout.in_window(cell, satellite))
        return layout.successor(last, track.cell(row), satellite) or satellite

    at = layout.servers_at(track.cell(from_row))
    for row in range(from_row, from_row + 40, late):
        at = [next_home(row, satellite) for satellite in at]
        assert at == layout.servers_at(track.cell(row))


def test_a_schedule_s_track(day: Schedule) -> None:
    windows = [change for change in day.changes if isinstance(change, WindowChange)]
    assert len(day.track.rows) == 1 + sum(before.centre != after.centre for before, after in pairwise(windows))
    layout = day.track.layout("rotation", 16)
    assert layout.height == 4  # which has room for a step of one plane
    assert day.track is day.track


@given(cases, st.integers(0, 20_000), st.floats(0.01, 1000), st.integers(0, 30_000))
def test_played(case: tuple[Torus, list[tuple[int, Satellite]]], from_ms: int, speed: float, at_ms: int) -> None:
    torus, given_centres = case
    track = Track.of(torus, given_centres)
    played = track.played(from_ms, speed)
    # a time can be off by what a division of floats is off
    near = {track.centre(track.row_at(int(from_ms + at_ms * speed + eps))) for eps in (-1e-6, 0, 1e-6)}
    assert played.centre(played.row_at(at_ms)) in near


@given(cases, st.data())
def test_what_was_stored_under_a_track_is_found_under_what_follows_it(
    case: tuple[Torus, list[tuple[int, Satellite]]], data: st.DataObject
) -> None:
    torus, given_centres = case
    track = Track.of(torus, given_centres)
    row = data.draw(st.integers(1, len(track.rows)))
    later = Track.of(torus, [(0, data.draw(st.sampled_from(list(torus.satellites())))), *((7 + t, s) for t, s in given_centres)])
    pause_ms = data.draw(st.integers(0, 500))
    joined = track.continued(row, later, pause_ms)
    for at in range(1, row + 1):
        assert (joined.cell(at), joined.row_at(at - 1)) == (track.cell(at), at)
    assert joined.row_at(row - 1 + pause_ms) == row
    for time_ms in (0, 3, 7, 100, 20_000):
        assert joined.centre(joined.row_at(row + pause_ms + time_ms)) == later.centre(later.row_at(time_ms))
    before, after = track.layout("rotation", 1), joined.layout("rotation", 1)
    if (before.height, before.width) == (after.height, after.width):
        assert after.servers_at(joined.cell(row)) == before.servers_at(track.cell(row))


@given(cases, st.data())
def test_a_held_track_stays(case: tuple[Torus, list[tuple[int, Satellite]]], data: st.DataObject) -> None:
    torus, given_centres = case
    track = Track.of(torus, given_centres)
    row = data.draw(st.integers(1, len(track.rows)))
    held = track.held(row)
    for servers in range(1, 1 + torus.planes * torus.slots):
        before, after = track.layout("rotation", servers), held.layout("rotation", servers)
        assert (before.height, before.width) == (after.height, after.width)
    assert [cell for _, cell in held.rows] == [cell for _, cell in track.rows]
    assert held.row_at(2**32 - 1 - len(track.rows)) == row
    assert held.stays(row)
    assert track.stays(row) == (row == len(track.rows))
    times_ms = [time_ms for time_ms, _ in held.rows]
    assert times_ms == sorted(set(times_ms))
    assert times_ms[-1] < 2**32


def test_played_sixty_times_faster() -> None:
    times_ms = 0, 300_000, 600_001, 600_002
    track = Track.of(PAPER, zip(times_ms, [Satellite(3, 4), Satellite(3, 3), Satellite(3, 2), Satellite(4, 2)], strict=True))
    assert track.played(0, 60).rows == ((0, Cell(3, 4)), (5_000, Cell(3, 3)), (10_001, Cell(4, 2)))
    assert track.played(300_000, 60).rows == ((0, Cell(3, 3)), (5_001, Cell(4, 2)))
    assert track.played(700_000, 60).rows == ((0, Cell(4, 2)),)
    assert track.played(0, 60, 600_001).rows == ((0, Cell(3, 4)), (5_000, Cell(3, 3)), (10_001, Cell(3, 2)))
    assert track.played(299_999, 1).rows[:2] == ((0, Cell(3, 4)), (1, Cell(3, 3)))


@pytest.mark.parametrize("speed", [0.0, -1.0, float("inf"), float("nan")])
def test_wrong_speeds(speed: float) -> None:
    with pytest.raises(ValueError, match=f"the speed is {speed}; allowed are numbers above 0"):
        Track.of(PAPER, [(0, Satellite(1, 1))]).played(0, speed)


def test_wrong_centres() -> None:
    one = Satellite(1, 1)
    with pytest.raises(ValueError, match="the track has no centre"):
        Track.of(PAPER, [])
    with pytest.raises(ValueError, match=r"centre \[6, 1\] is outside the torus of 5 planes x 19 slots"):
        Track.of(PAPER, [(0, Satellite(6, 1))])
    with pytest.raises(ValueError, match="a centre has the time 5 ms; allowed are 0 for the first"):
        Track.of(PAPER, [(5, one)])
    with pytest.raises(ValueError, match="a centre has the time 5 ms; allowed are 0 for the first, and rising times"):
        Track.of(PAPER, [(0, one), (5, one), (5, Satellite(1, 2))])
    with pytest.raises(ValueError, match=r"a track over .* cannot follow"):
        Track.of(PAPER, [(0, one)]).continued(1, Track.of(Torus(5, 20), [(0, one)]))
    for row in (0, 2):
        with pytest.raises(IndexError, match=f"there is no row {row}; allowed are 1 to 1"):
            Track.of(PAPER, [(0, one)]).cell(row)


@pytest.mark.parametrize(
    "rows",
    [
        (),
        ((1, Cell(1, 1)),),
        ((0, Cell(1, 1)), (0, Cell(1, 2))),
        ((0, Cell(1, 1)), (1, Cell(4, 1))),  # further than half the torus
        ((0, Cell(1, 1)), (2**32, Cell(1, 2))),
        ((0, Cell(1, 1)), (-1, Cell(1, 2))),
        ((0, Cell(1 + 2**32, 1)),),
        (
            (
                0,
                Cell(1, -(2**31)),
            ),
        ),
    ],
)
def test_rows_that_the_core_refuses(rows: tuple[tuple[int, Cell], ...]) -> None:
    """What `Track.of` cannot make."""
    track = Track(PAPER, rows)
    with pytest.raises(ValueError, match=r"the core cannot follow|a row's time is outside|a centre is outside"):
        track.layout("rotation", 9)
    with pytest.raises(ValueError, match=r"the core cannot follow|outside"):
        track.row_at(0)
