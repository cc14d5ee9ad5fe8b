"""Room of a machine for satellites: processes, threads and memory, by its own limits and its containers'.

Satellites need more as containers: each has a process of the engine beside it, and a port of the bridge.
"""

import os
import resource
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skymemory.common.machine import free_machine_memory_bytes, free_memories, group_folders, number

THREADS: Final = 5
"""Threads of a satellite; each counts as a process does."""
MEMORY_BYTES: Final = 3 << 20
"""Memory of a satellite beside its store, at most; the store takes memory as it fills."""
CONTAINER_THREADS: Final = 15
"""Threads of a satellite in a container, with those of the engine's process beside it (measured: 14.2)."""
CONTAINER_MEMORY_BYTES: Final = 8 << 20
"""Memory of both, and of what the engine itself keeps of a container (measured: 6.3 MiB); without the store."""
BRIDGE_PORTS: Final = 1023
"""Ports of a bridge: Linux gives it no more (BR_MAX_PORTS, of which 0 is not used), and all containers are on one."""
_RESERVE: Final = 16
"""Threads for the command itself and what it starts."""


@dataclass(frozen=True)
class SatelliteRoom:
    """Room that one limit leaves."""

    satellites: int
    limit: str
    """The limit in words."""


@dataclass(frozen=True)
class Engine:
    """An engine that runs containers."""

    memory_bytes: int
    is_here: bool
    """True if the engine is on this very machine."""


def rooms(root: Path = Path("/")) -> Iterator[SatelliteRoom]:
    """Yield the room that each limit leaves. A limit that cannot be read does not count.

    Args:
        root: Folder above /proc and /sys.
    """
    proc = root / "proc"
    yield from _of_kernel(proc, THREADS)
    allowed = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if allowed != resource.RLIM_INFINITY and os.getuid():  # root has no such limit
        yield _of_threads(allowed - _own_threads(proc), f"`ulimit -u` is {allowed}")
    for folder in group_folders(root, "pids"):
        most, used = number(folder / "pids.max"), number(folder / "pids.current")
        if most is not None and used is not None:
            yield _of_threads(most - used, f"the control group's pids.max is {most}")
    for free, what in free_memories(root):
        yield SatelliteRoom(free // MEMORY_BYTES, f"{what} is {free / 2**20:,.0f} MiB")


def container_rooms(engine: Engine, root: Path = Path("/")) -> Iterator[SatelliteRoom]:
    """Yield the room that each limit leaves in an engine.

    Of another machine only the memory is known. If the engine is on this one, its free memory counts as well. This process's
    control groups do not: containers have others.
    """
    yield SatelliteRoom(BRIDGE_PORTS, f"a bridge has {BRIDGE_PORTS:,} ports")
    yield SatelliteRoom(
        engine.memory_bytes // CONTAINER_MEMORY_BYTES, f"the engine has {engine.memory_bytes / 2**20:,.0f} MiB of memory"
    )
    if engine.is_here:
        yield from _of_kernel(root / "proc", CONTAINER_THREADS)
        available = free_machine_memory_bytes(root)
        if available is not None:
            yield SatelliteRoom(available // CONTAINER_MEMORY_BYTES, f"free memory is {available / 2**20:,.0f} MiB")


def tightest(rooms: Iterable[SatelliteRoom]) -> SatelliteRoom | None:
    """Return the limit that leaves the least room; None if there is none."""
    return min(rooms, key=lambda room: room.satellites, default=None)


def refusal(count: int, rooms: Iterable[SatelliteRoom]) -> str:
    """Return why so many satellites do not fit, and how many do; '' if they fit."""
    room = tightest(rooms)
    if room is None or count <= room.satellites:
        return ""
    return f"{count:,} satellites are more than fit: {room.limit}, which leaves room for {room.satellites:,}"


def _of_kernel(proc: Path, each: int) -> Iterator[SatelliteRoom]:
    tasks = number(proc / "loadavg", lambda text: text.split()[3].partition("/")[2])
    for name in ("threads-max", "pid_max"):
        most = number(proc / "sys" / "kernel" / name)
        if most is not None and tasks is not None:
            yield _of_threads(most - tasks, f"kernel.{name} is {most}", each)


def _of_threads(free: int, limit: str, each: int = THREADS) -> SatelliteRoom:
    return SatelliteRoom(max(0, (free - _RESERVE) // each), limit)


def _own_threads(proc: Path) -> int:
    """Return the number of this user's threads."""
    total, user = 0, str(os.getuid())
    for folder in proc.glob("[0-9]*"):
        try:
            lines = dict(line.partition(":")[::2] for line in (folder / "status").read_text(encoding="utf-8").splitlines())
        except OSError:  # the process is gone by now
            continue
        if lines.get("Uid", "").split()[:1] == [user]:
            total += int(lines.get("Threads", "1"))
    return total
