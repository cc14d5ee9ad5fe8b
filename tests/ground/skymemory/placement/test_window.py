"""Windows and uplinks: through which satellite each server is reached."""

import numpy as np
import pytest

from skymemory.config import Constellation
from skymemory.orbit.walker import Site, Walker
from skymemory.placement.torus import Satellite
from skymemory.placement.window import Route, entries, server_routes, server_satellites

LOGICAL = Constellation()
PHYSICAL = LOGICAL.replace(cache={"window": "physical"}, site={"latitude_deg": 55.0, "longitude_deg": 10.0})
CENTRE = LOGICAL.cache.centre
TIMES = [float(time_s) for time_s in range(0, 86_400, 1_800)]


def in_sight(sky: Constellation, time_s: float) -> list[Satellite]:
    site = sky.site
    place = Site(site.latitude_deg, site.longitude_deg)
    return Walker.of(sky).in_sight(place, time_s, site.min_elevation_deg)


def test_logical_window_reaches_each_server_directly() -> None:
    routes = server_routes(LOGICAL, 0)
    assert routes == [Route(satellite, satellite) for satellite in server_satellites(LOGICAL)]
    assert len(routes) == 10


def test_uplink_nearest_goes_through_the_centre() -> None:
    sky = LOGICAL.replace(cache={"uplink": "nearest"})
    assert [route.entry for route in server_routes(sky, 0)] == [CENTRE] * 10
    assert [route.satellite for route in server_routes(sky, 0)] == server_satellites(LOGICAL)


@pytest.mark.parametrize("time_s", TIMES)
def test_physical_window_enters_where_fewest_hops_are_left(time_s: float) -> None:
    seen = in_sight(PHYSICAL, time_s)
    routes = server_routes(PHYSICAL, time_s)
    if not seen:
        assert routes == []
        return
    assert [route.satellite for route in routes] == server_satellites(PHYSICAL)
    for satellite, entry in routes:
        hops = [PHYSICAL.torus.hops(candidate, satellite) for candidate in seen]
        assert entry == seen[int(np.argmin(hops))]  # the first of equals: the nearest to the ground
        assert satellite not in seen or entry == satellite


@pytest.mark.parametrize("time_s", TIMES)
def test_physical_window_with_uplink_nearest(time_s: float) -> None:
    sky = PHYSICAL.replace(cache={"uplink": "nearest"})
    seen = in_sight(sky, time_s)
    assert entries(sky, time_s) == seen[:1]
    assert {route.entry for route in server_routes(sky, time_s)} == set(seen[:1])


def test_nobody_in_sight() -> None:
    sky = PHYSICAL.replace(site={"min_elevation_deg": 90.0})
    assert entries(sky, 12.0) == []
    assert server_routes(sky, 12.0) == []


def test_a_lost_satellite_is_replaced() -> None:
    before = server_satellites(LOGICAL)
    after = server_satellites(LOGICAL, {before[4]})
    assert [index for index in range(10) if before[index] != after[index]] == [4]
    assert after[4] not in before


def test_a_lost_nearest_satellite_is_no_uplink() -> None:
    sky = LOGICAL.replace(cache={"uplink": "nearest"})
    routes = server_routes(sky, 0, {CENTRE})
    (entry,) = {route.entry for route in routes}
    assert entry != CENTRE
    assert LOGICAL.torus.hops(entry, CENTRE) <= 3
    assert CENTRE not in {route.satellite for route in routes}
