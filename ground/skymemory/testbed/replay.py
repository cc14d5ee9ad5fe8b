"""Replay of a schedule on a running constellation: from a table that every satellite has, or by commands.

By schedule, each satellite knows when the window moves and hands over on its own; the ground only uploads and looks on. By
command, the ground tells satellites outside the window that hold something where to send it.
"""

import ctypes
import secrets
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Final, Literal

from skymemory.fsw import structures
from skymemory.fsw.messages import Message
from skymemory.fsw.mission_tables import ROWS_MAX
from skymemory.fsw.structures import KvcFunctionCode
from skymemory.link.ask import Ask
from skymemory.link.control import ControlPlane
from skymemory.link.other_versions import other_versions, version_words
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.sky.orbit.schedule import Schedule
from skymemory.sky.placement.core_library import crc32c
from skymemory.sky.placement.layouts import LAYOUT_IDS
from skymemory.sky.placement.track import Track
from skymemory.sky.whereabouts import Playing
from skymemory.wire import icd
from skymemory.wire.address import Satellite

By = Literal["schedule", "command"]
"""Starter of a handover: the satellites, by their schedule, or the ground."""

LEAD_S: Final = 3.0
"""Seconds between the start of a replay and the first move of the window: all satellites have the schedule by then."""
_MS_MAX: Final = 2**31
"""Greatest age of a schedule: a satellite gets it in 32 bits with a sign."""
_DAY_MS: Final = 86_400_000
_ATTEMPTS: Final = 3
DEADLINE_S: Final = 5.0
"""Seconds that satellites have to answer."""
_LOOK_S: Final = 0.25
"""Seconds between two questions to satellites about their handovers."""
_LOOK_SOON_S: Final = 0.05
"""The same in the first second of a row."""
_SOON_MS: Final = 1000
_QUIET_LOOKS: Final = 4
"""Looks without a chunk moved after which the last handover counts as over, if none is left."""
_QUIET_LOOKS_LEFT: Final = 120
"""The same if some chunks are left, but no satellite takes them."""


_ASTRAY_MS: Final = 5000
"""Milliseconds by which satellites may be early or late with a row: uploads wait on each satellite's bus."""
_ASTRAY_LOOKS: Final = 4
"""Consecutive looks in which most satellites are earlier or later than that, after which they follow another replay."""
_COMMAND_AGAIN_S: Final = 0.25
"""Seconds after which a satellite that has not sent all away is told again: something may have come to it meanwhile."""
_LOOK_BACK_ROWS: Final = 60
_END_MS: Final = 30_000
"""Milliseconds after the last row for which missing satellites delay the end of a replay by command."""
SETTLE_S: Final = 10.0
"""Seconds after which a stopped replay by command leaves outside the window what satellites have not sent into it."""


class ReplayError(RuntimeError):
    """Satellites do not take the schedule."""


class NobodyAnswersError(ReplayError):
    """No satellite answers."""


class OvertakenError(ReplayError):
    """Satellites follow another schedule by now, which somebody else has given them."""


@dataclass(frozen=True, slots=True)
class Handover:
    """Measurements of a move of the window."""

    row: int
    centre: Satellite
    chunks: int
    """Chunks that changed satellite."""
    bytes: int
    """Bytes of these chunks: their number times the mean length of what the satellites hold."""
    duration_s: float
    """Seconds from the row's time to the look that saw the last chunk moved; looks are 0.05 s apart at first, then 0.25 s."""
    left: int = 0
    """Chunks that satellites still had to hand over at the last look of the row."""

    def late(self, handover_s: float) -> bool:
        """Return True if the handover took longer than its row, or than `cache.handover_s`."""
        return self.left > 0 or self.duration_s > handover_s


