"""Where servers are after rotations, and that the published mapping has the faults it is said to have, and no others.

Expected places under "published" were printed by the authors' public simulator (github.com/patompa/skymemory, commit 28d5f84)
for these arguments.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skymemory.simulate.mapping import PAPER_LAYOUTS, centre_after, places
from skymemory.sky.placement.layouts import LAYOUT_IDS, LayoutName
from skymemory.sky.placement.rolling_layout import Cell, RollingLayout
from skymemory.sky.placement.torus import Torus
from skymemory.wire.address import Satellite

PAPER = Torus(5, 19)
CENTRE = Satellite(3, 4)
layouts = st.sampled_from(sorted(LAYOUT_IDS))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Torus, Satellite, int]:
    torus = Torus(draw(st.integers(1, 9)), draw(st.integers(1, 20)))
    centre = Satellite(draw(st.integers(1, torus.planes)), draw(st.integers(1, torus.slots)))
    return torus, centre, draw(st.integers(1, torus.planes * torus.slots))


def test_figure_8() -> None:
    """Chunks 6, 3 and 8 go from slot 5 to slot 2, in planes 2, 3 and 4; the others stay."""
    before, after = (places("rotation_hop", CENTRE, 9, PAPER, rotations=count) for count in (0, 1))
    moved = {server: satellite for server, satellite in enumerate(after, start=1) if satellite != before[server - 1]}
    assert moved == {6: Satellite(2, 2), 3: Satellite(3, 2), 8: Satellite(4, 2)}


@given(layouts, cases())
def test_no_rotation_is_the_layout(layout: LayoutName, case: tuple[Torus, Satellite, int]) -> None:
    torus, centre, servers = case
    rolling = RollingLayout.around(layout, servers, torus, centre)
    assert places(layout, centre, servers, torus) == rolling.servers_at(Cell(*centre))


@given(st.sampled_from(["rotation", "rotation_hop", "all_planes"]), cases(), st.integers(0, 60))
def test_a_rotation_moves_the_easternmost_column_to_the_west(
    layout: LayoutName, case: tuple[Torus, Satellite, int], rotations: int
) -> None:
    torus, centre, servers = case
    before, after = (places(layout, centre, servers, torus, rotations=count) for count in (rotations, rotations + 1))
    box = RollingLayout.around(layout, servers, torus, centre, (0, 0))
    west = centre_after(layout, centre, torus, rotations).slot - box.width // 2
    leaves, enters = torus.wrap(1, west + box.width - 1).slot, torus.wrap(1, west - 1).slot
    assert after == [satellite._replace(slot=enters) if satellite.slot == leaves else satellite for satellite in before]
    assert len(set(after)) == servers
    middle = Cell(*centre_after(layout, centre, torus, rotations + 1))
    assert all(box.in_window(middle, satellite) for satellite in after)


@given(cases(), st.integers(0, 60))
def test_nothing_moves_around_a_model_on_board(case: tuple[Torus, Satellite, int], rotations: int) -> None:
    torus, centre, servers = case
    assert places("hop", centre, servers, torus, rotations=rotations) == places("hop", centre, servers, torus)
    assert centre_after("hop", centre, torus, rotations) == centre


@given(
    st.sampled_from(PAPER_LAYOUTS),
    st.integers(1, 4).map(lambda arm: (2 * arm + 1) ** 2),
    st.integers(0, 3),
)
def test_inside_the_grid_odd_squares_are_published_as_they_should_be(layout: LayoutName, servers: int, rotations: int) -> None:
    """Why the paper's sweep does not show a fault."""
    torus, centre = Torus(15, 15), Satellite(8, 8)
    rotations = 0 if layout == "hop" else rotations
    published = places(layout, centre, servers, torus, rotations=rotations, published=True)
    assert published == places(layout, centre, servers, torus, rotations=rotations)


@pytest.mark.parametrize(
    ("layout", "centre", "servers", "rotations", "expected"),
    [
        pytest.param(
            "rotation", (3, 4), 10, 0,
            [(2, 3), (2, 4), (2, 5), (3, 3), (3, 4), (3, 5), (4, 3), (4, 4), (4, 5), (1, 3)], id="2: the tenth of ten servers",
        ),
        pytest.param(
            "rotation_hop", (3, 4), 10, 0,
            [(3, 4), (2, 4), (3, 5), (4, 4), (3, 3), (2, 5), (2, 3), (4, 5), (4, 3)], id="1: the tenth is nowhere",
        ),
        pytest.param(
            "rotation_hop", (3, 19), 9, 0,
            [(3, 19), (2, 19), (3, 1), (4, 19), (3, 18), (2, 1), (2, 18), (3, 2), (4, 1)], id="3: slot 2 behind the last but one",
        ),
        pytest.param("rotation_hop", (3, 4), 49, 0, [], id="7: not even the centre is in the window"),
        pytest.param(
            "rotation", (3, 19), 9, 0,
            [(2, 18), (3, 18), (4, 18), (1, 18), (2, 18), (3, 18), (4, 18), (1, 18), (2, 18)], id="4: one column for all",
        ),
        pytest.param(
            "rotation", (5, 4), 9, 0,
            [(4, 3), (4, 4), (4, 5), (1, 3), (1, 4), (1, 5), (2, 3), (2, 4), (2, 5)], id="5: plane 5 is left out",
        ),
        pytest.param(
            "hop", (3, 1), 9, 0,
            [(3, 1), (2, 1), (3, 2), (4, 1), (3, 0), (1, 1), (2, 2), (2, 0), (3, 3)], id="6: slot 0",
        ),
        pytest.param(
            "hop", (3, 4), 9, 1,
            [(3, 4), (2, 4), (3, 2), (4, 4), (3, 3), (1, 4), (2, 2), (2, 3), (3, 6)], id="8: a column of rings",
        ),
        pytest.param(
            "rotation_hop", (3, 4), 9, 19,
            [(3, 4), (2, 4), (3, 5), (4, 4), (3, 3), (2, 5), (2, 3), (4, 5), (4, 3)], id="9: a whole turn is none",
        ),
        pytest.param(
            "rotation_hop", (3, 4), 9, 2,
            [(3, 1), (2, 1), (3, 2), (4, 1), (3, 3), (2, 2), (2, 3), (4, 2), (4, 3)], id="two rotations",
        ),
    ],
)  # fmt: skip
def test_published(
    layout: LayoutName, centre: tuple[int, int], servers: int, rotations: int, expected: list[tuple[int, int]]
) -> None:
    assert places(layout, Satellite(*centre), servers, PAPER, rotations=rotations, published=True) == expected


def test_wrong_arguments() -> None:
    for published in (False, True):
        with pytest.raises(ValueError, match="96 servers; allowed are 1 to 95"):
            places("rotation", CENTRE, 96, PAPER, published=published)
        with pytest.raises(ValueError, match=r"centre \[6, 1\] is outside the torus"):
            places("hop", Satellite(6, 1), 9, PAPER, published=published)


def test_only_the_papers_layouts_were_published() -> None:
    with pytest.raises(ValueError, match="all_planes was not published; allowed are rotation, hop, rotation_hop"):
        places("all_planes", CENTRE, 9, PAPER, published=True)
