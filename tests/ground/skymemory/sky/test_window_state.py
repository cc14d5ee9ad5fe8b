"""What lost servers mean for blocks."""

import pytest

from skymemory.sky.window_state import NAMED_MOST, State, WindowState, named
from skymemory.wire.address import Satellite

ONE, TWO, THREE = (Satellite(3, slot) for slot in (8, 9, 10))


@pytest.mark.parametrize(
    ("parity", "lost", "empty", "state", "spare", "words"),
    [
        (2, (), (), State.WHOLE, 2, "whole: all 12 servers answer; any 2 may be lost"),
        (0, (), (), State.WHOLE, 0, "whole: all 12 servers answer; none may be lost, as there is no parity"),
        (
            2,
            (ONE,),
            (),
            State.DEGRADED,
            1,
            "DEGRADED: 1 of 12 servers is lost: [3, 8]. All blocks can be fetched; 1 more may be lost",
        ),
        (
            2,
            (ONE,),
            (TWO,),
            State.DEGRADED,
            0,
            "DEGRADED: 1 of 12 servers is lost: [3, 8]; 1 of 12 servers began anew and is not filled again: [3, 9]. "
            "All blocks can be fetched; no more may be lost",
        ),
        (
            2,
            (ONE, TWO, THREE),
            (),
            State.GONE,
            0,
            "GONE: 3 of 12 servers are lost: [3, 8], [3, 9], [3, 10]. Parity makes up for 2: blocks with chunks of a row on more "
            "than 2 of them are misses until they are put again",
        ),
        (
            0,
            (ONE,),
            (),
            State.GONE,
            0,
            "GONE: 1 of 12 servers is lost: [3, 8]. Parity makes up for 0: blocks with a chunk there are misses until they are "
            "put again",
        ),
    ],
)
def test_what_is_lost_and_what_that_means(
    parity: int, lost: tuple[Satellite, ...], empty: tuple[Satellite, ...], state: State, spare: int, words: str
) -> None:
    window = WindowState(12, parity, lost, empty)
    assert (window.state, window.spare, window.words()) == (state, spare, words)


def test_of_many_some_are_named() -> None:
    many = [Satellite(1, slot) for slot in range(1, NAMED_MOST + 4)]
    assert named(many).endswith("[1, 12] and 3 more")
    assert named(many[:NAMED_MOST]).endswith("[1, 12]")