def playing_now(
    constellation: Constellation,
    schedule: Schedule,
    from_ms: int,
    until_ms: int,
    speed: float,
    before: Playing | None,
    *,
    lead_s: float = LEAD_S,
) -> Playing:
    """Return the schedule to follow from now on.

    Args:
        from_ms, until_ms: Part of the schedule that is followed.
        before: Schedule that was followed so far: blocks that were stored under it move on from where they are.
        lead_s: Seconds until the window begins to move.

    Raises:
        ValueError: There are more rows than satellites have room for, or they take more time than satellites can count.
    """
    torus, now_s = constellation.torus, time.time()
    past, row = Track.of(torus, [(0, constellation.cache.centre)]), 1
    if before is not None:
        past, row = before.track, before.track.row_at(before.track_ms(now_s))
    pause_ms = round(1000 * lead_s)
    track = past.continued(row, schedule.track.played(from_ms, speed, until_ms), pause_ms)
    if len(track.rows) > ROWS_MAX:
        cure = "choose fewer hours" + (", or start the constellation anew" if row > 1 else "")
        raise ValueError(f"the schedule has {len(track.rows):,} rows; satellites have room for {ROWS_MAX:,}: {cure}")
    last_ms = track.rows[-1][0]
    if last_ms >= _MS_MAX:
        raise ValueError(f"at this speed the last row comes after {last_ms // _DAY_MS} days; {_MS_MAX // _DAY_MS} are allowed")
    passed_ms = row + pause_ms  # time of the track at which the schedule's part begins
    return Playing(track, now_s - row / 1000, schedule, from_ms - round(speed * passed_ms), speed)


def row_now(playing: Playing) -> int:
    """Return the row that holds."""
    return playing.track.row_at(_now_ms(playing))


def held_now(playing: Playing) -> Playing:
    """Return the schedule up to now; the window then stays where it is, and the sky's time stands still."""
    return held_at(playing, time.time())


def held_at(playing: Playing, time_s: float) -> Playing:
    """Return the schedule up to a Unix time; from then on the window stays where it is, and the sky's time stands still."""
    stopped_ms = min(playing.track_ms(time_s), playing.end_ms)
    return replace(playing, track=playing.track.held(playing.track.row_at(stopped_ms)), stopped_ms=stopped_ms)


def require_all(control: ControlPlane) -> None:
    """Require that all satellites answer, before any is told to move: its moves are not undone if another one is silent.

    Raises:
        NobodyAnswersError: No satellite answers.
        ReplayError: Some satellites do not answer.
    """
    routes = [Route(place, place) for place in control.constellation.torus.satellites()]
    total = len(routes)
    for _ in range(_ATTEMPTS):
        stats = control.store_stats(routes, DEADLINE_S)
        routes = [route for route in routes if route.satellite not in stats]
        if not routes:
            return
    silent = [route.satellite for route in routes]
    why = control.refusal() or version_words(other_versions(control.constellation, silent))
    if not why and len(silent) == total:
        raise NobodyAnswersError("no satellite answers; nothing moves")
    raise ReplayError(f"{why or f'{len(silent)} satellites do not answer: {_named(silent)}'}; nothing moves")


