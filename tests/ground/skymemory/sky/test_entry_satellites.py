"""Windows and uplinks: through which satellite each server is reached."""

import numpy as np
import pytest

from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route, entries, others, server_routes
from skymemory.sky.orbit.positions import Site
from skymemory.sky.whereabouts import Whereabouts
from skymemory.wire.address import Satellite

LOGICAL = Constellation()
PHYSICAL = LOGICAL.replace(cache={"window": "physical"}, site={"latitude_deg": 55.0, "longitude_deg": 10.0})
CENTRE = LOGICAL.cache.centre
TIMES = [float(time_s) for time_s in range(0, 86_400, 1_800)]


def in_sight(sky: Constellation, time_s: float) -> list[Satellite]:
    site = sky.site
    place = Site(site.latitude_deg, site.longitude_deg)
    return sky.walker().sky.in_sight(place, time_s, site.min_elevation_deg)


def test_logical_window_reaches_each_server_directly() -> None:
    routes = server_routes(Whereabouts(LOGICAL), 0)
    assert routes == [Route(satellite, satellite) for satellite in Whereabouts(LOGICAL).servers(0)]
    assert len(routes) == LOGICAL.cache.servers


def test_uplink_nearest_goes_through_the_centre() -> None:
    sky = LOGICAL.replace(cache={"uplink": "nearest"})
    assert [route.entry for route in server_routes(Whereabouts(sky), 0)] == [CENTRE] * LOGICAL.cache.servers
    assert [route.satellite for route in server_routes(Whereabouts(sky), 0)] == Whereabouts(LOGICAL).servers(0)


@pytest.mark.parametrize("time_s", TIMES)
def test_physical_window_enters_where_fewest_hops_are_left(time_s: float) -> None:
    seen = in_sight(PHYSICAL, time_s)
    routes = server_routes(Whereabouts(PHYSICAL), time_s)
    if not seen:
        assert routes == []
        return
    assert [route.satellite for route in routes] == Whereabouts(PHYSICAL).servers(0)
    for satellite, entry in routes:
        hops = [PHYSICAL.torus.hops(candidate, satellite) for candidate in seen]
        assert entry == seen[int(np.argmin(hops))]  # the first of equals: the nearest to the ground
        assert satellite not in seen or entry == satellite


@pytest.mark.parametrize("time_s", TIMES)
def test_physical_window_with_uplink_nearest(time_s: float) -> None:
    sky = PHYSICAL.replace(cache={"uplink": "nearest"})
    seen = in_sight(sky, time_s)
    assert entries(Whereabouts(sky), time_s) == seen[:1]
    assert {route.entry for route in server_routes(Whereabouts(sky), time_s)} == set(seen[:1])


def test_nobody_in_sight() -> None:
    sky = PHYSICAL.replace(site={"min_elevation_deg": 90.0})
    assert entries(Whereabouts(sky), 12.0) == []
    assert server_routes(Whereabouts(sky), 12.0) == []


def test_a_lost_satellite_is_replaced() -> None:
    before = Whereabouts(LOGICAL).servers(0)
    after = Whereabouts(LOGICAL).servers(0, {before[4]})
    assert [index for index in range(LOGICAL.cache.servers) if before[index] != after[index]] == [4]
    assert after[4] not in before


def test_a_lost_nearest_satellite_is_no_uplink() -> None:
    sky = LOGICAL.replace(cache={"uplink": "nearest"})
    routes = server_routes(Whereabouts(sky), 0, {CENTRE})
    (entry,) = {route.entry for route in routes}
    assert entry != CENTRE
    assert LOGICAL.torus.hops(entry, CENTRE) <= 3
    assert CENTRE not in {route.satellite for route in routes}


@pytest.mark.parametrize("sky", [LOGICAL, LOGICAL.replace(cache={"uplink": "nearest"}), PHYSICAL])
def test_others_are_unknown_ones_that_can_be_reached(sky: Constellation) -> None:
    known = set(Whereabouts(sky).servers(0))
    for time_s in TIMES[:8]:
        found = [route.satellite for route in others(Whereabouts(sky), time_s, known)]
        assert known.isdisjoint(found)
        assert len(found) == len(set(found)) <= 4
        if sky.cache.window == "physical":
            assert set(found) <= set(in_sight(sky, time_s))
        else:
            assert len(found) == 4
    assert others(Whereabouts(sky), 0, set(sky.torus.satellites())) == []
