"""The +GRID: a torus of planes x slots, four neighbours each (paper, section 4 and figure 3).

The rules are those of `sky_torus.c` on board; a test holds the two against each other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from skymemory.wire.address import Satellite


class Direction(Enum):
    """The four inter-satellite links, in the order of the flight core's numbers; values name them on command lines."""

    NORTH = "north"
    """Link to the neighbouring plane with the lower number."""
    EAST = "east"
    """Link to the next slot, which flies ahead."""
    SOUTH = "south"
    """Link to the neighbouring plane with the higher number."""
    WEST = "west"
    """Link to the previous slot, which follows."""


_STEP = {Direction.NORTH: (-1, 0), Direction.EAST: (0, 1), Direction.SOUTH: (1, 0), Direction.WEST: (0, -1)}


@dataclass(frozen=True, slots=True)
class Torus:
    """Size of the grid, and whether the seam (last plane to first plane) has no links, as in a Walker star."""

    planes: int
    slots: int
    seam_cut: bool = False

    def __contains__(self, satellite: object) -> bool:
        return (
            isinstance(satellite, tuple)
            and len(satellite) == 2
            and 1 <= satellite[0] <= self.planes
            and 1 <= satellite[1] <= self.slots
        )

    @property
    def middle(self) -> Satellite:
        """The satellite in the middle of the grid; of two the one with the lower number."""
        return Satellite(-(-self.planes // 2), -(-self.slots // 2))

    def satellites(self) -> Iterator[Satellite]:
        """Return all satellites, plane by plane."""
        return (Satellite(plane, slot) for plane in range(1, self.planes + 1) for slot in range(1, self.slots + 1))

    def wrap(self, plane: int, slot: int) -> Satellite:
        """Return the satellite at any integer coordinates; both axes wrap (a cut seam is about links, not about places)."""
        return Satellite((plane - 1) % self.planes + 1, (slot - 1) % self.slots + 1)

    def neighbour(self, satellite: Satellite, direction: Direction) -> Satellite | None:
        """Return the satellite at the other end of a link; None at the seam, and on an axis of one."""
        plane_step, slot_step = _STEP[direction]
        if plane_step:
            if self.planes == 1 or (self.seam_cut and not 1 <= satellite.plane + plane_step <= self.planes):
                return None
        elif self.slots == 1:
            return None
        return self.wrap(satellite.plane + plane_step, satellite.slot + slot_step)

    def neighbours(self, satellite: Satellite) -> dict[Direction, Satellite]:
        """Return the links of a satellite, with the satellites at their other ends."""
        ends = ((direction, self.neighbour(satellite, direction)) for direction in Direction)
        return {direction: end for direction, end in ends if end is not None}

    def plane_offset(self, origin: int, target: int) -> int:
        """Return the planes to go, the shorter way; positive is south. A tie goes south. A cut seam leaves one way only."""
        return target - origin if self.seam_cut else _offset(origin, target, self.planes)

    def slot_offset(self, origin: int, target: int) -> int:
        """Return the slots to go, the shorter way; positive is east. A tie goes east."""
        return _offset(origin, target, self.slots)

    def hops(self, origin: Satellite, target: Satellite) -> int:
        """Return the number of links on the shortest way."""
        return abs(self.plane_offset(origin.plane, target.plane)) + abs(self.slot_offset(origin.slot, target.slot))


def _offset(origin: int, target: int, size: int) -> int:
    forward = (target - origin) % size
    return forward if 2 * forward <= size else forward - size
