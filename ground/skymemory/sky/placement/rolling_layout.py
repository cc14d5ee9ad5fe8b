"""Places of servers while the window rolls over the torus, by the core's rules (`sky_placement.h`, `sky_window.h`).

Coordinates of the window are *unrolled*: they go on past the last plane and slot, and the satellite is found by wrapping them. A
layout is laid out once. From then on a server keeps to its residues: it sits on the one cell of the window whose plane has the
same remainder modulo the window's height, and whose slot has the same remainder modulo its width, as its first cell had. Whatever
step the window makes, servers inside stay where they are, and those that fall out go to a cell that has come in. A step along a
plane moves chunks within their plane only (paper, sections 3.5 and 3.7). The hop-aware layout never moves.
"""

import ctypes
from typing import NamedTuple, Self

from skymemory.sky.placement import structures
from skymemory.sky.placement.core_library import from_core, library
from skymemory.sky.placement.layouts import LayoutName, lay_out
from skymemory.sky.placement.torus import Torus
from skymemory.wire.address import Satellite


class Cell(NamedTuple):
    """A place on the unrolled grid."""

    plane: int
    slot: int


class RollingLayout:
    """A layout around a centre that moves. Thread-safe: it never changes."""

    def __init__(self, placement: structures.Placement) -> None:
        """Wrap a placement that nobody changes any more."""
        self._placement = placement
        self._at = ctypes.byref(placement)
        self._core = library()
        self.servers: int = placement.servers
        self.height: int = placement.height
        """Height of the window, in planes."""
        self.width: int = placement.width
        """Width of the window, in slots."""

    @classmethod
    def around(cls, name: LayoutName, servers: int, torus: Torus, origin: Satellite, steps: tuple[int, int] = (1, 1)) -> Self:
        """Lay servers out around `origin`, which is the first centre: `Cell(*origin)`.

        Args:
            steps: Planes and slots that the centre moves in one step, at most. A window that jumps so far that it meets its own
                other end around the torus could not leave in place what stays inside. On such an axis servers keep their plane
                (slot) for ever, and the window is as large as the torus.

        Raises:
            ValueError: Servers or origin do not fit the torus.
        """
        placement = lay_out(name, origin, servers, torus)
        library().SKY_Placement_AllowSteps(ctypes.byref(placement), *steps)
        return cls(placement)

    def servers_at(self, centre: Cell) -> list[Satellite]:
        """Return the satellites of servers 0 to n - 1, all distinct, while the window's centre is at a cell."""
        found = (structures.Addr * self.servers)()
        self._core.SKY_Window_Servers(self._at, structures.Cell(*centre), found)
        return from_core(found)

    def in_window(self, centre: Cell, satellite: Satellite) -> bool:
        """Return True if a satellite is in the window; with the hop-aware layout it never is."""
        return bool(self._core.SKY_Window_Covers(self._at, structures.Cell(*centre), structures.Addr(*satellite)))

    def successor(self, before: Cell, after: Cell, satellite: Satellite) -> Satellite | None:
        """Return the satellite that takes over from `satellite` when the window moves from `before` to `after`.

        The result is None if the satellite was not in the window, or stays.
        """
        cells = structures.Cell(*before), structures.Cell(*after)
        found = self._core.SKY_Window_Heir(self._at, *cells, structures.Addr(*satellite))
        heir = Satellite(found.plane, found.slot)
        return None if heir == satellite else heir
