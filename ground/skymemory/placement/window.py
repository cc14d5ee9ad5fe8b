"""From servers to packets: the satellite of each server, and the satellite through which the ground reaches it.

*Logical* window: what the layout covers is taken to be in sight, as in the paper (figure 4). *Physical* window: only
what stands above the site's elevation mask is; the rest is reached over inter-satellite links from what is. With uplink
`nearest` the ground talks to one satellite only, and that one forwards (paper, section 3.2).

The layout lies around `cache.centre` in both: a window that moves with the sky needs chunks that move with it (rotation).
"""

from collections.abc import Collection
from typing import Final, NamedTuple

from skymemory.config import Constellation
from skymemory.orbit.sky import Site
from skymemory.orbit.walker import Walker
from skymemory.placement.layouts import LAYOUTS, hop, substitute
from skymemory.placement.torus import Satellite

_OTHERS: Final = 4
"""satellites that are asked for comparison"""


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
        time_s: Unix time; used by the physical window only.
        lost: satellites that do not answer.

    Returns:
        An empty list when no satellite is in sight.
    """
    cache = constellation.cache
    if cache.window == "logical":
        if cache.uplink == "window":
            return None
        return substitute([cache.centre], lost, cache.centre, constellation.torus)
    seen = [satellite for satellite in _in_sight(constellation, time_s) if satellite not in lost]
    return seen if cache.uplink == "window" else seen[:1]


def others(constellation: Constellation, time_s: float, known: Collection[Satellite]) -> list[Satellite]:
    """A few satellites besides the known ones that the ground can send to, nearest first: what tells a lost satellite from a
    ground host that is cut off. Arguments as for `entries`."""
    cache, torus = constellation.cache, constellation.torus
    if cache.window == "logical":
        near = hop(cache.centre, min(len(known) + _OTHERS, torus.planes * torus.slots), torus)
    else:
        near = _in_sight(constellation, time_s)
    return [satellite for satellite in near if satellite not in known][:_OTHERS]


def lookup_routes(constellation: Constellation, routes: list[Route]) -> list[Route]:
    """Whom to ask for a block, in this order: the server nearest to the ground (paper, section 3.8), then server 0.

    Every server has a chunk of a block with at least n chunks, a smaller one is on the first servers only. In two of the
    three layouts server 0 is the nearest.
    """
    torus, centre = constellation.torus, constellation.cache.centre
    nearest = min(routes, key=lambda one: (torus.hops(one.entry, one.satellite), torus.hops(centre, one.satellite)), default=None)
    return [] if nearest is None else list(dict.fromkeys((nearest, routes[0])))


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


def _in_sight(constellation: Constellation, time_s: float) -> list[Satellite]:
    site = constellation.site
    place = Site(site.latitude_deg, site.longitude_deg)
    return Walker.of(constellation).sky.in_sight(place, time_s, site.min_elevation_deg)
