"""Where the servers are: the three layouts of the paper's simulation, and what rotations make of them."""

from skymemory.placement.layouts import LayoutName
from skymemory.placement.rolling import Cell, RollingLayout
from skymemory.placement.torus import Satellite, Torus
from skymemory.simulate.published import published_places

LAYOUT_TEXTS: dict[LayoutName, str] = {
    "rotation": "rotation-aware",
    "hop": "hop-aware (on board)",
    "rotation_hop": "rotation- and hop-aware",
}
"""as the paper calls them"""


def places(
    name: LayoutName, centre: Satellite, servers: int, torus: Torus, *, rotations: int = 0, published: bool = False
) -> list[Satellite]:
    """The satellite of each server, the first being server 1 in figures, after some rotations.

    With a rotation the sky moves one slot on: the satellite west of the centre becomes the centre, and the chunks of the
    window's easternmost column go to the column that enters in the west; all others stay (paper, sections 3.5 and 3.7,
    figures 5 and 8). Nothing of the hop-aware layout moves: its centre is the satellite that has the model on board.

    Args:
        centre: before the first rotation.
        rotations: 0 or more.
        published: as the authors' simulator has it, faults included: there may then be fewer satellites than servers, or
            the same one twice, or one at a slot that is not on the torus.

    Raises:
        ValueError: servers or centre do not fit the torus.
    """
    layout = RollingLayout.around(name, servers, torus, centre)  # which checks the arguments
    if published:
        return published_places(name, centre, servers, torus, rotations)
    return layout.servers_at(Cell(centre.plane, centre.slot - rotations))


def centre_after(name: LayoutName, centre: Satellite, torus: Torus, rotations: int, *, published: bool = False) -> Satellite:
    """The satellite in the middle after some rotations; the authors' simulator moves the hop-aware one as well."""
    return centre if name == "hop" and not published else torus.wrap(centre.plane, centre.slot - rotations)
