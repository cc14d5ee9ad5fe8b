"""Where the servers are at a moment."""

import pytest

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
TIMES_S = (0, 300, 600, 1000, 1010)  # of the rows; the last but one is short
CENTRES = (Satellite(3, 10), Satellite(3, 9), Satellite(4, 9), Satellite(4, 8), Satellite(4, 7))
TRACK = Track.of(SKY.torus, [(1000 * time_s, centre) for time_s, centre in zip(TIMES_S, CENTRES, strict=True)])
TURNING = Whereabouts(SKY, Playing(TRACK, STARTED_S))


def at(time_s: float) -> float:
    return STARTED_S + time_s


def test_without_a_schedule_nothing_moves() -> None:
    where = Whereabouts(SKY)
    for time_s in (0.0, STARTED_S, 1e10):
        assert where.row(time_s) == 0
    assert where.centre(0) == SKY.cache.centre


def test_the_centre_is_that_of_the_row_of_now() -> None:
    for time_s, row in ((-1e6, 1), (0, 1), (299.999, 1), (300, 2), (599.999, 2), (600, 3), (1e9, 5)):
        assert TURNING.row(at(time_s)) == row
        assert TURNING.centre(row) == CENTRES[row - 1]
    layout = TRACK.layout(SKY.cache.layout, SKY.cache.servers)
    for row in range(1, 6):
        assert TURNING.servers(row) == layout.servers_at(TRACK.cell(row))


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
