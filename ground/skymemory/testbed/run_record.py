"""The record of the constellation that is up: one small file that `up` writes, `down` removes and other commands read."""

import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, get_args

from skymemory.common.bounded_folder import bound_folder
from skymemory.common.file_lock import turn
from skymemory.common.machine_identity import boot_id, machine_identity
from skymemory.common.state_folder import default_folder, make_private
from skymemory.sky.constellation import Constellation
from skymemory.testbed import satellite_program as skysat
from skymemory.testbed.compose import PROJECT
from skymemory.testbed.local import LOG_FOLDER
from skymemory.testbed.playing_record import PlayingRecord
from skymemory.testbed.processes import ProcessId, is_alive, writers
from skymemory.wire.address import Satellite

FILE_NAME = "constellation.json"
LOCK_NAME = "constellation.lock"
REPLAYS_MAX = 256
"""Most skies whose schedules are kept."""
REPLAYS_BYTES_MAX = 256 << 20
TURN_S = 60.0
"""Seconds for which a command that starts or ends satellites waits for another one."""
FORMAT = 1


Kind = Literal["local", "docker"]


class StateError(RuntimeError):
    """No constellation is up, one is up and should not be, or its record cannot be read."""


class DamagedStateError(StateError):
    """The record is no valid record; `skymem down` clears it."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path} is damaged ({why}); `skymem down` clears it")
        self.why = why


@dataclass(frozen=True)
class Running:
    """A constellation that was started."""

    kind: Kind
    constellation: Constellation
    processes: dict[Satellite, ProcessId]
    """Processes of a local one; an engine knows its containers."""
    project: str = ""
    """Compose project of containers."""

    def alive(self) -> dict[Satellite, ProcessId]:
        """Return the processes that still run."""
        return {place: process for place, process in self.processes.items() if is_alive(process)}


@dataclass(frozen=True)
class RunSky:
    """A constellation that somebody runs."""

    name: str
    """Name made of its addresses: skies of one name are the same satellites."""
    constellation: Constellation
    playing: PlayingRecord
    """Record of the schedule that it follows."""


class RunRecord:
    """The record in one folder; satellites' logs lie beside it."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or default_folder()
        self.path = self.folder / FILE_NAME

    @property
    def log_folder(self) -> Path:
        """Folder of the output of local satellites."""
        return self.folder / LOG_FOLDER

    @property
    def project(self) -> str:
        """Name of the Compose project of containers that are started with this record; no other user or folder has it.

        Machines may share an engine, and have a user and a folder of the same name.
        """
        return self._project(machine_identity())

    @property
    def projects(self) -> tuple[str, ...]:
        """Names of the projects that may have been started with this record: `project`, and the name of older versions."""
        return self.project, self._project(os.uname().nodename)

    def _project(self, machine: str) -> str:
        who = f"{machine}\0{os.getuid()}\0{self.folder.resolve()}"
        return f"{PROJECT}-{blake2b(os.fsencode(who), digest_size=4).hexdigest()}"

    def sky(self, constellation: Constellation) -> RunSky:
        """Return the sky of a constellation, with its replay's record in this folder.

        Each sky has a record of its own. Skies are told apart by the addresses of their satellites.
        """
        network = constellation.network
        name = f"{network.base}-{network.port}-{constellation.planes}x{constellation.slots}"
        return RunSky(name, constellation, PlayingRecord(self._replays / name, self._bound_replays))

    @property
    def _replays(self) -> Path:
        return self.folder / "replays"

    def _bound_replays(self) -> None:
        """Remove the records of skies that were not used for longest, but for one that is up or played."""
        up = None
        with suppress(StateError):
            if (running := self.running()) is not None:
                up = self.sky(running.constellation).name
        bound_folder(
            self._replays,
            REPLAYS_MAX,
            REPLAYS_BYTES_MAX,
            lambda folder: folder.name == up or PlayingRecord(folder).is_played(),
        )

    def save(self, running: Running) -> None:
        """Write the record of a constellation that was just started, whole or not at all. It follows no schedule."""
        self.sky(running.constellation).playing.clear()
        self.update(running)

    def update(self, running: Running) -> None:
        """Write the record, whole or not at all.

        Raises:
            StateError: The record cannot be written.
        """
        record = {
            "format": FORMAT,
            "boot": boot_id(),
            "kind": running.kind,
            "constellation": running.constellation.model_dump(mode="json", by_alias=True, exclude_none=True),
            "processes": [[*place, p.pid, p.start_ticks] for place, p in running.processes.items()],
            "project": running.project,
        }
        draft = self.path.with_suffix(".new")
        try:
            make_private(self.folder)
            draft.write_text(json.dumps(record), encoding="utf-8")
            draft.replace(self.path)
        except OSError as error:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise StateError(f"{self.path} cannot be written: {error.strerror or error}") from error

    def load(self) -> Running | None:
        """Return the recorded constellation, or None. Processes of an earlier boot are left out: their pids mean nothing now.

        Raises:
            DamagedStateError: The record is no valid record.
            StateError: The record exists and cannot be read.
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
        """Return the constellation that is up, or None. Containers count as up until they are stopped.

        Raises:
            StateError: The record exists and cannot be read.
        """
        running = self.load()
        return None if running is not None and running.kind == "local" and not running.alive() else running

    def require(self) -> Running:
        """Return the constellation that is up.

        Raises:
            StateError: None is up.
        """
        running = self.running()
        if running is None:
            raise StateError("no constellation is up; `skymem up` starts one, --constellation names another")
        return running

    def turn(self, command: str, tell: Callable[[str], None]) -> AbstractContextManager[None]:
        """Keep other commands from starting and ending satellites with this record, as long as the context lasts.

        Args:
            command: Words for others about who is at work.
            tell: Function that gets one line if there is a wait.

        Raises:
            BusyError: Another command was at work for too long. It comes on entering the context.
            StateError: The folder cannot be made.
        """
        try:
            make_private(self.folder)
        except OSError as error:
            raise StateError(f"{self.folder} cannot be made: {error.strerror or error}") from error
        return turn(self.folder / LOCK_NAME, command, TURN_S, tell)

    def find_satellites(self) -> set[ProcessId]:
        """Return the satellites that write to the logs of this folder: all that `skymem up` started with it, recorded or not."""
        return writers(self.log_folder.glob("*.log"), skysat.NAME)

    def clear(self) -> None:
        """Remove the records of the constellation that is up and of the schedule that it follows."""
        with suppress(DamagedStateError):
            if (running := self.load()) is not None:
                self.sky(running.constellation).playing.clear()
        self.path.unlink(missing_ok=True)


def _parse(record: dict[str, Any]) -> Running:
    """Return a parsed record. Raise ValueError, KeyError or TypeError if it is not valid."""
    if record["format"] != FORMAT:
        raise ValueError(f"format {record['format']}, not {FORMAT}")
    if record["kind"] not in get_args(Kind):
        raise ValueError(f"kind {record['kind']}")
    processes = {Satellite(int(p), int(s)): ProcessId(int(pid), int(ticks)) for p, s, pid, ticks in record["processes"]}
    constellation = Constellation().replace(**record["constellation"])
    project = str(record.get("project", PROJECT)) if record["kind"] == "docker" else ""
    return Running(record["kind"], constellation, processes if record["boot"] == boot_id() else {}, project)
