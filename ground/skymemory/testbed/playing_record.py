"""The record of the schedule that a sky follows: a file in a folder of its own, and a copy of the schedule.

All stores on this machine read it, so all see the window where the satellites have it.
"""

import json
import shutil
from pathlib import Path
from typing import Any, Final

from skymemory.sky.orbit.schedule import Schedule
from skymemory.sky.orbit.schedule_format import SUFFIXES
from skymemory.sky.placement.rolling_layout import Cell
from skymemory.sky.placement.torus import Torus
from skymemory.sky.placement.track import Track
from skymemory.sky.whereabouts import Playing

FILE_NAME: Final = "playing.json"
COPY_NAME: Final = "playing"
"""Name of the schedule's copy, without its suffix."""
FORMAT: Final = 1


class DamagedRecordError(RuntimeError):
    """The record is no valid record."""


class PlayingRecord:
    """The record in one folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        self._seen: tuple[int, int] | None = None
        self._saved: tuple[int, int] | None = None

    def changed(self) -> bool:
        """Return True if the record is not the one of the last `load`."""
        return _mark(self.path) != self._seen

    def is_kept(self) -> bool:
        """Return True if the record is still the one that was last saved here."""
        return _mark(self.path) == self._saved

    def save(self, playing: Playing, source: Path) -> None:
        """Write the record, whole or not at all. The schedule's file `source` is copied."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
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
        }
        draft = self.path.with_suffix(".new")
        draft.write_text(json.dumps(record), encoding="utf-8")
        self._saved = _mark(draft)
        draft.replace(self.path)

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
            return self._parse(json.loads(text))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError, FileNotFoundError) as error:
            why = f"no {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
            raise DamagedRecordError(f"{self.path} is damaged ({why}); remove the folder {self.path.parent}") from error

    def clear(self) -> None:
        """Remove the record and the schedule's copy."""
        for path in (self.path, *map(self._copy, SUFFIXES)):
            path.unlink(missing_ok=True)

    def _copy(self, suffix: str) -> Path:
        return self.path.with_name(COPY_NAME + suffix)

    def _parse(self, record: dict[str, Any]) -> Playing:
        if record["format"] != FORMAT:
            raise ValueError(f"format {record['format']}, not {FORMAT}")
        rows = tuple((int(time_ms), Cell(int(plane), int(slot))) for time_ms, plane, slot in record["rows"])
        torus = Torus(int(record["planes"]), int(record["slots"]))
        if min(torus.planes, torus.slots) < 1:
            raise ValueError(f"{torus.planes} planes x {torus.slots} slots")
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
        )


def _mark(path: Path) -> tuple[int, int] | None:
    """Return a mark of the file; each record is a file of its own."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns
