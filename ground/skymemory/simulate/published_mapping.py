"""Mappings of the authors' public simulator, with all its faults.

They are for comparison only; satellites use `placement.layouts`. The faults, in the order of this file:

1. The window is ceil(sqrt(n)) satellites wide, *made odd downward*: 10 to 16 servers get 3 x 3 cells. In the rotation-
   and hop-aware mapping, the other servers are not placed, and their simulation fails.
2. In the rotation-aware mapping, they go on in plane 1, wherever the window is.
3. A window that leaves the grid in the east or south comes back one too far: behind the last slot comes the second.
4. In the rotation-aware mapping, only the first column of a window that wraps in the east or west is used, again and again.
5. In the rotation-aware mapping, a window that wraps in the north or south goes from its first plane to plane 1.
6. Going west from slot 1 does not wrap: slot 0, -1, ... are used, and the slot that is meant is never reached.
7. A window wider than the grid overlaps itself, and may then miss its own centre.
8. In the hop-aware mapping, a rotation moves one column of the rings as if they had a window.
9. As many rotations as there are slots count as none, although chunks moved each time.

The paper's sweep (15 x 15, centre 8,8, odd squares of servers, no rotation) touches none of them.
"""

from math import isqrt
from typing import NamedTuple

from skymemory.sky.placement.layouts import LayoutName
from skymemory.sky.placement.torus import Torus
from skymemory.wire.address import Satellite


class _Span(NamedTuple):
    """First and last number of the window on one axis; the first is larger when it wraps."""

    first: int
    last: int

    def __contains__(self, number: object) -> bool:
        assert isinstance(number, int)
        if self.first < self.last:
            return self.first <= number <= self.last
        return number >= self.first or number <= self.last


def published_places(name: LayoutName, centre: Satellite, servers: int, torus: Torus, rotations: int) -> list[Satellite]:
    """Return `mapping.places` with `published`; arguments are already checked."""
    if name == "rotation":
        satellites = _row_by_row(_span(centre.plane, servers, torus.planes), _span(centre.slot, servers, torus.slots), servers)
    else:
        satellites = _rings(centre, servers, torus, window=name == "rotation_hop")
    for rotation in range(rotations % torus.slots):
        before, after = (torus.wrap(centre.plane, centre.slot - count).slot for count in (rotation, rotation + 1))
        leaves, enters = _span(before, servers, torus.slots).last, _span(after, servers, torus.slots).first
        satellites = [place._replace(slot=enters) if place.slot == leaves else place for place in satellites]
    return satellites


def _span(middle: int, servers: int, size: int) -> _Span:
    arm = isqrt(servers - 1) // 2  # fault 1: the window is one short when ceil(sqrt(n)) is even
    first, last = middle - arm, middle + arm
    return _Span(first + size if first < 1 else first, last - size + 1 if last > size else last)  # faults 3 and 7


def _row_by_row(planes: _Span, slots: _Span, servers: int) -> list[Satellite]:
    satellites = []
    plane, slot = planes.first, slots.first
    for _ in range(servers):
        satellites.append(Satellite(plane, slot))
        slot += 1
        if slot > slots.last:  # fault 4: true at once where the window wraps
            slot = slots.first
            plane = 1 if plane + 1 > planes.last else plane + 1  # faults 2 and 5
    return satellites


def _rings(centre: Satellite, servers: int, torus: Torus, *, window: bool) -> list[Satellite]:
    planes, slots = _span(centre.plane, servers, torus.planes), _span(centre.slot, servers, torus.slots)
    found: dict[Satellite, None] = {}
    frontier = [centre]
    while frontier and len(found) < servers:
        reached = []
        for place in frontier:
            if place not in found and len(found) < servers and (not window or (place.plane in planes and place.slot in slots)):
                found[place] = None
                reached.append(place)
        frontier = [neighbour for place in reached for neighbour in _neighbours(place, torus)]
    return list(found)  # fault 1: a full window has no room for all


def _neighbours(place: Satellite, torus: Torus) -> tuple[Satellite, ...]:
    plane, slot = place
    return (
        Satellite(plane - 1 or torus.planes, slot),
        Satellite(plane, 1 if slot + 1 > torus.slots else slot + 1),
        Satellite(1 if plane + 1 > torus.planes else plane + 1, slot),
        Satellite(plane, slot - 1),  # fault 6
    )
