"""Which constellation is up: one small file that `up` writes, `down` removes and the other commands read."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from skymemory.config import Constellation
from skymemory.placement.torus import Satellite
from skymemory.state_folder import default_folder
from skymemory.testbed import satellite as skysat
from skymemory.testbed.playing_record import PlayingRecord
from skymemory.testbed.processes import ProcessId, is_alive, writers

FILE_NAME = "constellation.json"
FORMAT = 1
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


Kind = Literal["local", "docker"]


class StateError(RuntimeError):
    """No constellation is up, or one is and should not be, or the record of it cannot be read."""


class DamagedStateError(StateError):
    """The record was read and is none; `skymem down` clears it."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path} is damaged ({why}); `skymem down` clears it")
        self.why = why


@dataclass(frozen=True)
class Running:
    """A constellation that was started."""

    kind: Kind
    constellation: Constellation
    processes: dict[Satellite, ProcessId]
    """of a local one; containers are known to their engine"""

    def alive(self) -> dict[Satellite, ProcessId]:
        """Those of its processes that still run."""
        return {place: process for place, process in self.processes.items() if is_alive(process)}


@dataclass(frozen=True)
class Sky:
    """A constellation that somebody runs."""

    name: str
    """of its addresses: skies of one name are the same satellites"""
    constellation: Constellation
    playing: PlayingRecord
    """which schedule it follows"""


class State:
    """The record in one folder; satellites' logs lie beside it."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or default_folder()
        self.path = self.folder / FILE_NAME

    @property
    def log_folder(self) -> Path:
        """Where the output of local satellites goes."""
        return self.folder / "logs"

    def sky(self, constellation: Constellation) -> Sky:
        """Return the sky of a constellation, with its replay's record in this folder.

        Each sky has a record of its own. Skies are told apart by the addresses of their satellites.
        """
        network = constellation.network
        name = f"{network.base}-{network.port}-{constellation.planes}x{constellation.slots}"
        return Sky(name, constellation, PlayingRecord(self.folder / "replays" / name))

    def save(self, running: Running) -> None:
        """Write the record of what was just started, whole or not at all. It follows no schedule."""
        self.sky(running.constellation).playing.clear()
        self.update(running)

    def update(self, running: Running) -> None:
        """Write the record, whole or not at all.

        Raises:
            StateError: it cannot be written.
        """
        record = {
            "format": FORMAT,
            "boot": _boot_id(),
            "kind": running.kind,
            "constellation": running.constellation.model_dump(mode="json", by_alias=True, exclude_none=True),
            "processes": [[*place, p.pid, p.start_ticks] for place, p in running.processes.items()],
        }
        draft = self.path.with_suffix(".new")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(record), encoding="utf-8")
            draft.replace(self.path)
        except OSError as error:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise StateError(f"{self.path} cannot be written: {error.strerror or error}") from error

    def load(self) -> Running | None:
        """What is recorded, or None. Processes of an earlier boot are left out: their pids mean nothing now.

        Raises:
            DamagedStateError: the record does not say what it should.
            StateError: the record is there and the system does not let us read it.
        """
        try:
            text = self.path.read_text(encoding="utf-8")
            return _parse(json.loads(text))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateError(f"{self.path} cannot be read: {error.strerror or error}") from error
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            why = f"no {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
            raise DamagedStateError(self.path, why) from error

    def running(self) -> Running | None:
        """What is up, or None. Containers are believed to be up until they are stopped.

        Raises:
            StateError: the record is there and not readable.
        """
        running = self.load()
        return None if running is not None and running.kind == "local" and not running.alive() else running

    def require(self) -> Running:
        """What is up.

        Raises:
            StateError: nothing is.
        """
        running = self.running()
        if running is None:
            raise StateError("no constellation is up; `skymem up` starts one, --constellation names another")
        return running

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other commands that do the same from reading and writing the record."""
        self.folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def find_satellites(self) -> set[ProcessId]:
        """Satellites that write to the logs of this folder: all that `skymem up` has started with it, recorded or not."""
        return writers(self.log_folder.glob("*.log"), skysat.NAME)

    def clear(self) -> None:
        """Forget what is up, and which schedule it follows."""
        with suppress(DamagedStateError):
            if (running := self.load()) is not None:
                self.sky(running.constellation).playing.clear()
        self.path.unlink(missing_ok=True)


def _parse(record: dict[str, Any]) -> Running:
    """Raises ValueError, KeyError, TypeError."""
    if record["format"] != FORMAT:
        raise ValueError(f"format {record['format']}, not {FORMAT}")
    if record["kind"] not in get_args(Kind):
        raise ValueError(f"kind {record['kind']}")
    processes = {Satellite(int(p), int(s)): ProcessId(int(pid), int(ticks)) for p, s, pid, ticks in record["processes"]}
    constellation = Constellation().replace(**record["constellation"])
    return Running(record["kind"], constellation, processes if record["boot"] == _boot_id() else {})


def _boot_id() -> str:
    return BOOT_ID.read_text(encoding="ascii").strip()