def upload(
    control: ControlPlane,
    playing: Playing | None,
    satellites: Collection[Satellite] | None = None,
    *,
    deadline_s: float = DEADLINE_S,
) -> None:
    """Give satellites the rows as tables of their app kvc, at their time; None: no rows, nothing moves by itself.

    Args:
        satellites: Satellites to give them to; by default all.
        deadline_s: Seconds that they have to answer, in each attempt.

    Raises:
        ReplayError: Satellites do not answer, or do not follow it after some attempts.
    """
    chosen = control.constellation.torus.satellites() if satellites is None else satellites
    routes = [Route(place, place) for place in chosen]
    total = 0 if playing is None else len(playing.track.rows)
    stats: dict[Satellite, dict[str, int]] = {}
    for _ in range(_ATTEMPTS):
        told = {route.satellite for route in routes}  # the number of rows alone does not tell one schedule from another
        for piece in _pieces(control.constellation, playing):
            answers = control.relay(routes, piece(), deadline_s)
            told -= {route.satellite for route, answer in zip(routes, answers, strict=True) if answer is None or not answer.ok}
        end_s = time.monotonic() + deadline_s  # commands wait on each satellite's bus
        while routes and time.monotonic() < end_s:
            stats = control.store_stats(routes, deadline_s)
            follow_it = {satellite for satellite in told if stats.get(satellite, {}).get("rows") == total}
            routes = [route for route in routes if route.satellite not in follow_it]
            told -= follow_it
            if not told:
                break  # the other satellites have not got all of it
            time.sleep(_LOOK_SOON_S)  # a mission takes new tables at its next WAKEUP
        if not routes:
            return
    silent = [route.satellite for route in routes if route.satellite not in stats]
    what = "do not answer" if silent else "do not follow the schedule"
    raise ReplayError(f"{len(silent or routes)} satellites {what}: {_named(silent or [route.satellite for route in routes])}")


def is_overtaken(control: ControlPlane, playing: Playing) -> bool:
    """Return True if most satellites that answer follow a schedule with another number of rows."""
    routes = [Route(place, place) for place in control.constellation.torus.satellites()]
    return _follow_others(control.store_stats(routes, DEADLINE_S), len(playing.track.rows))


def settle(control: ControlPlane, held: Playing, *, deadline_s: float = SETTLE_S) -> int:
    """End the handover of a window that stays and that the ground moved by command, as nobody commands its satellites any more.

    Args:
        held: Schedule from `held_now` or `held_at`.
        deadline_s: Seconds that this may take.

    Returns:
        Number of satellites outside the window that still hold something.

    Raises:
        OvertakenError: Most satellites follow another schedule.
    """
    watch = Watch(control, held, "command", row_now(held))
    end_s = time.monotonic() + deadline_s
    while True:
        watch.look()
        if watch.is_settled() or time.monotonic() >= end_s:
            return watch.outside
        time.sleep(_LOOK_SOON_S)


def follow(
    control: ControlPlane, playing: Playing, by: By, *, tell: Callable[[int], None] = lambda _: None
) -> Iterator[Handover]:
    """Watch until the last row's handover is over.

    Args:
        tell: Function that gets the track's time in ms in each look; see `Watch.look`.

    Yields:
        Each handover, once the next one has begun or nothing moves any more.
    """
    track = playing.track
    row = row_now(playing)
    watch = Watch(control, playing, by, row)
    while True:
        now_row = watch.look(tell)
        done = range(row, now_row)
        if now_row == len(track.rows) and watch.is_over():
            done = range(row, now_row + 1)
        for one in done:
            if one > watch.first_row:
                yield watch.handover(one)
        if done and done[-1] == len(track.rows):
            return
        row = now_row
        wait_s = _LOOK_SOON_S if _now_ms(playing) - track.rows[row - 1][0] < _SOON_MS else _LOOK_S
        end_ms = track.end_ms(row)
        left_s = wait_s if end_ms is None else (end_ms - _now_ms(playing)) / 1000
        time.sleep(min(wait_s, max(left_s, 0.0)))


