"""Mappings of servers to satellites: layouts before and after rotations."""

from typing import Final

from skymemory.simulate.published_mapping import published_places
from skymemory.sky.placement.layouts import LayoutName
from skymemory.sky.placement.rolling_layout import Cell, RollingLayout
from skymemory.sky.placement.torus import Torus
from skymemory.wire.address import Satellite

LAYOUT_TEXTS: dict[LayoutName, str] = {
    "rotation": "rotation-aware",
    "hop": "hop-aware (on board)",
    "rotation_hop": "rotation- and hop-aware",
    "all_planes": "over all planes",
}
"""Names of the layouts; three are the paper's."""
PAPER_LAYOUTS: Final[tuple[LayoutName, ...]] = ("rotation", "hop", "rotation_hop")


def places(
    name: LayoutName, centre: Satellite, servers: int, torus: Torus, *, rotations: int = 0, published: bool = False
) -> list[Satellite]:
    """Return the satellite of each server after some rotations; the first is server 1 in figures.

    With a rotation the sky moves one slot on. The satellite west of the centre becomes the centre, and the chunks of the window's
    easternmost column go to the column that enters in the west; all others stay (paper, sections 3.5 and 3.7, figures 5 and 8).
    The hop-aware layout never moves: its centre is the satellite that has the model on board.

    Args:
        centre: Centre before the first rotation.
        rotations: Number of rotations, 0 or more.
        published: True for the mapping of the authors' simulator, with its faults: there may be fewer satellites than servers, or
            the same one twice, or one at a slot that is not on the torus.

    Raises:
        ValueError: Servers or centre do not fit the torus, or no such mapping was published.
    """
    if published and name not in PAPER_LAYOUTS:
        raise ValueError(f"the layout {name} was not published; allowed are {', '.join(PAPER_LAYOUTS)}")
    layout = RollingLayout.around(name, servers, torus, centre)  # this checks the arguments
    if published:
        return published_places(name, centre, servers, torus, rotations)
    return layout.servers_at(Cell(centre.plane, centre.slot - rotations))


def centre_after(name: LayoutName, centre: Satellite, torus: Torus, rotations: int, *, published: bool = False) -> Satellite:
    """Return the satellite in the middle after some rotations; the authors' simulator moves the hop-aware one as well."""
    return centre if name == "hop" and not published else torus.wrap(centre.plane, centre.slot - rotations)
