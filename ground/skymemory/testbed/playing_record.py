"""The record of the schedule that a sky follows: a file in a folder of its own, and a copy of the schedule.

All stores on this machine read it, so all see the window where the satellites have it.
"""

import json
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from skymemory.common.bounded_folder import used_now
from skymemory.common.machine_identity import boot_id
from skymemory.common.state_folder import make_folders
from skymemory.sky.orbit.schedule import Schedule
from skymemory.sky.orbit.schedule_format import SUFFIXES
from skymemory.sky.placement.rolling_layout import Cell
from skymemory.sky.placement.torus import Torus
from skymemory.sky.placement.track import Track
from skymemory.sky.whereabouts import Playing
from skymemory.testbed.processes import ProcessId, identify, is_alive

FILE_NAME: Final = "playing.json"
COPY_NAME: Final = "playing"
"""Name of the schedule's copy, without its suffix."""
_BEAT_NAME: Final = "playing.beat"
FORMAT: Final = 1


class DamagedRecordError(RuntimeError):
    """The record is no valid record."""


class Player(NamedTuple):
    """The process that plays a schedule."""

    by: str
    """Starter of handovers: `schedule` or `command` (`skymemory.testbed.replay.By`)."""
    boot: str
    """Boot of its machine."""
    processes: int
    """Name space of its pid."""
    pid: int
    start_ticks: int

    @classmethod
    def this(cls, by: str) -> "Player":
        """Return this process."""
        process = identify(os.getpid())
        assert process is not None
        return cls(by, boot_id(), _name_space(), process.pid, process.start_ticks)

    @property
    def is_elsewhere(self) -> bool:
        """True if its pid means nothing here: on another machine, or in another container."""
        return (self.boot, self.processes) != (boot_id(), _name_space())


@dataclass(frozen=True)
class Abandoned:
    """A schedule whose player has ended without a word, as by SIGKILL."""

    playing: Playing
    player: Player
    schedule: Path
    """The schedule's file."""
    seen_unix_s: float
    """Time at which the player was last known to live."""