class Watch:
    """A sum of what satellites report to have handed on; it also gives the schedule to satellites that began anew.

    Chunks that were handed on between two looks count for the row of the second look: a handover begins as soon as its row does.
    """

    def __init__(
        self, control: ControlPlane, playing: Playing, by: By, first_row: int, clock: Callable[[], float] = time.time
    ) -> None:
        self._control, self._playing, self._by, self._clock = control, playing, by, clock
        self._routes = [Route(place, place) for place in control.constellation.torus.satellites()]
        self._out: dict[Satellite, int] = {}
        self._chunks: Counter[int] = Counter()
        self._seen_ms: dict[int, int] = {}
        self._left: dict[int, int] = {}
        self._chunk_bytes = 0.0
        cache = control.constellation.cache
        self._layout = playing.track.layout(cache.layout, cache.servers)
        self._told: dict[Satellite, tuple[Satellite, float]] = {}  # target of each satellite, and time to repeat the order
        self._row = first_row
        self._astray = 0  # consecutive looks in which most satellites were early or late
        self.first_row = first_row
        self.quiet = 0
        """Consecutive looks in which nothing had moved."""
        self.outside = 0
        """Number of satellites that are told to send everything away, as they hold something outside the window."""

    def look(self, tell: Callable[[int], None] = lambda _: None) -> int:
        """Look at all satellites, and return the row that holds now.

        Args:
            tell: Function that gets the track's time in ms, before satellites are told anything about that time's row.

        Raises:
            OvertakenError: Most satellites follow another schedule.
        """
        asked_ms = self._playing.track_ms(self._clock())
        stats = self._control.store_stats(self._routes, DEADLINE_S)
        now_ms = self._playing.track_ms(self._clock())  # after the answers: commands must fit the row that holds then
        tell(now_ms)
        row = self._playing.track.row_at(now_ms)
        if row != self._row:
            self._row, self.quiet = row, 0
        self._check_own(stats, asked_ms, now_ms)
        held = sum(one["chunks"] for one in stats.values())
        self._chunk_bytes = sum(one["bytes"] for one in stats.values()) / held if held else self._chunk_bytes
        self.quiet += 1
        if self._by == "schedule":
            self._give_again(satellite for satellite, one in stats.items() if one["rows"] != len(self._playing.track.rows))
        else:
            self._command(satellite for satellite, one in stats.items() if one["chunks"])
        self._left[row] = sum(one["handover_left"] for one in stats.values())
        for satellite, one in stats.items():
            moved = one["migrated_out"] - self._out.get(satellite, one["migrated_out"])
            self._out[satellite] = one["migrated_out"]
            if moved > 0:  # a smaller count means that the satellite began anew
                at = one["row"] if self._by == "schedule" else row
                self._chunks[at] += moved
                self._seen_ms[at] = now_ms
                self.quiet = 0
        return row

    def _check_own(self, stats: Mapping[Satellite, Mapping[str, int]], asked_ms: int, now_ms: int) -> None:
        """Require that most satellites follow this schedule: its number of rows, and about the row that holds."""
        track = self._playing.track
        own = len(track.rows) if self._by == "schedule" else 0
        first, last = track.row_at(max(asked_ms - _ASTRAY_MS, 0)), track.row_at(now_ms + _ASTRAY_MS)
        astray = sum(one["rows"] == own and not first <= one["row"] <= last for one in stats.values()) if own else 0
        self._astray = self._astray + 1 if 2 * astray > len(stats) else 0
        if _follow_others(stats, own) or self._astray >= _ASTRAY_LOOKS:
            raise OvertakenError("another replay, of another user or state folder, has ended this one")

    def _give_again(self, satellites: Iterable[Satellite]) -> None:
        """Give the schedule to satellites that began anew."""
        if anew := list(satellites):
            with suppress(ReplayError):  # the next look tries again
                upload(self._control, self._playing, anew)

    def _command(self, satellites: Iterable[Satellite]) -> None:
        """Tell satellites outside the window where to send what they hold, until nothing is left there.

        Each one inside is told once to keep what it has: an earlier replay may have told it to send that away.
        """
        now_s, asks = time.monotonic(), []
        self.outside = 0
        for satellite in satellites:
            heir = self._heir(satellite)
            self.outside += heir is not None
            target = heir or satellite
            told, again_s = self._told.get(satellite, (None, inf))
            if target != told or now_s >= again_s:
                self._told[satellite] = target, inf if heir is None else now_s + _COMMAND_AGAIN_S
                command = _message(KvcFunctionCode.HANDOVER, structures.KvcHandover(*target))
                asks.append(Ask(Route(satellite, satellite), icd.OP_RELAY, icd.APID_ISL, payload=command))
        for ask, answer in zip(asks, self._control.exchange(asks, DEADLINE_S), strict=True):
            if answer is None or not answer.ok:
                self._told[ask.route.satellite] = self._told[ask.route.satellite][0], now_s  # the next look tells it again

    def _heir(self, satellite: Satellite) -> Satellite | None:
        """Return the satellite that has this one's place in the present window; None if this one is inside, or never was.

        The place is that of the last window it was in.
        """
        track = self._playing.track
        cell = track.cell(self._row)
        if self._layout.in_window(cell, satellite):
            return None
        for row in range(self._row - 1, max(0, self._row - _LOOK_BACK_ROWS), -1):
            if self._layout.in_window(track.cell(row), satellite):
                return self._layout.successor(track.cell(row), cell, satellite)
        return None

    def is_over(self) -> bool:
        """Return True if nothing moves any more in the last row; by command nothing may be left outside, for nobody goes on."""
        waited_ms = self._playing.track_ms(self._clock()) - self._playing.track.rows[self._row - 1][0]
        looks = _QUIET_LOOKS_LEFT if self._left[self._row] else _QUIET_LOOKS
        return self.quiet >= looks and (not self.outside or waited_ms > _END_MS)

    def is_settled(self) -> bool:
        """Return True if satellites outside the window hold nothing, and none moves anything."""
        return self.quiet >= _QUIET_LOOKS and not self.outside and not self._left[self._row]

    def handover(self, row: int) -> Handover:
        chunks, began_ms = self._chunks[row], self._playing.track.rows[row - 1][0]
        duration_s = max(0, self._seen_ms.get(row, began_ms) - began_ms) / 1000
        moved_bytes = round(chunks * self._chunk_bytes)
        return Handover(row, self._playing.track.centre(row), chunks, moved_bytes, duration_s, self._left.get(row, 0))


