"""Servers while the window rolls: what moves, and what does not."""

from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skymemory.sky.placement.layouts import LAYOUT_IDS, LayoutName
from skymemory.sky.placement.rolling_layout import Cell, RollingLayout
from skymemory.sky.placement.torus import Torus
from skymemory.wire.address import Satellite

names = st.sampled_from(sorted(LAYOUT_IDS))


@st.composite
def tori(draw: st.DrawFn) -> Torus:
    return Torus(draw(st.integers(1, 9)), draw(st.integers(1, 20)), draw(st.booleans()))


class Path(NamedTuple):
    """A layout and a way of its centre, in steps as far as it allows."""

    name: LayoutName
    torus: Torus
    layout: RollingLayout
    cells: list[Cell]


@st.composite
def paths(draw: st.DrawFn) -> Path:
    torus = draw(tori())
    origin = Satellite(draw(st.integers(1, torus.planes)), draw(st.integers(1, torus.slots)))
    steps = draw(st.integers(0, torus.planes // 2)), draw(st.integers(0, torus.slots // 2))
    name = draw(names)
    layout = RollingLayout.around(name, draw(st.integers(1, torus.planes * torus.slots)), torus, origin, steps)
    moves = st.tuples(*(st.one_of(st.sampled_from([0, -far, far]), st.integers(-far, far)) for far in steps))
    cells = [Cell(*origin)]
    for planes, slots in draw(st.lists(moves, max_size=30)):
        cells.append(Cell(cells[-1].plane + planes, cells[-1].slot + slots))
    return Path(name, torus, layout, cells)


@given(paths())
def test_at_first_it_is_the_layout(path: Path) -> None:
    """A window that makes no steps has the layout's own servers, however small it is."""
    name, torus, layout, (first, *_) = path
    still = RollingLayout.around(name, layout.servers, torus, Satellite(*first), (0, 0))
    assert layout.servers_at(first) == still.servers_at(first)


@given(paths())
def test_servers_are_in_the_window_and_distinct_wherever_it_is(path: Path) -> None:
    name, torus, layout, cells = path
    for cell in cells:
        satellites = layout.servers_at(cell)
        assert len(set(satellites)) == layout.servers
        assert all(satellite in torus for satellite in satellites)
        assert all(layout.in_window(cell, satellite) is (name != "hop") for satellite in satellites)
        inside = sum(layout.in_window(cell, satellite) for satellite in torus.satellites())
        assert inside == (0 if name == "hop" else layout.height * layout.width)


@given(paths())
def test_a_step_moves_only_what_falls_out(path: Path) -> None:
    _, _, layout, cells = path
    for before, after in pairwise(cells):
        for here, there in zip(layout.servers_at(before), layout.servers_at(after), strict=True):
            if here == there:
                continue
            assert not layout.in_window(after, here)
            assert not layout.in_window(before, there)  # so who receives has nothing to send
            assert before.plane != after.plane or here.plane == there.plane
            assert before.slot != after.slot or here.slot == there.slot


@given(paths())
def test_successors_lead_to_the_servers(path: Path) -> None:
    """Step by step, and from any window straight to the last one."""
    _, _, layout, cells = path
    last = layout.servers_at(cells[-1])
    at = layout.servers_at(cells[0])
    for before, after in pairwise(cells):
        at = [layout.successor(before, after, satellite) or satellite for satellite in at]
        straight = [layout.successor(before, cells[-1], satellite) or satellite for satellite in layout.servers_at(before)]
        assert straight == last
    assert at == last


@given(paths())
def test_nothing_moves_around_a_model_on_board(path: Path) -> None:
    _, torus, like, cells = path
    layout = RollingLayout.around("hop", like.servers, torus, Satellite(*cells[0]), (torus.planes, torus.slots))
    assert all(layout.servers_at(cell) == layout.servers_at(cells[0]) for cell in cells)
    for satellite in torus.satellites():
        assert layout.successor(cells[0], cells[-1], satellite) is None


def test_a_plane_jump_moves_one_row() -> None:
    layout = RollingLayout.around("rotation", 9, Torus(5, 19), Satellite(3, 4))
    before, after = layout.servers_at(Cell(3, 4)), layout.servers_at(Cell(4, 4))
    assert before[:3] == [Satellite(2, 3), Satellite(2, 4), Satellite(2, 5)]
    assert after == [Satellite(5, 3), Satellite(5, 4), Satellite(5, 5), *before[3:]]


def test_a_window_that_would_meet_its_other_end_keeps_the_axis() -> None:
    """Three of four planes and a jump over two: plane 2 stays inside and would have to take the share of plane 3."""
    torus, origin = Torus(4, 19), Satellite(2, 4)
    one, two = (RollingLayout.around("rotation", 9, torus, origin, steps) for steps in ((1, 1), (2, 1)))
    assert (one.height, two.height) == (3, 4)
    assert one.servers_at(Cell(4, 4))[0] == Satellite(4, 3)
    assert two.servers_at(Cell(4, 4)) == two.servers_at(Cell(*origin)) == one.servers_at(Cell(*origin))


@pytest.mark.parametrize("name", sorted(LAYOUT_IDS))
def test_wrong_arguments(name: LayoutName) -> None:
    with pytest.raises(ValueError, match="96 servers; allowed are 1 to 95"):
        RollingLayout.around(name, 96, Torus(5, 19), Satellite(3, 4))
    with pytest.raises(ValueError, match=r"centre \[6, 1\] is outside the torus"):
        RollingLayout.around(name, 9, Torus(5, 19), Satellite(6, 1))
