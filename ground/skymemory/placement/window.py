"""From servers to packets: the satellite of each server, and the satellite through which the ground reaches it.

*Logical* window: what the layout covers is taken to be in sight, as in the paper (figure 4). *Physical* window: only
what stands above the site's elevation mask is; the rest is reached over inter-satellite links from what is. With uplink
`nearest` the ground talks to one satellite only, and that one forwards (paper, section 3.2).

The layout lies around `cache.centre` in both: a window that moves with the sky needs chunks that move with it (rotation).
"""

from collections.abc import Collection
from typing import NamedTuple

from skymemory.config import Constellation
from skymemory.orbit.walker import Site, Walker
from skymemory.placement.layouts import LAYOUTS, substitute
from skymemory.placement.torus import Satellite


class Route(NamedTuple):
    """Where a server is, and the satellite that the ground sends its packets to."""

    satellite: Satellite
    entry: Satellite


def server_satellites(constellation: Constellation, lost: Collection[Satellite] = ()) -> list[Satellite]:
    """Satellites of servers 0 to n - 1. Those of `lost` are replaced, see `layouts.substitute`."""
    cache, torus = constellation.cache, constellation.torus
    return substitute(LAYOUTS[cache.layout](cache.centre, cache.servers, torus), lost, cache.centre, torus)


def entries(constellation: Constellation, time_s: float, lost: Collection[Satellite] = ()) -> list[Satellite] | None:
    """Satellites that the ground can send to at a time, nearest first; None: any (logical window, uplink `window`).

    Args:
        time_s: seconds since the constellation's epoch; used by the physical window only.
        lost: satellites that do not answer.

    Returns:
        An empty list when no satellite is in sight.
    """
    cache, site = constellation.cache, constellation.site
    if cache.window == "logical":
        if cache.uplink == "window":
            return None
        return substitute([cache.centre], lost, cache.centre, constellation.torus)
    place = Site(site.latitude_deg, site.longitude_deg)
    seen = Walker.of(constellation).in_sight(place, time_s, site.min_elevation_deg)
    seen = [satellite for satellite in seen if satellite not in lost]
    return seen if cache.uplink == "window" else seen[:1]


def route(constellation: Constellation, target: Satellite, entry_points: list[Satellite] | None) -> Route | None:
    """How to reach a satellite: directly if it is an entry, else through the entry with the fewest hops to it.

    Of several with the same hops the nearest to the ground is taken. None: there is no entry.
    """
    if entry_points is None:
        return Route(target, target)
    torus = constellation.torus
    entry = min(entry_points, key=lambda candidate: torus.hops(candidate, target), default=None)
    return None if entry is None else Route(target, entry)


def server_routes(constellation: Constellation, time_s: float, lost: Collection[Satellite] = ()) -> list[Route]:
    """Routes to servers 0 to n - 1 at a time; empty when no satellite is in sight. Arguments as for `entries`."""
    entry_points = entries(constellation, time_s, lost)
    routes = (route(constellation, satellite, entry_points) for satellite in server_satellites(constellation, lost))
    return [found for found in routes if found is not None]
