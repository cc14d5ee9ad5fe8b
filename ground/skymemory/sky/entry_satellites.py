"""From servers to packets: the satellite of each server, and the entry satellite through which the host reaches it.

- Logical window: all satellites of the layout count as in sight, as in the paper (figure 4).
- Physical window: only satellites above the site's elevation mask are in sight. The others are reached through them, over
  inter-satellite links.

With uplink `nearest` the ground talks to one satellite only, which forwards (paper, section 3.2). A host on board has one entry
satellite: the one that it is attached to.

The layout lies around the same centre in both windows. That centre moves where the sky follows a schedule (`Whereabouts`).
"""

from collections.abc import Collection
from typing import NamedTuple

from skymemory.common.defaults import HOST_OTHERS
from skymemory.sky.placement.layouts import nearest, substitute
from skymemory.sky.whereabouts import Whereabouts
from skymemory.wire.address import Satellite


class Route(NamedTuple):
    """A server's satellite, and the entry satellite to which the host sends its packets."""

    satellite: Satellite
    entry: Satellite


def entries(where: Whereabouts, time_s: float, lost: Collection[Satellite] = ()) -> list[Satellite] | None:
    """Return the entry satellites at a time, nearest first; None means any (logical window that stays, uplink `window`).

    Args:
        time_s: Unix time.
        lost: Satellites that do not answer.

    Returns:
        Entry satellites; the list is empty when no satellite is in sight.
    """
    cache, torus = where.constellation.cache, where.constellation.torus
    if cache.host == "satellite":
        return [cache.centre]
    row = where.row(time_s)
    centre = where.centre(row)
    if cache.window == "logical" and cache.uplink == "nearest":
        return substitute([centre], lost, centre, torus)
    if cache.window == "logical" and where.playing is None:
        return None
    seen = where.in_sight(time_s)
    if cache.window == "logical":
        seen = sorted(where.servers(row, lost), key=lambda satellite: torus.hops(centre, satellite))
    seen = [satellite for satellite in seen if satellite not in lost]
    return seen if cache.uplink == "window" else seen[:1]


def others(where: Whereabouts, time_s: float, known: Collection[Satellite]) -> list[Route]:
    """Return routes to a few satellites besides the known ones, nearest first.

    Their answers tell a lost satellite from a host that is cut off. Arguments are those of `entries`.
    """
    cache, torus = where.constellation.cache, where.constellation.torus
    if cache.window == "logical":
        near = nearest(where.centre(where.row(time_s)), min(len(known) + HOST_OTHERS, torus.planes * torus.slots), torus)
    else:
        near = where.in_sight(time_s)
    found = [satellite for satellite in near if satellite not in known][:HOST_OTHERS]
    return [Route(satellite, cache.centre if cache.host == "satellite" else satellite) for satellite in found]


def route(where: Whereabouts, target: Satellite, entry_points: list[Satellite] | None) -> Route | None:
    """Return the route to a satellite: directly if it is an entry, else through the entry with the fewest hops to it.

    Of several with the same hops the nearest to the host is taken. The result is None if there is no entry.
    """
    if entry_points is None or target in entry_points:
        return Route(target, target)
    torus = where.constellation.torus
    entry = min(entry_points, key=lambda candidate: torus.hops(candidate, target), default=None)
    return None if entry is None else Route(target, entry)


def server_routes(where: Whereabouts, time_s: float, lost: Collection[Satellite] = (), row: int | None = None) -> list[Route]:
    """Return routes to servers 0 to n - 1 at a time; empty when no satellite is in sight. Arguments are those of `entries`.

    Args:
        row: Row whose servers are meant; by default that of the time. Entries are always those of the time.
    """
    entry_points = entries(where, time_s, lost)
    servers = where.servers(where.row(time_s) if row is None else row, lost)
    routes = (route(where, satellite, entry_points) for satellite in servers)
    return [found for found in routes if found is not None]
