"""Losses that a block survives in a layout, and what the layout costs: hops, and shares that move with the window."""

from collections import Counter
from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

from skymemory.sky.placement.layouts import LAYOUT_IDS, LayoutName
from skymemory.sky.placement.rolling_layout import Cell, RollingLayout
from skymemory.sky.placement.torus import Torus
from skymemory.wire.address import Satellite


class Tolerated(NamedTuple):
    """Losses of one kind that no block notices, wherever they are. A satellite has one chunk of each row."""

    satellites: int
    """Satellites of which any so many may be lost."""
    planes: int
    """Whole planes of which any so many may be lost."""
    slots: int
    """Slots of which any so many may be lost, each in all planes."""

    @classmethod
    def of(cls, satellites: Iterable[Satellite], parity: int) -> "Tolerated":
        """Count for servers on distinct satellites."""
        placed = list(satellites)
        planes, slots = (_most(Counter(axis).values(), parity) for axis in zip(*placed, strict=True))
        return cls(parity, planes, slots)


class Comparison(NamedTuple):
    """A layout among others."""

    layout: LayoutName
    in_plane: int
    """Servers in the plane that has most."""
    in_slot: int
    """Servers in the slot that has most."""
    tolerated: Tolerated
    hops_mean: float
    """Hops from the centre to a server, on average over all places of the window."""
    hops_most: int
    """Hops from the centre to the farthest server in some place of the window."""
    moved_by_slot: float
    """Servers that move when the window moves by a slot, on average."""
    moved_by_plane: float
    """Servers that move when the window moves by a plane, on average."""


def compare(servers: int, parity: int, torus: Torus, centre: Satellite) -> list[Comparison]:
    """Compare all layouts. The counts are the same wherever the window is: servers that share a plane (slot) never part.

    Raises:
        ValueError: Servers or centre do not fit the torus.
    """
    return [_compared(name, servers, parity, torus, centre) for name in LAYOUT_IDS]


def _compared(name: LayoutName, servers: int, parity: int, torus: Torus, centre: Satellite) -> Comparison:
    layout = RollingLayout.around(name, servers, torus, centre)
    placed = layout.servers_at(Cell(*centre))
    moves = name != "hop"
    # While the window rolls each server comes to each cell of it, equally often.
    hops = [torus.hops(centre, satellite) for satellite in (_window(layout, torus, centre) if moves else placed)]
    planes, slots = (Counter(axis).most_common(1)[0][1] for axis in zip(*placed, strict=True))
    return Comparison(
        layout=name,
        in_plane=planes,
        in_slot=slots,
        tolerated=Tolerated.of(placed, parity),
        hops_mean=sum(hops) / len(hops),
        hops_most=max(hops),
        moved_by_slot=servers / layout.width if moves and layout.width < torus.slots else 0.0,
        moved_by_plane=servers / layout.height if moves and layout.height < torus.planes else 0.0,
    )


def _window(layout: RollingLayout, torus: Torus, centre: Satellite) -> list[Satellite]:
    """Return the satellites of all cells of the window."""
    return [satellite for satellite in torus.satellites() if layout.in_window(Cell(*centre), satellite)]


def _most(counts: Iterable[int], parity: int) -> int:
    """Return how many of the fullest planes (slots) have together no more servers than there is parity."""
    return sum(lost <= parity for lost in accumulate(sorted(counts, reverse=True)))
