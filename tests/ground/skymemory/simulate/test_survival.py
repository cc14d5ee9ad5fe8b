"""What layouts survive and cost, against a count over all windows."""

from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skymemory.simulate.survival import Tolerated, compare
from skymemory.sky.placement.rolling_layout import Cell, RollingLayout
from skymemory.sky.placement.torus import Torus
from skymemory.wire.address import Satellite

PAPER = Torus(5, 19)
MIDDLE = Satellite(3, 10)


def places(cells: list[tuple[int, int]]) -> list[Satellite]:
    return [Satellite(plane, slot) for plane, slot in cells]


@pytest.mark.parametrize(
    ("cells", "parity", "tolerated"),
    [
        ([(1, 1), (1, 2), (2, 1)], 0, (0, 0, 0)),
        ([(1, 1), (1, 2), (2, 1)], 1, (1, 0, 0)),
        ([(1, 1), (1, 2), (2, 1)], 2, (2, 1, 1)),
        ([(1, 1), (2, 2), (3, 3)], 2, (2, 2, 2)),
        ([(1, 1), (2, 1), (3, 1)], 2, (2, 2, 0)),
    ],
)
def test_tolerated(cells: list[tuple[int, int]], parity: int, tolerated: tuple[int, int, int]) -> None:
    assert Tolerated.of(places(cells), parity) == tolerated


@given(st.sets(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1), st.data())
def test_any_so_many_planes_may_be_lost_and_not_any_more(cells: set[tuple[int, int]], data: st.DataObject) -> None:
    parity = data.draw(st.integers(0, len(cells) - 1))
    planes = Tolerated.of(places(sorted(cells)), parity).planes
    used = {plane for plane, _ in cells}
    worst = [
        max(sum(plane in lost for plane, _ in cells) for lost in combinations(used, count)) for count in range(len(used) + 1)
    ]
    assert planes == max(count for count, chunks in enumerate(worst) if chunks <= parity)


@pytest.mark.parametrize(("torus", "servers"), [(PAPER, 10), (PAPER, 12), (PAPER, 20), (Torus(9, 11), 7), (Torus(4, 5), 20)])
def test_what_layouts_cost(torus: Torus, servers: int) -> None:
    """Each window that there can be, and the steps from it."""
    centre = torus.middle
    for one in compare(servers, 1, torus, centre):
        layout = RollingLayout.around(one.layout, servers, torus, centre)
        cells = [Cell(centre.plane + plane, centre.slot + slot) for plane in range(layout.height) for slot in range(layout.width)]
        if one.layout == "hop":
            cells = [Cell(*centre)]
        hops = [torus.hops(torus.wrap(*cell), satellite) for cell in cells for satellite in layout.servers_at(cell)]
        assert one.hops_mean == pytest.approx(fmean(hops))
        assert one.hops_most == max(hops)
        for step, moved in (((0, 1), one.moved_by_slot), ((1, 0), one.moved_by_plane)):
            after = [Cell(cell.plane + step[0], cell.slot + step[1]) for cell in cells]
            counts = [
                sum(here != there for here, there in zip(layout.servers_at(old), layout.servers_at(new), strict=True))
                for old, new in zip(cells, after, strict=True)
            ]
            assert moved == pytest.approx(fmean(counts))


def test_with_ten_servers_in_pairs_a_plane_may_be_lost() -> None:
    found = {one.layout: (one.in_plane, one.tolerated.planes) for one in compare(10, 2, PAPER, MIDDLE)}
    assert found == {"rotation": (4, 0), "hop": (4, 0), "rotation_hop": (4, 0), "all_planes": (2, 1)}
