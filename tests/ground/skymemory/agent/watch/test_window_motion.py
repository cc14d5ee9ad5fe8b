"""What the page is told of the schedule."""

from dataclasses import replace

import pytest

from skymemory.agent.watch.window_motion import sky_ms, sky_rate, told
from skymemory.sky.constellation import Constellation
from skymemory.sky.orbit.positions import Site
from skymemory.sky.orbit.schedule import Schedule
from skymemory.sky.orbit.walker import Walker
from skymemory.sky.placement.torus import Torus
from skymemory.sky.placement.track import Track
from skymemory.sky.whereabouts import Playing, Whereabouts
from skymemory.testbed.replay import held_at
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


def test_the_clock_of_a_stopped_replay_stands_still(playing: Playing) -> None:
    orbits = Walker(5, 19, 550.0, 86.4, True, 1)
    schedule = Schedule.compute(orbits, "walker", Site(52.5, 13.4), 10.0, 1_795_000_000_000, 3_600_000)
    running = replace(playing, schedule=schedule, speed=60.0)
    assert sky_rate(running, 1e9 + 3.5) == 60.0
    stopped = held_at(running, 1e9 + 3.5)
    assert sky_rate(stopped, 1e9 + 4) == sky_rate(stopped, 1e9 + 1e5) == 0.0
    assert sky_ms(stopped, 1e9 + 4) == sky_ms(stopped, 1e9 + 1e5) == 1_795_000_000_000 + 3500 * 60
    assert held_at(stopped, 1e9 + 5) == stopped
