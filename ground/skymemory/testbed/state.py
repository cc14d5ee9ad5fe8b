"""Which constellation is up: one small file that `up` writes, `down` removes and the other commands read."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from skymemory.config import Constellation
from skymemory.placement.torus import Satellite
from skymemory.testbed.processes import ProcessId, is_alive

FILE_NAME = "constellation.json"
FORMAT = 1
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class StateError(RuntimeError):
    """No constellation is up, or one is and should not be, or the record of it cannot be read."""


@dataclass(frozen=True)
class Running:
    """A constellation that was started."""

    kind: Literal["local", "docker"]
    constellation: Constellation
    processes: dict[Satellite, ProcessId]
    """of a local one; containers are known to their engine"""

    def alive(self) -> dict[Satellite, ProcessId]:
        """Those of its processes that still run."""
        return {place: process for place, process in self.processes.items() if is_alive(process)}


def default_folder() -> Path:
    """$SKYMEM_STATE, else $XDG_STATE_HOME/skymemory, else ~/.local/state/skymemory."""
    if chosen := os.environ.get("SKYMEM_STATE"):
        return Path(chosen)
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "skymemory"


class State:
    """The record in one folder; satellites' logs lie beside it."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or default_folder()
        self.path = self.folder / FILE_NAME

    @property
    def log_folder(self) -> Path:
        """Where the output of local satellites goes."""
        return self.folder / "logs"

    def save(self, running: Running) -> None:
        """Write the record, whole or not at all."""
        record = {
            "format": FORMAT,
            "boot": _boot_id(),
            "kind": running.kind,
            "constellation": running.constellation.model_dump(mode="json", by_alias=True, exclude_none=True),
            "processes": [[*place, p.pid, p.start_ticks] for place, p in running.processes.items()],
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".new")
        draft.write_text(json.dumps(record), encoding="utf-8")
        draft.replace(self.path)

    def load(self) -> Running | None:
        """What is recorded, or None. Processes of an earlier boot are left out: their pids mean nothing now.

        Raises:
            StateError: the record is there and not readable.
        """
        try:
            record: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
            if record["format"] != FORMAT:
                raise ValueError(f"format {record['format']}, not {FORMAT}")
            same_boot = record["boot"] == _boot_id()
            return Running(
                record["kind"],
                Constellation.model_validate(record["constellation"]),
                {Satellite(p, s): ProcessId(pid, ticks) for p, s, pid, ticks in record["processes"] if same_boot},
            )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StateError(f"{self.path} cannot be read ({error}); remove it when no constellation is up") from error

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
            raise StateError("no constellation is up; `skymem up` starts one")
        return running

    def clear(self) -> None:
        """Forget it."""
        self.path.unlink(missing_ok=True)


def _boot_id() -> str:
    return BOOT_ID.read_text(encoding="ascii").strip()
