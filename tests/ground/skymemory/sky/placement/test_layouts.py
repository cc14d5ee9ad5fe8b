"""The layouts, against the paper's figures and for every size."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skymemory.sky.placement.layouts import LAYOUT_IDS, SERVERS_MAX, LayoutName, lay_out, nearest, substitute
from skymemory.sky.placement.rolling_layout import Cell, RollingLayout
from skymemory.sky.placement.torus import Torus
from skymemory.wire.address import Satellite

PAPER = Torus(5, 19)
FIGURE_CENTRE = Satellite(3, 4)
names = st.sampled_from(sorted(LAYOUT_IDS))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Torus, Satellite, int]:
    torus = Torus(draw(st.integers(1, 9)), draw(st.integers(1, 20)), draw(st.booleans()))
    centre = Satellite(draw(st.integers(1, torus.planes)), draw(st.integers(1, torus.slots)))
    return torus, centre, draw(st.integers(1, torus.planes * torus.slots))


def layout(name: LayoutName, centre: Satellite, servers: int, torus: Torus) -> list[Satellite]:
    return RollingLayout.around(name, servers, torus, centre).servers_at(Cell(*centre))


def window(centre: Satellite, servers: int, torus: Torus) -> RollingLayout:
    """As it is where the centre makes no steps."""
    return RollingLayout.around("rotation", servers, torus, centre, (0, 0))


def grid(satellites: list[Satellite], planes: range, slots: range) -> list[list[int]]:
    """Chunk numbers from 1 as the paper's figures draw them: planes downward, slots to the right."""
    return [[satellites.index(Satellite(plane, slot)) + 1 for slot in slots] for plane in planes]


def test_figure_7() -> None:
    """Centre slot 4 of plane 3, nine servers; chunks 6, 3 and 8 are about to leave in the east (figure 8)."""
    satellites = layout("rotation_hop", FIGURE_CENTRE, 9, PAPER)
    assert grid(satellites, range(2, 5), range(3, 6)) == [[7, 2, 6], [5, 1, 3], [9, 4, 8]]
    assert [satellites[chunk - 1] for chunk in (6, 3, 8)] == [Satellite(2, 5), Satellite(3, 5), Satellite(4, 5)]


def test_figure_4() -> None:
    satellites = layout("rotation", FIGURE_CENTRE, 9, PAPER)
    assert grid(satellites, range(2, 5), range(3, 6)) == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]


def test_figure_6_first_ring_and_the_start_of_the_second() -> None:
    satellites = layout("hop", FIGURE_CENTRE, 13, PAPER)
    assert satellites[:5] == [Satellite(3, 4), Satellite(2, 4), Satellite(3, 5), Satellite(4, 4), Satellite(3, 3)]
    assert satellites[5:8] == [Satellite(1, 4), Satellite(2, 5), Satellite(2, 3)]
    assert {PAPER.hops(FIGURE_CENTRE, satellite) for satellite in satellites[5:]} == {2}


def test_ten_servers_get_ten_cells() -> None:
    """The authors' simulator gives nine: its window is made odd downward."""
    box = window(FIGURE_CENTRE, 10, PAPER)
    assert (box.height, box.width) == (3, 4)
    inside = [satellite for satellite in PAPER.satellites() if box.in_window(Cell(*FIGURE_CENTRE), satellite)]
    assert inside == [Satellite(plane, slot) for plane in (2, 3, 4) for slot in (2, 3, 4, 5)]  # one further west than east
    assert len(set(layout("rotation", FIGURE_CENTRE, 10, PAPER))) == 10


def test_wraps_in_both_directions() -> None:
    first, last = (layout("rotation", centre, 9, PAPER) for centre in (Satellite(1, 1), Satellite(5, 19)))
    assert first == [Satellite(plane, slot) for plane in (5, 1, 2) for slot in (19, 1, 2)]
    assert last == [Satellite(plane, slot) for plane in (4, 5, 1) for slot in (18, 19, 1)]
    assert Satellite(1, 19) in layout("rotation_hop", Satellite(1, 1), 9, PAPER)


@given(names, cases())
def test_satellites_are_distinct_and_as_many_as_servers(name: LayoutName, case: tuple[Torus, Satellite, int]) -> None:
    torus, centre, servers = case
    satellites = layout(name, centre, servers, torus)
    assert len(satellites) == len(set(satellites)) == servers
    assert all(satellite in torus for satellite in satellites)


@given(cases())
def test_rings_start_at_the_centre_and_grow(case: tuple[Torus, Satellite, int]) -> None:
    torus, centre, servers = case
    plain = Torus(torus.planes, torus.slots)
    satellites = nearest(centre, servers, torus)
    assert satellites == layout("hop", centre, servers, torus)
    assert satellites[0] == centre
    distances = [plain.hops(centre, satellite) for satellite in satellites]
    assert distances == sorted(distances)
    outside = set(plain.satellites()) - set(satellites)
    assert all(plain.hops(centre, satellite) >= distances[-1] for satellite in outside)


@given(cases())
def test_rings_in_the_window_stay_in_it(case: tuple[Torus, Satellite, int]) -> None:
    torus, centre, servers = case
    satellites = layout("rotation_hop", centre, servers, torus)
    assert satellites[0] == centre
    box = window(centre, servers, torus)
    assert all(box.in_window(Cell(*centre), satellite) for satellite in satellites)