class PlayingRecord:
    """The record in one folder."""

    def __init__(self, folder: Path, make_room: Callable[[], None] = lambda: None) -> None:
        """Use a folder.

        Args:
            folder: Folder of this record alone.
            make_room: Function that is called when the record was saved, and may remove those of other skies.
        """
        self.path = folder / FILE_NAME
        self._make_room = make_room
        self._seen: tuple[int, int] | None = None
        self._saved: tuple[int, int] | None = None

    def changed(self) -> bool:
        """Return True if the record is not the one of the last `load`."""
        return _mark(self.path) != self._seen

    def is_kept(self) -> bool:
        """Return True if the record is still the one that was last saved here."""
        return _mark(self.path) == self._saved

    def save(self, playing: Playing, source: Path, player: Player | None = None) -> None:
        """Write the record, whole or not at all.

        Args:
            playing: The schedule that is followed.
            source: The schedule's file, which is copied.
            player: Process that plays it; None if it goes on, or stays, without one.
        """
        make_folders(self.path.parent)
        copy = self._copy(source.suffix)
        draft = copy.with_suffix(".new")
        if source.resolve() != copy.resolve():
            shutil.copyfile(source, draft)
            draft.replace(copy)
        track = playing.track
        record = {
            "format": FORMAT,
            "planes": track.torus.planes,
            "slots": track.torus.slots,
            "rows": [[time_ms, *cell] for time_ms, cell in track.rows],
            "started_unix_s": playing.started_unix_s,
            "schedule": copy.suffix,
            "from_ms": playing.from_ms,
            "speed": playing.speed,
            "stopped_ms": playing.stopped_ms,
            "player": player,
        }
        draft = self.path.with_suffix(".new")
        draft.write_text(json.dumps(record), encoding="utf-8")
        self._saved = _mark(draft)
        draft.replace(self.path)
        self._make_room()

    def load(self) -> Playing | None:
        """Return the recorded schedule, or None.

        Raises:
            DamagedRecordError: The record is no valid record.
            OSError: The record exists and cannot be read.
        """
        self._seen = _mark(self.path)
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        try:
            playing = self._parse(json.loads(text))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError, FileNotFoundError) as error:
            why = f"no {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
            raise DamagedRecordError(f"{self.path} is damaged ({why}); remove the folder {self.path.parent}") from error
        used_now(self.path.parent)
        return playing

    def is_played(self) -> bool:
        """Return True if a process of this machine plays the schedule."""
        try:
            player = _player(json.loads(self.path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError, AttributeError):
            return False
        return player is not None and not player.is_elsewhere and is_alive(ProcessId(player.pid, player.start_ticks))

    def clear(self) -> None:
        """Remove the record and the schedule's copy."""
        for path in (self.path, self._beat, *map(self._copy, SUFFIXES)):
            path.unlink(missing_ok=True)

    def beat(self) -> None:
        """Note that the player lives now."""
        with suppress(OSError):  # a full disk ends no replay
            self._beat.touch()
            now_ns = time.time_ns()  # the file system's own time may be some ms behind, and a row may begin in them
            os.utime(self._beat, ns=(now_ns, now_ns))
        used_now(self.path.parent)

    def abandoned(self) -> Abandoned | None:
        """Return what is known of a player of this machine that has ended without a word; None if none has.

        Raises:
            DamagedRecordError, OSError: As from `load`.
        """
        playing = self.load()
        if playing is None:
            return None
        record = json.loads(self.path.read_text(encoding="utf-8"))
        if (player := _player(record)) is None or player.is_elsewhere or is_alive(ProcessId(player.pid, player.start_ticks)):
            return None
        beat_s = self._beat.stat().st_mtime if self._beat.exists() else 0.0
        seen_s = max(beat_s, playing.started_unix_s)  # the beat may be that of an earlier replay
        last_s = time.time() if player.by == "schedule" else seen_s  # satellites go on by their schedule alone
        if playing.track_ms(last_s) >= playing.end_ms:  # it was over
            return None
        return Abandoned(playing, player, self._copy(record["schedule"]), seen_s)

    @property
    def _beat(self) -> Path:
        return self.path.with_name(_BEAT_NAME)

    def _copy(self, suffix: str) -> Path:
        return self.path.with_name(COPY_NAME + suffix)

    def _parse(self, record: dict[str, Any]) -> Playing:
        if record["format"] != FORMAT:
            raise ValueError(f"format {record['format']}, not {FORMAT}")
        rows = tuple((int(time_ms), Cell(int(plane), int(slot))) for time_ms, plane, slot in record["rows"])
        torus = Torus(int(record["planes"]), int(record["slots"]))
        if min(torus.planes, torus.slots) < 1:
            raise ValueError(f"{torus.planes} planes x {torus.slots} slots")
        _player(record)
        track = Track(torus, rows)
        track.row_at(0)  # the core checks the rows
        if record["schedule"] not in SUFFIXES:
            raise ValueError(f"a schedule with the suffix {record['schedule']}")
        return Playing(
            track,
            float(record["started_unix_s"]),
            Schedule.load(self._copy(record["schedule"])),
            int(record["from_ms"]),
            float(record["speed"]),
            None if (stopped_ms := record.get("stopped_ms")) is None else int(stopped_ms),
        )


def _player(record: dict[str, Any]) -> Player | None:
    """Return the process that plays a schedule. Raise ValueError or TypeError if the record of it is not valid."""
    return None if (told := record.get("player")) is None else Player(*told)


def _name_space() -> int:
    return Path("/proc/self/ns/pid").stat().st_ino


def _mark(path: Path) -> tuple[int, int] | None:
    """Return a mark of the file; each record is a file of its own."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns
