"""What is said about a layout."""

import pytest

from skymemory.simulate.layout_grid import Grid, GridMove
from skymemory.sky.placement.layouts import LayoutName
from skymemory.sky.placement.torus import Torus
from skymemory.wire.address import Satellite

PAPER = Torus(5, 19)
CENTRE = Satellite(3, 4)


def test_moves_are_those_of_the_last_rotation() -> None:
    grid = Grid.of("rotation_hop", CENTRE, 9, PAPER, rotations=2)
    assert grid.centre == Satellite(3, 2)
    assert grid.moves == [
        GridMove(server, Satellite(plane, 4), Satellite(plane, 1)) for server, plane in ((1, 3), (2, 2), (4, 4))
    ]
    assert Grid.of("rotation_hop", CENTRE, 9, PAPER).moves == []


def test_after_a_full_turn_nothing_has_moved() -> None:
    first, turned = (Grid.of("rotation_hop", CENTRE, 9, PAPER, rotations=rotations) for rotations in (0, 57))
    assert (turned.satellites, turned.centre, turned.moves) == (first.satellites, first.centre, [])
    assert [bool(Grid.of("rotation_hop", CENTRE, 9, PAPER, rotations=rotations).moves) for rotations in (56, 58)] == [True, True]


@pytest.mark.parametrize(
    ("layout", "centre", "servers", "rotations", "published", "told"),
    [
        ("rotation", CENTRE, 1, 0, False, ["The farthest server is 0 hops from the centre."]),
        ("rotation", CENTRE, 10, 0, False, ["The farthest server is 3 hops from the centre."]),
        ("hop", CENTRE, 5, 0, False, ["The farthest server is 1 hop from the centre."]),
        (
            "hop", CENTRE, 5, 4, False,
            [
                "Nothing moves: the model is on board of the satellite in the centre.",
                "The farthest server is 1 hop from the centre.",
            ],
        ),
        (
            "rotation_hop", CENTRE, 9, 1, False,
            ["The last rotation moved servers 3, 6, 8 from slot 5 to slot 2.", "The farthest server is 2 hops from the centre."],
        ),
        (
            "rotation_hop", CENTRE, 1, 1, False,
            ["The last rotation moved server 1 from slot 4 to slot 3.", "The farthest server is 0 hops from the centre."],
        ),
        (
            "rotation_hop", CENTRE, 9, 57, False,  # 19 slots in windows of 3
            ["A full turn: after 57 rotations every server is where it was.", "The farthest server is 2 hops from the centre."],
        ),
        (
            "rotation", CENTRE, 95, 1, False,
            ["The last rotation moved nothing.", "The farthest server is 11 hops from the centre."],
        ),
        (
            "rotation_hop", CENTRE, 10, 0, True,
            ["Server 10 is on no satellite at all.", "The farthest server is 2 hops from the centre."],
        ),
        (
            "rotation_hop", CENTRE, 12, 0, True,
            ["Servers 10 to 12 are on no satellite at all.", "The farthest server is 2 hops from the centre."],
        ),
        ("rotation_hop", CENTRE, 49, 0, True, ["Servers 1 to 49 are on no satellite at all."]),
        (
            "rotation", Satellite(3, 19), 9, 0, True,
            ["9 servers share 4 satellites.", "The farthest server is 3 hops from the centre."],
        ),
        (
            "hop", Satellite(3, 1), 9, 0, True,
            [
                "Servers 5, 8 are outside the grid, at [plane, slot] [2, 0], [3, 0].",
                "The farthest server is 2 hops from the centre.",
            ],
        ),
    ],
)  # fmt: skip
def test_told(layout: LayoutName, centre: Satellite, servers: int, rotations: int, published: bool, told: list[str]) -> None:
    assert Grid.of(layout, centre, servers, PAPER, rotations=rotations, published=published).told() == told


@pytest.mark.parametrize(
    ("layout", "servers", "parity", "told"),
    [
        (
            "rotation_hop", 12, 2,
            [
                "The farthest server is 3 hops from the centre.", "The farthest with data is 2 hops away.",
                "Any 2 satellites may be lost.", "No plane may be lost: one has 4 servers.",
                "No slot may be lost: one has 3 servers.",
            ],
        ),
        (
            "all_planes", 10, 5,
            [
                "The farthest server is 3 hops from the centre.", "The farthest with data is 2 hops away.",
                "Any 5 satellites may be lost.", "Any 2 planes may be lost.", "Any slot may be lost.",
            ],
        ),
        (
            "hop", 2, 1,
            [
                "The farthest server is 1 hop from the centre.", "The farthest with data is 0 hops away.",
                "Any satellite may be lost.", "Any plane may be lost.", "No slot may be lost: one has 2 servers.",
            ],
        ),
    ],
)  # fmt: skip
def test_told_of_parity(layout: LayoutName, servers: int, parity: int, told: list[str]) -> None:
    grid = Grid.of(layout, CENTRE, servers, PAPER, parity=parity)
    assert grid.told() == told
    assert [grid.is_parity(server) for server in range(1, servers + 1)] == [False] * (servers - parity) + [True] * parity


def test_title() -> None:
    assert (
        Grid.of("all_planes", CENTRE, 20, PAPER, parity=4).title()
        == "over all planes: 20 servers, 4 of parity, on 5 planes x 19 slots"
    )
    assert Grid.of("hop", CENTRE, 9, PAPER).title() == "hop-aware (on board): 9 servers on 5 planes x 19 slots"
    turned = Grid.of("rotation", CENTRE, 9, PAPER, rotations=1, published=True)
    assert turned.title() == "rotation-aware: 9 servers on 5 planes x 19 slots after 1 rotation, as published"
