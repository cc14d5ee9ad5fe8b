"""What the page is told of the schedule."""

from dataclasses import replace

import pytest

from skymemory.agent.watch.window_motion import told
from skymemory.sky.constellation import Constellation
from skymemory.sky.placement.torus import Torus
from skymemory.sky.placement.track import Track
from skymemory.sky.whereabouts import Playing, Whereabouts
from skymemory.wire.address import Satellite


@pytest.fixture
def playing() -> Playing:
    track = Track.of(Torus(5, 19), [(1000 * at, Satellite(3, 10 - at)) for at in range(8)])
    return Playing(track, started_unix_s=1e9)


def rows(playing: Playing, time_s: float) -> list[int]:
    return [move["row"] for move in told(Whereabouts(Constellation(), playing), time_s)["moves"]]


def test_moves_around_now(playing: Playing) -> None:
    assert rows(playing, 1e9 + 3.5) == [2, 3, 4, 5, 6, 7, 8]


def test_a_stopped_replay_moves_to_nothing(playing: Playing) -> None:
    """Its rows are put off for weeks, and not meant to come."""
    assert rows(replace(playing, track=playing.track.held(4)), 1e9 + 3.5) == [2, 3, 4]
