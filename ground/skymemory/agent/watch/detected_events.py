"""Events found by comparing two looks at the sky: who was lost, who is back, where the window went."""

from collections.abc import Collection, Sequence
from typing import Final

from skymemory.agent.activity import EventLog
from skymemory.agent.watch.frame import ANSWERS, SILENT, Frame
from skymemory.sky.whereabouts import Whereabouts
from skymemory.wire.address import Satellite

NAMED_MAX: Final = 4
"""Number of satellites that an event names; of more it tells the number."""


class Happenings:
    """Compares each look with the one before and logs what has changed."""

    def __init__(self, events: EventLog, places: Sequence[Satellite]) -> None:
        self._events, self._places = events, places
        self._before: Frame | None = None
        self._stood_in: frozenset[Satellite] = frozenset()
        self._schedule: tuple[float, int] | None = None
        self._late_row = 0
        """Handover that was told to be late."""

    def look(self, frame: Frame, where: Whereabouts, restarted: Collection[Satellite], stood_in: frozenset[Satellite]) -> None:
        """Log what has changed since the last look.

        Args:
            restarted: Satellites whose counters began anew.
            stood_in: Lost satellites that others stand in for.
        """
        time_s = frame.time_ms / 1000
        before, self._before = self._before, frame
        new, self._stood_in = stood_in - self._stood_in, stood_in
        self._follow(frame, before, where, time_s)
        self._lateness(frame, where, time_s)
        self._answers(frame, before, restarted, time_s)
        if new:
            self._add("stand-in", f"others stand in for {self._named(sorted(new))}", sorted(new), time_s)

    def _follow(self, frame: Frame, before: Frame | None, where: Whereabouts, time_s: float) -> None:
        playing = where.playing
        schedule = None if playing is None else (playing.started_unix_s, len(playing.track.rows))
        row = int(frame["row"][0])
        if schedule != self._schedule:
            self._schedule = schedule
            if schedule is None or playing is None:
                self._add("schedule", "the schedule ended; the window stays", (), time_s)
            else:
                self._add("schedule", f"the window follows a schedule of {schedule[1]} rows at {playing.speed:g}×", (), time_s)
        elif before is not None and row > int(before["row"][0]) > 0:
            count = sum(old != new for old, new in zip(where.servers(row - 1), where.servers(row), strict=True))
            servers = "1 server moves" if count == 1 else f"{count} servers move"
            centre = self._places[int(frame["centre"][0])]
            self._add("handover", f"the window moves to {centre}; {servers}", [centre], time_s)

    def _lateness(self, frame: Frame, where: Whereabouts, time_s: float) -> None:
        """Log, once for each row, that chunks still move though the handover's time is over."""
        playing, row, allowed_s = where.playing, int(frame["row"][0]), where.constellation.cache.handover_s
        if playing is None or row <= 1 or row == self._late_row or not frame["moved_per_s"].any():
            return
        passed_s = (playing.track_ms(time_s) - playing.track.rows[row - 1][0]) / 1000
        if passed_s > allowed_s:
            self._late_row = row
            text = f"chunks still move {passed_s:.0f} s after the window did; allowed are {allowed_s:g} s (cache.handover_s)"
            self._add("late", text, (), time_s)

    def _answers(self, frame: Frame, before: Frame | None, restarted: Collection[Satellite], time_s: float) -> None:
        state = frame["state"]
        alive = bool((state == ANSWERS).any())
        if before is not None and bool((before["state"] == ANSWERS).any()) != alive:
            text = "satellites answer again" if alive else "no satellite answers"
            self._add("back" if alive else "silent", text, (), time_s)
            return
        known = [None] * len(self._places) if before is None else before["state"].tolist()
        gone = [place for place, old, new in zip(self._places, known, state, strict=True) if new == SILENT != old]
        back = [place for place, old, new in zip(self._places, known, state, strict=True) if new == ANSWERS and old == SILENT]
        anew = [place for place in self._places if place in restarted]
        back = [place for place in back if place not in restarted]
        for kind, some, one, many in (
            ("lost", gone if alive else [], "does not answer", "do not answer"),
            ("back", back, "answers again", "answer again"),
            ("restarted", anew, "started anew, with an empty store", "started anew, with empty stores"),
        ):
            if some:
                self._add(kind, f"{self._named(some)} {one if len(some) == 1 else many}", some, time_s)

    @staticmethod
    def _named(some: Sequence[Satellite]) -> str:
        return f"{len(some)} satellites" if len(some) > NAMED_MAX else ", ".join(map(str, some))

    def _add(self, kind: str, text: str, satellites: Sequence[Satellite], time_s: float) -> None:
        self._events.add(kind, text, satellites, time_s=time_s)