@given(cases())
def test_window_is_the_smallest_box(case: tuple[Torus, Satellite, int]) -> None:
    torus, centre, servers = case
    box = window(centre, servers, torus)
    assert 1 <= box.height <= torus.planes
    assert 1 <= box.width <= torus.slots
    assert box.height * box.width >= servers
    assert (box.height - 1) * box.width < servers
    assert box.in_window(Cell(*centre), centre)


@given(cases())
def test_a_window_over_all_planes_has_few_servers_in_each(case: tuple[Torus, Satellite, int]) -> None:
    torus, centre, servers = case
    rolling = RollingLayout.around("all_planes", servers, torus, centre)
    most = -(-servers // torus.planes)
    for plane in range(centre.plane, centre.plane + torus.planes):
        satellites = rolling.servers_at(Cell(plane, centre.slot))
        assert max(Counter(satellite.plane for satellite in satellites).values()) <= most
        if servers >= torus.planes:
            assert satellites == rolling.servers_at(Cell(*centre))  # jumps to other planes move nothing


@given(names, cases(), st.integers(-30, 30), st.integers(-30, 30))
def test_layouts_move_with_the_centre(name: LayoutName, case: tuple[Torus, Satellite, int], planes: int, slots: int) -> None:
    torus, centre, servers = case
    moved = layout(name, torus.wrap(centre.plane + planes, centre.slot + slots), servers, torus)
    assert moved == [
        torus.wrap(satellite.plane + planes, satellite.slot + slots) for satellite in layout(name, centre, servers, torus)
    ]


@given(names, cases(), st.data())
def test_lost_satellites_are_replaced_and_the_others_stay(
    name: LayoutName, case: tuple[Torus, Satellite, int], data: st.DataObject
) -> None:
    torus, centre, servers = case
    before = layout(name, centre, servers, torus)
    lost = data.draw(st.sets(st.sampled_from(list(torus.satellites()))))
    after = substitute(before, lost, centre, torus)
    assert len(after) == servers
    assert all(old == new for old, new in zip(before, after, strict=True) if old not in lost)
    alive = set(torus.satellites()) - lost
    if alive:
        assert not lost & set(after)
        assert len(set(after)) == min(servers, len(alive))
        shares = Counter(after)
        assert max(shares.values()) - min(shares.values()) <= 1  # no satellite carries for two what another could carry
    else:
        assert after == before


def test_without_a_spare_the_nearest_satellites_stand_in_once_more() -> None:
    torus, centre = Torus(3, 3), Satellite(2, 2)
    servers = layout("rotation_hop", centre, 9, torus)
    lost = set(servers[3:5])
    after = substitute(servers, lost, centre, torus)
    alive = [satellite for satellite in nearest(centre, 9, torus) if satellite not in lost]
    assert after == [*servers[:3], *alive[:2], *servers[5:]]


@pytest.mark.parametrize("name", sorted(LAYOUT_IDS))
def test_wrong_arguments(name: LayoutName) -> None:
    with pytest.raises(ValueError, match=r"96 servers; allowed are 1 to 95"):
        layout(name, FIGURE_CENTRE, 96, PAPER)
    with pytest.raises(ValueError, match="0 servers"):
        layout(name, FIGURE_CENTRE, 0, PAPER)
    with pytest.raises(ValueError, match=r"centre \[6, 1\] is outside the torus"):
        layout(name, Satellite(6, 1), 9, PAPER)
    large = Torus(60, 60)
    assert len(layout(name, FIGURE_CENTRE, SERVERS_MAX, large)) == SERVERS_MAX
    with pytest.raises(ValueError, match="1025 servers; allowed are 1 to 1,024"):
        lay_out(name, FIGURE_CENTRE, SERVERS_MAX + 1, large)
    with pytest.raises(ValueError, match="the torus has 65536 planes x 1 slots"):
        lay_out(name, Satellite(1, 1), 1, Torus(65536, 1))


def test_of_more_satellites_than_a_layout_has_servers_the_nearest_are_found() -> None:
    torus, centre = Torus(72, 22), Satellite(70, 2)
    satellites = nearest(centre, 72 * 22, torus)
    assert set(satellites) == set(torus.satellites())
    assert [torus.hops(centre, one) for one in satellites] == sorted(torus.hops(centre, one) for one in satellites)
    lost = set(satellites) - {Satellite(1, 22), Satellite(36, 11)}
    assert substitute(satellites[:3], lost, centre, torus) == [Satellite(1, 22), Satellite(36, 11), Satellite(1, 22)]


@given(names, cases(), st.data())
def test_a_stand_in_is_the_nearest_that_is_free(
    name: LayoutName, case: tuple[Torus, Satellite, int], data: st.DataObject
) -> None:
    torus, centre, servers = case
    before = layout(name, centre, servers, torus)
    lost = data.draw(st.sets(st.sampled_from(list(torus.satellites())), max_size=4))
    after = substitute(before, lost, centre, torus)
    free = [one for one in nearest(centre, torus.planes * torus.slots, torus) if one not in lost and one not in before]
    stand_ins = [new for old, new in zip(before, after, strict=True) if old in lost]
    assert stand_ins[: len(free)] == free[: len(stand_ins)]
