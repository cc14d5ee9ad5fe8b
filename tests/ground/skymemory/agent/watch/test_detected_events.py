"""Which events follow from looks at a sky: losses, restarts, handovers, silence."""

import time
from collections.abc import Callable

import pytest

from skymemory.agent.activity import Activity
from skymemory.agent.watch.detected_events import Happenings
from skymemory.agent.watch.frame import ANSWERS, SILENT, Frame, Shape
from skymemory.sky.constellation import Constellation
from skymemory.sky.placement.track import Track
from skymemory.sky.whereabouts import Playing, Whereabouts
from skymemory.wire.address import Satellite

SKY = Constellation().replace(constellation={"planes": 3, "slots": 5}, cache={"centre": [2, 3], "servers": 4})
PLACES = list(SKY.torus.satellites())
NOBODY: frozenset[Satellite] = frozenset()


class Rig:
    def __init__(self, playing: Playing | None = None) -> None:
        self.activity = Activity()
        self.happenings = Happenings(self.activity.events, PLACES)
        self.where = Whereabouts(SKY, playing)
        self.now_s = 0.0
        self.moved_per_s = 0.0

    def look(
        self, *silent: Satellite, restarted: frozenset[Satellite] = NOBODY, stood_in: frozenset[Satellite] = NOBODY, row: int = 0
    ) -> list[tuple[str, str]]:
        """Kinds and texts of the events of one look."""
        seen = len(self.activity.events.newest())
        frame = Frame(Shape(3, 5))
        frame["state"][:] = [SILENT if place in silent else ANSWERS for place in PLACES]
        frame["row"][0] = row
        frame["time_ms"][0] = round(1000 * (self.now_s or time.time()))
        frame["moved_per_s"][0] = self.moved_per_s
        frame["centre"][0] = PLACES.index(self.where.centre(row))
        self.happenings.look(frame, self.where, restarted, stood_in)
        return [(one.kind, one.text) for one in self.activity.events.newest()[seen:]]


def test_losses_returns_and_stand_ins() -> None:
    rig = Rig()
    one, other = Satellite(1, 2), Satellite(3, 4)
    assert rig.look() == []
    assert rig.look(one) == [("lost", f"{one} does not answer")]
    assert rig.look(one, stood_in=frozenset({one})) == [("stand-in", f"others stand in for {one}")]
    assert rig.look(one, other, stood_in=frozenset({one})) == [("lost", f"{other} does not answer")]
    assert rig.look(other) == [("back", f"{one} answers again")]
    assert rig.look(restarted=frozenset({other})) == [("restarted", f"{other} started anew, with an empty store")]
    assert rig.activity.events.newest()[0].satellites == (one,)


def test_many_are_a_number_and_all_are_silence() -> None:
    rig = Rig()
    rig.look()
    assert rig.look(*PLACES[:6]) == [("lost", "6 satellites do not answer")]
    assert rig.look(*PLACES) == [("silent", "no satellite answers")]
    assert rig.look(*PLACES) == []
    assert rig.look() == [("back", "satellites answer again")]


def test_what_is_silent_at_the_first_look_is_told() -> None:
    assert Rig().look(Satellite(2, 2)) == [("lost", "[2, 2] does not answer")]


@pytest.mark.parametrize("steps", [1, 2])
def test_a_schedule_and_its_handovers(steps: int, track_of: Callable[..., Playing]) -> None:
    rig = Rig(track_of(time.time()))
    assert rig.look(row=1) == [("schedule", "the window follows a schedule of 3 rows at 1×")]
    [(kind, text)] = rig.look(row=1 + steps)
    assert kind == "handover"
    assert text.startswith(f"the window moves to {rig.where.centre(1 + steps)}; ")
    assert text.endswith(("server moves", "servers move"))


def test_a_handover_that_outlasts_its_time_is_told_once(track_of: Callable[..., Playing]) -> None:
    rig = Rig(track_of(1000.0))
    rig.now_s, rig.moved_per_s = 1000.0 + 60 + SKY.cache.handover_s - 1, 5.0  # the second row began at 60 s
    rig.look(row=1)
    assert [kind for kind, _ in rig.look(row=2)] == ["handover"]
    rig.now_s += 2
    assert rig.look(row=2) == [("late", "chunks still move 31 s after the window did; allowed are 30 s (cache.handover_s)")]
    assert rig.look(row=2) == []
    rig.now_s, rig.moved_per_s = 1000.0 + 120 + 31, 0.0
    assert [kind for kind, _ in rig.look(row=3)] == ["handover"]


@pytest.fixture
def track_of() -> Callable[..., Playing]:
    def build(started_s: float) -> Playing:
        centres = [(0, Satellite(2, 3)), (60_000, Satellite(2, 4)), (120_000, Satellite(2, 5))]
        track = Track.of(SKY.torus, centres)
        return Playing(track, started_s, 0, 1.0)

    return build
