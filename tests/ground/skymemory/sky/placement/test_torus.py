"""The +GRID torus."""

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from skymemory.sky.placement.torus import Direction, Torus
from skymemory.wire.address import Satellite
from support import flight_core as core


@st.composite
def tori(draw: st.DrawFn) -> Torus:
    return Torus(draw(st.integers(1, 9)), draw(st.integers(1, 12)), draw(st.booleans()))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Torus, Satellite, Satellite]:
    torus = draw(tori())
    ends = st.builds(Satellite, st.integers(1, torus.planes), st.integers(1, torus.slots))
    return torus, draw(ends), draw(ends)


def breadth_first(torus: Torus, origin: Satellite) -> dict[Satellite, int]:
    found, queue = {origin: 0}, deque([origin])
    while queue:
        here = queue.popleft()
        for there in torus.neighbours(here).values():
            if there not in found:
                found[there] = found[here] + 1
                queue.append(there)
    return found


@given(pairs())
def test_hops_are_the_shortest_way(case: tuple[Torus, Satellite, Satellite]) -> None:
    torus, origin, target = case
    assert torus.hops(origin, target) == torus.hops(target, origin) == breadth_first(torus, origin)[target]


@given(pairs())
def test_next_hops_lead_there_without_detour(case: tuple[Torus, Satellite, Satellite]) -> None:
    torus, here, target = case
    for left in range(torus.hops(here, target), 0, -1):
        direction = core.next_hop(torus, here, target)
        assert direction is not None
        if here.plane != target.plane:
            assert direction in (Direction.NORTH, Direction.SOUTH)  # plane first, as in the paper
        neighbour = torus.neighbour(here, direction)
        assert neighbour is not None
        assert torus.hops(neighbour, target) == left - 1
        here = neighbour
    assert here == target
    assert core.next_hop(torus, here, target) is None


@given(tori())
def test_links_lead_both_ways(torus: Torus) -> None:
    back = {
        Direction.NORTH: Direction.SOUTH,
        Direction.SOUTH: Direction.NORTH,
        Direction.EAST: Direction.WEST,
        Direction.WEST: Direction.EAST,
    }
    satellites = list(torus.satellites())
    assert len(satellites) == len(set(satellites)) == torus.planes * torus.slots
    for satellite in satellites:
        assert satellite in torus
        for direction, neighbour in torus.neighbours(satellite).items():
            assert neighbour in torus
            assert torus.neighbour(neighbour, back[direction]) == satellite


def test_paper_directions_and_ties() -> None:
    torus = Torus(4, 6)
    assert core.next_hop(torus, Satellite(1, 1), Satellite(4, 1)) is Direction.NORTH
    assert core.next_hop(torus, Satellite(1, 1), Satellite(1, 6)) is Direction.WEST
    assert core.next_hop(torus, Satellite(1, 1), Satellite(3, 1)) is Direction.SOUTH  # tie
    assert core.next_hop(torus, Satellite(1, 1), Satellite(1, 4)) is Direction.EAST  # tie
    assert core.next_hop(Torus(4, 6, seam_cut=True), Satellite(1, 1), Satellite(4, 1)) is Direction.SOUTH


def test_what_is_no_satellite() -> None:
    torus = Torus(5, 19)
    assert all(other not in torus for other in (Satellite(0, 1), Satellite(6, 1), Satellite(1, 20), (1,), "a", None))
    assert torus.wrap(0, 0) == Satellite(5, 19)
    assert str(Satellite(3, 10)) == "[3, 10]"


def test_the_middle() -> None:
    assert [Torus(5, 19).middle, Torus(4, 6).middle, Torus(1, 1).middle] == [(3, 10), (2, 3), (1, 1)]
