"""Where the servers are at a moment, and in which order their places are asked."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skymemory.common import defaults
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import entries, others, server_routes
from skymemory.sky.orbit.positions import Site
from skymemory.sky.orbit.schedule import Schedule
from skymemory.sky.placement.torus import Torus
from skymemory.sky.placement.track import Track
from skymemory.sky.whereabouts import Playing, Whereabouts
from skymemory.wire.address import Satellite

SKY = Constellation()
STARTED_S = 1_000_000.0
SKEW_S = defaults.HOST_SKEW_US / 1e6
HANDOVER_S = SKY.cache.handover_s
TIMES_S = (0, 300, 600, 1000, 1010)  # of the rows; the last but one is short
CENTRES = (Satellite(3, 10), Satellite(3, 9), Satellite(4, 9), Satellite(4, 8), Satellite(4, 7))
TRACK = Track.of(SKY.torus, [(1000 * time_s, centre) for time_s, centre in zip(TIMES_S, CENTRES, strict=True)])
TURNING = Whereabouts(SKY, Playing(TRACK, STARTED_S))


def at(time_s: float) -> float:
    return STARTED_S + time_s


def test_without_a_schedule_nothing_moves() -> None:
    where = Whereabouts(SKY)
    for time_s in (0.0, STARTED_S, 1e10):
        assert (where.row(time_s), where.rows(time_s), where.rows(time_s, 7)) == (0, (0,), (0,))
        assert not where.is_moving(time_s)
    assert where.centre(0) == SKY.cache.centre


def test_the_centre_is_that_of_the_row_of_now() -> None:
    for time_s, row in ((-1e6, 1), (0, 1), (299.999, 1), (300, 2), (599.999, 2), (600, 3), (1e9, 5)):
        assert TURNING.row(at(time_s)) == row
        assert TURNING.centre(row) == CENTRES[row - 1]
    layout = TRACK.layout(SKY.cache.layout, SKY.cache.servers)
    for row in range(1, 6):
        assert TURNING.servers(row) == layout.servers_at(TRACK.cell(row))


@pytest.mark.parametrize(
    ("time_s", "rows"),
    [
        (-1e6, (1,)),
        (0, (1,)),
        (300 - SKEW_S - 0.001, (1,)),
        (300 - SKEW_S, (1, 2)),  # somebody's clock may be fast
        (299.999, (1, 2)),
        (300, (1, 2)),
        (300 + HANDOVER_S / 10 - 0.001, (1, 2)),
        (300 + HANDOVER_S / 10, (2, 1, 2)),
        (300 + HANDOVER_S, (2, 1, 2)),
        (600 - SKEW_S - 0.001, (2, 1, 2)),
        (600 - SKEW_S, (2, 1, 2, 3)),
        (600, (2, 3)),
        (1002.999, (3, 4)),
        (1003, (4, 3, 4)),
        (1008, (4, 3, 4, 5)),
        (1010, (3, 4, 5)),  # the handover before may not be over
        (1012.999, (3, 4, 5)),
        (1013, (5, 3, 4, 5)),
        (1029.999, (5, 3, 4, 5)),
        (1030, (5, 4, 5)),
        (1010 + HANDOVER_S, (5, 4, 5)),
        (1e9, (5, 4, 5)),
    ],
)
def test_places_are_asked_in_the_order_of_time(time_s: float, rows: tuple[int, ...]) -> None:
    assert TURNING.rows(at(time_s)) == rows


def test_handovers_take_their_time() -> None:
    for time_s, moving in (
        (0, False),
        (297, False),
        (299, True),
        (300, True),
        (300 + HANDOVER_S - 0.001, True),
        (300 + HANDOVER_S, False),
        (1007, True),
        (1e9, False),
    ):
        assert TURNING.is_moving(at(time_s)) == moving


def test_of_short_rows_several_old_places_are_asked() -> None:
    track = Track.of(SKY.torus, [(1000 * index, CENTRES[index % 2]) for index in range(6)] + [(100_000, CENTRES[2])])
    where = Whereabouts(SKY, Playing(track, STARTED_S))
    assert [where.rows(at(time_s)) for time_s in (0, 0.5, 1, 1.499, 1.5, 1.999)] == [
        (1, 2),
        (1, 2),
        (1, 2, 3),  # what moves on while the others are asked is at the next row's place
        (1, 2, 3),
        (2, 1, 2, 3),
        (2, 1, 2, 3),
    ]
    assert where.rows(at(3)) == (1, 2, 3, 4, 5)
    assert where.rows(at(5)) == (3, 4, 5, 6)  # so many and no more
    assert where.rows(at(5), 7) == (7, 3, 4, 5, 6, 7)
    assert where.rows(at(4.6), 7) == (7, 5, 2, 3, 4, 5, 6, 7)
    assert where.rows(at(5 + HANDOVER_S)) == (6, 5, 6)


def test_a_block_prefetched_for_a_row_to_come_is_asked_for_there_first() -> None:
    assert TURNING.rows(at(100), 4) == (4, 1, 4)
    assert TURNING.rows(at(301), 4) == (4, 1, 2, 4)
    assert TURNING.rows(at(310), 4) == (4, 2, 1, 2, 4)
    assert TURNING.rows(at(599), 3) == (3, 2, 1, 2, 3)
    assert TURNING.rows(at(400), 4) == (4, 2, 1, 2, 4)
    assert TURNING.rows(at(600), 3) == (3, 2, 3)  # its time has come: it did not take part in the handover
    assert TURNING.rows(at(700), 2) == TURNING.rows(at(700))
    assert TURNING.rows(at(100), 6) == TURNING.rows(at(100))  # no row has this number
    assert TURNING.rows(at(100), 1) == (1,)


@given(time_s=st.floats(-10, 2000), epoch=st.integers(0, 7))
def test_every_order_is_one_of_time(time_s: float, epoch: int) -> None:
    """The row of now is among those that are asked, behind it nothing older, and no two neighbours are the same."""
    rows, now = TURNING.rows(at(time_s), epoch), TURNING.row(at(time_s))
    assert now in rows
    assert all(before != after for before, after in pairwise(rows))
    assert max(rows) == rows[-1]
    assert set(rows) <= {now - 3, now - 2, now - 1, now, now + 1, epoch}
    assert len(rows) <= defaults.HOST_ROUNDS
    missing = iter(rows)
    assert all(row in missing for row in sorted(set(rows)))  # all of them, in this order


def test_a_schedule_for_another_constellation_is_refused() -> None:
    track = Track.of(Torus(4, 19), [(0, Satellite(1, 1))])
    with pytest.raises(ValueError, match=r"4 planes x 19 slots; the constellation has 5 x 19"):
        Whereabouts(SKY, Playing(track, 0.0))


def test_what_left_the_window_is_reached_through_it() -> None:
    now_s = at(400)
    servers = TURNING.servers(2)
    assert [route.entry for route in server_routes(TURNING, now_s)] == servers
    assert entries(TURNING, now_s) == sorted(servers, key=lambda one: SKY.torus.hops(CENTRES[1], one))
    before = server_routes(TURNING, now_s, row=1)
    assert [route.satellite for route in before] == TURNING.servers(1)
    gone = [route for route in before if route.satellite not in servers]
    assert gone
    for satellite, entry in gone:
        assert entry in servers
        assert SKY.torus.hops(entry, satellite) == min(SKY.torus.hops(one, satellite) for one in servers)


def test_uplink_nearest_follows_the_centre() -> None:
    where = Whereabouts(SKY.replace(cache={"uplink": "nearest"}), Playing(TRACK, STARTED_S))
    for time_s, centre in zip(TIMES_S, CENTRES, strict=True):
        assert {route.entry for route in server_routes(where, at(time_s))} == {centre}


def test_a_physical_window_is_what_the_schedule_says() -> None:
    site = SKY.site
    place, start_ms = Site(site.latitude_deg, site.longitude_deg), 1_700_000_000_000
    schedule = Schedule.compute(SKY.walker(), "test", place, site.min_elevation_deg, start_ms, 7_200_000)
    sky = SKY.replace(cache={"window": "physical"})
    from_ms, speed = 600_000, 60.0
    where = Whereabouts(sky, Playing(schedule.track.played(from_ms, speed), STARTED_S, schedule, from_ms, speed))
    seen_any, gaps = 0, 0
    for passed_s in range(110):
        time_ms = from_ms + 60_000 * passed_s
        seen = where.in_sight(at(passed_s))
        assert set(seen) == set(schedule.in_sight(time_ms))
        assert seen[:1] == ([] if not seen else [schedule.nearest(time_ms)])
        assert entries(where, at(passed_s)) == seen
        routes = server_routes(where, at(passed_s))
        assert len(routes) == (sky.cache.servers if seen else 0)  # in a gap nobody can be asked
        assert where.centre(where.row(at(passed_s))) == schedule.centre(time_ms)
        seen_any, gaps = seen_any + bool(seen), gaps + (not seen)
    assert seen_any
    assert gaps
    for beyond_s in (-100.0, 1e6):
        assert where.in_sight(at(beyond_s)) is not None  # the first and the last state hold


def test_on_board_there_is_one_way_and_nothing_moves() -> None:
    sky = SKY.replace(cache={"host": "satellite", "layout": "hop"})
    where = Whereabouts(sky, Playing(TRACK, STARTED_S))
    for time_s in (*TIMES_S, 1e6):
        routes = server_routes(where, at(time_s), {sky.cache.centre})
        assert {route.entry for route in routes} == {sky.cache.centre}
        assert where.servers(where.row(at(time_s))) == Whereabouts(sky).servers(0)
        assert {route.entry for route in others(where, at(time_s), set())} == {sky.cache.centre}
