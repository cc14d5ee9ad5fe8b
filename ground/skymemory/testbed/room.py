"""How many satellites this machine has room for: processes, threads and memory, by its own limits and its containers'."""

import os
import resource
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skymemory.machine import free_memories, group_folders, number

THREADS: Final = 5
"""of a satellite; each counts as a process does"""
MEMORY_BYTES: Final = 3 << 20
"""of a satellite beside its store, at most; the store takes memory as it fills"""
_RESERVE: Final = 16
"""threads for the command itself and what it starts"""


@dataclass(frozen=True)
class Room:
    """What one limit leaves."""

    satellites: int
    limit: str
    """in words"""


def rooms(root: Path = Path("/")) -> Iterator[Room]:
    """Return what each limit leaves room for. A limit that cannot be read is none.

    Args:
        root: where /proc and /sys are.
    """
    proc = root / "proc"
    tasks = number(proc / "loadavg", lambda text: text.split()[3].partition("/")[2])
    for name in ("threads-max", "pid_max"):
        most = number(proc / "sys" / "kernel" / name)
        if most is not None and tasks is not None:
            yield _of_threads(most - tasks, f"kernel.{name} is {most}")
    most = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if most != resource.RLIM_INFINITY and os.getuid():  # not for root
        yield _of_threads(most - _own_threads(proc), f"`ulimit -u` is {most}")
    for folder in group_folders(root, "pids"):
        most, used = number(folder / "pids.max"), number(folder / "pids.current")
        if most is not None and used is not None:
            yield _of_threads(most - used, f"the control group's pids.max is {most}")
    for free, what in free_memories(root):
        yield Room(free // MEMORY_BYTES, f"{what} is {free / 2**20:,.0f} MiB")


def tightest(root: Path = Path("/")) -> Room | None:
    """Return the limit that leaves the least room; None if there is none."""
    return min(rooms(root), key=lambda room: room.satellites, default=None)


def _of_threads(free: int, limit: str) -> Room:
    return Room(max(0, (free - _RESERVE) // THREADS), limit)


def _own_threads(proc: Path) -> int:
    """Return the number of this user's threads."""
    total, user = 0, str(os.getuid())
    for folder in proc.glob("[0-9]*"):
        try:
            lines = dict(line.partition(":")[::2] for line in (folder / "status").read_text(encoding="utf-8").splitlines())
        except OSError:  # gone by now
            continue
        if lines.get("Uid", "").split()[:1] == [user]:
            total += int(lines.get("Threads", "1"))
    return total