def _follow_others(stats: Mapping[Satellite, Mapping[str, int]], own: int) -> bool:
    """Return True if most satellites have a number of rows that is neither 0 nor `own`.

    Most, because a satellite that missed the last upload may follow the schedule before.
    """
    return 2 * sum(one["rows"] not in (0, own) for one in stats.values()) > len(stats)


def _now_ms(playing: Playing) -> int:
    return playing.track_ms(time.time())


def _pieces(constellation: Constellation, playing: Playing | None) -> Iterator[Callable[[], bytes]]:
    """Yield commands, made at the moment when they are sent."""
    identity, cache = secrets.randbits(32), constellation.cache
    rows = [] if playing is None else [structures.KvcScheduleRow(time_ms, *cell) for time_ms, cell in playing.track.rows]

    def begin() -> bytes:
        age_ms = 0 if playing is None else _now_ms(playing)
        size = constellation.planes, constellation.slots
        head = structures.KvcScheduleBegin(identity, age_ms, *size, LAYOUT_IDS[cache.layout], cache.servers, len(rows))
        return _message(KvcFunctionCode.SCHEDULE_BEGIN, head)

    yield begin
    for first in range(0, len(rows), structures.KVC_COMMAND_ROWS):
        some = rows[first : first + structures.KVC_COMMAND_ROWS]
        piece = structures.KvcScheduleRows(identity, first + 1, len(some))
        piece.row[: len(some)] = some
        yield partial(_message, KvcFunctionCode.SCHEDULE_ROWS, piece)
    yield partial(
        _message, KvcFunctionCode.SCHEDULE_COMMIT, structures.KvcScheduleCommit(identity, crc32c(b"".join(map(bytes, rows))))
    )


def _message(function_code: int, payload: ctypes.Structure) -> bytes:
    return Message(structures.KVC_CMD_MID, bytes(payload), function_code).encode()


def _named(satellites: Sequence[Satellite]) -> str:
    shown = ", ".join(map(str, satellites[:5]))
    return shown + (f" and {len(satellites) - 5} more" if len(satellites) > 5 else "")
