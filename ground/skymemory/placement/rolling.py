"""Where servers are while the window rolls over the torus: the same rule as `sky_placement.c` on board (a test holds the two
against each other).

Coordinates of the window are *unrolled*: they go on past the last plane and slot, and the satellite is found by wrapping them. A
layout is laid out once. From then on a server keeps to its residues: it sits on the one cell of the window whose plane has the
same remainder modulo the window's height, and whose slot has the same remainder modulo its width, as its first cell had. So
whatever step the window makes, what stays inside stays where it is, and what falls out goes to a cell that has come in; a step
along a plane moves chunks within their plane only (paper, sections 3.5 and 3.7). Nothing of the hop-aware layout moves.
"""

from typing import NamedTuple

from skymemory.placement.layouts import LAYOUTS, LayoutName, window_box
from skymemory.placement.torus import Satellite, Torus


class Cell(NamedTuple):
    """A place on the unrolled grid."""

    plane: int
    slot: int


class RollingLayout:
    """A layout around a centre that moves."""

    def __init__(
        self, layout_name: LayoutName, servers: int, torus: Torus, origin: Satellite, steps: tuple[int, int] = (1, 1)
    ) -> None:
        """Lay it out around `origin`, which is the first centre: `Cell(*origin)`.

        Args:
            steps: planes and slots that the centre moves in one step, at most. A window that jumps so far that it meets its
                own other end around the torus could not leave in place what stays inside; on such an axis servers keep their
                plane (slot) for ever, and the window is as large as the torus.

        Raises:
            ValueError: servers or origin do not fit the torus.
        """
        box = window_box(origin, servers, torus)
        at_first = LAYOUTS[layout_name](origin, servers, torus)
        self.layout_name, self.servers, self.torus, self.origin, self.steps = layout_name, servers, torus, origin, steps
        self.height = box.height if box.height + steps[0] <= torus.planes else torus.planes
        """of the window, in planes"""
        self.width = box.width if box.width + steps[1] <= torus.slots else torus.slots
        """of the window, in slots"""
        self._first = [
            Cell(
                box.north + (satellite.plane - box.north) % torus.planes,
                box.west + (satellite.slot - box.west) % torus.slots,
            )
            for satellite in at_first
        ]

    def servers_at(self, centre: Cell) -> list[Satellite]:
        """Satellites of servers 0 to n - 1, all distinct, while the window's centre is there."""
        if self.layout_name == "hop":
            return [self.torus.wrap(*cell) for cell in self._first]
        return [self._keep(cell, centre) for cell in self._first]

    def in_window(self, centre: Cell, satellite: Satellite) -> bool:
        """Is a satellite in the window? With the hop-aware layout: never."""
        return self._cell(centre, satellite) is not None

    def successor(self, before: Cell, after: Cell, satellite: Satellite) -> Satellite | None:
        """Where what a satellite held in the window around `before` is to be in that around `after`; None: it was not in the
        window, or it stays."""
        cell = self._cell(before, satellite)
        heir = satellite if cell is None else self._keep(cell, after)
        return None if heir == satellite else heir

    def _corner(self, centre: Cell) -> Cell:
        """North-west in the window: an even size has no middle and reaches one further there."""
        return Cell(centre.plane - self.height // 2, centre.slot - self.width // 2)

    def _cell(self, centre: Cell, satellite: Satellite) -> Cell | None:
        """Of a satellite in the window; None: it is not inside."""
        if self.layout_name == "hop" or satellite not in self.torus:
            return None
        corner = self._corner(centre)
        planes, slots = (satellite.plane - corner.plane) % self.torus.planes, (satellite.slot - corner.slot) % self.torus.slots
        return Cell(corner.plane + planes, corner.slot + slots) if planes < self.height and slots < self.width else None

    def _keep(self, cell: Cell, centre: Cell) -> Satellite:
        """Where in the window around `centre` a server sits that was on a cell."""
        corner = self._corner(centre)
        return self.torus.wrap(
            corner.plane + (cell.plane - corner.plane) % self.height, corner.slot + (cell.slot - corner.slot) % self.width
        )
