"""The three layouts: which satellite is server 0, 1, ... n - 1 (paper, sections 3.5 to 3.7).

A layout is a pure function of centre, number of servers and torus. Server i holds the chunks with
`chunk_id mod n == i`. The satellites of a layout are distinct, so that losing one loses one share. Only stand-ins may
have several shares (`substitute`).

Corrected against the authors' public simulator, whose 15 x 15 grid with odd squares (9, 25, 49, 81 servers) hides three
faults:

* their window is ceil(sqrt(n)) wide *made odd downward*, so that 10 servers get 3 x 3 cells and the tenth has none.
  Here the window is the smallest box with w = ceil(sqrt(n)) slots and h = ceil(n / w) planes, never larger than the
  torus;
* their upper wrap is off by one (the column behind the last becomes the second);
* going west from slot 1 leaves the torus, for a mistyped name.

An even width has no middle: the box then reaches one further west (one further north for an even height). West is where
the next satellites come from, so the longer arm is the one that stays in sight longest.
"""

from collections.abc import Callable, Collection
from itertools import chain, cycle
from math import ceil, isqrt
from typing import Final, Literal, NamedTuple

from skymemory.placement.torus import Direction, Satellite, Torus

LayoutName = Literal["rotation", "hop", "rotation_hop"]
LAYOUT_IDS: Final[dict[LayoutName, int]] = {"rotation": 1, "hop": 2, "rotation_hop": 3}
"""`SKY_LayoutId_t`"""
Layout = Callable[[Satellite, int, Torus], list[Satellite]]


class Box(NamedTuple):
    """A window of satellites: `height` planes from `north` on, `width` slots from `west` on, wrapping."""

    north: int
    west: int
    height: int
    width: int

    def satellites(self, torus: Torus) -> list[Satellite]:
        """Left to right (slots), top to bottom (planes)."""
        rows, columns = range(self.north, self.north + self.height), range(self.west, self.west + self.width)
        return [torus.wrap(plane, slot) for plane in rows for slot in columns]


def window_box(centre: Satellite, servers: int, torus: Torus) -> Box:
    """The smallest box around `centre` with room for `servers`: ceil(sqrt(n)) slots wide where the torus allows.

    Raises:
        ValueError: more servers than satellites, less than one, or a centre outside the torus.
    """
    if not 1 <= servers <= torus.planes * torus.slots:
        raise ValueError(f"{servers} servers; allowed are 1 to {torus.planes * torus.slots} (planes x slots)")
    if centre not in torus:
        raise ValueError(f"centre {centre} is outside the torus of {torus.planes} planes x {torus.slots} slots")
    root = isqrt(servers - 1) + 1  # ceil(sqrt(n)) without rounding errors
    width = min(root, torus.slots)
    height = ceil(servers / width)
    if height > torus.planes:
        height = torus.planes
        width = ceil(servers / height)
    return Box(centre.plane - height // 2, centre.slot - width // 2, height, width)


def rotation(centre: Satellite, servers: int, torus: Torus) -> list[Satellite]:
    """Left to right, top to bottom in the window (paper, figure 4). Server 0 is the window's north-west corner."""
    return window_box(centre, servers, torus).satellites(torus)[:servers]


def hop(centre: Satellite, servers: int, torus: Torus) -> list[Satellite]:
    """Rings of growing hop count around the centre, without a box (paper, figure 6). Server 0 is the centre."""
    window_box(centre, servers, torus)  # for its checks
    return _rings(centre, servers, Torus(torus.planes, torus.slots), None)


def rotation_hop(centre: Satellite, servers: int, torus: Torus) -> list[Satellite]:
    """Rings around the centre inside the window (paper, figures 7 and 8). Server 0 is the centre."""
    box = window_box(centre, servers, torus)
    return _rings(centre, servers, Torus(torus.planes, torus.slots), frozenset(box.satellites(torus)))


def substitute(servers: list[Satellite], lost: Collection[Satellite], centre: Satellite, torus: Torus) -> list[Satellite]:
    """Return the same servers, with a stand-in for each lost satellite.

    A stand-in is the satellite nearest to the centre that is neither lost nor a server. Where none is left, the satellites
    that are there stand in once more, the nearest first: one satellite then holds the shares of several servers, which costs
    it room and time but no deadline. Other servers stay where they are, so only shares of lost satellites are missing; and
    whoever knows of the same losses finds the same places. Lost satellites stay only when all satellites are lost.
    """
    if not any(satellite in lost for satellite in servers):
        return servers
    taken = set(servers)
    alive = [satellite for satellite in hop(centre, torus.planes * torus.slots, torus) if satellite not in lost]
    if not alive:
        return servers
    spares = chain((satellite for satellite in alive if satellite not in taken), cycle(alive))
    return [next(spares) if satellite in lost else satellite for satellite in servers]


LAYOUTS: dict[LayoutName, Layout] = {"rotation": rotation, "hop": hop, "rotation_hop": rotation_hop}


def _rings(centre: Satellite, servers: int, torus: Torus, box: frozenset[Satellite] | None) -> list[Satellite]:
    """Breadth first from the centre, each satellite's neighbours in the order north, east, south, west.

    The order within a ring is the one of the paper's figures: figure 7 (centre slot 4 of plane 3, nine servers) has
    chunks 6, 3 and 8 in slot 5 of planes 2, 3 and 4. A cut seam does not matter: a layout is about places, not links.
    """
    found = {centre: None}  # a dict keeps the order of discovery
    frontier = [centre]
    while len(found) < servers:
        ring: list[Satellite] = []
        for satellite in frontier:
            for direction in Direction:
                neighbour = torus.neighbour(satellite, direction)
                if neighbour is not None and neighbour not in found and (box is None or neighbour in box):
                    found[neighbour] = None
                    ring.append(neighbour)
        assert ring, "a box on a torus is connected"
        frontier = ring
    return list(found)[:servers]
