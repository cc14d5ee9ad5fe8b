"""How many satellites this machine has room for: processes, threads and memory, by its own limits and its containers'."""

import os
import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

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
    tasks = _number(proc / "loadavg", lambda text: text.split()[3].partition("/")[2])
    for name in ("threads-max", "pid_max"):
        most = _number(proc / "sys" / "kernel" / name)
        if most is not None and tasks is not None:
            yield _of_threads(most - tasks, f"kernel.{name.replace('_', '-')} is {most}")
    most = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if most != resource.RLIM_INFINITY and os.getuid():  # not for root
        yield _of_threads(most - _own_threads(proc), f"`ulimit -u` is {most}")
    for folder in _groups(root, "pids"):
        most, used = _number(folder / "pids.max"), _number(folder / "pids.current")
        if most is not None and used is not None:
            yield _of_threads(most - used, f"the control group's pids.max is {most}")
    free_kib = _number(proc / "meminfo", lambda text: text.partition("MemAvailable:")[2].split()[0])
    if free_kib is not None:
        yield _of_memory(1024 * free_kib, "free memory is {:,.0f} MiB")
    for folder in _groups(root, "memory"):
        for limit, usage in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
            most, used = _number(folder / limit), _number(folder / usage)
            if most is not None and used is not None:
                free = most - used + (_number(folder / "memory.stat", _inactive_file) or 0)
                yield _of_memory(free, "the control group's free memory is {:,.0f} MiB")


def tightest(root: Path = Path("/")) -> Room | None:
    """Return the limit that leaves the least room; None if there is none."""
    return min(rooms(root), key=lambda room: room.satellites, default=None)


def free_memory_bytes(root: Path = Path("/")) -> int | None:
    """Return what is free for stores; None if nobody says."""
    kib = _number(root / "proc" / "meminfo", lambda text: text.partition("MemAvailable:")[2].split()[0])
    return None if kib is None else 1024 * kib


def _of_threads(free: int, limit: str) -> Room:
    return Room(max(0, (free - _RESERVE) // THREADS), limit)


def _of_memory(free_bytes: int, limit: str) -> Room:
    return Room(max(0, free_bytes // MEMORY_BYTES), limit.format(max(0, free_bytes) / 2**20))


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Return the folders of this process's control group and of those above it, with version 1 or 2."""
    try:
        lines = (root / "proc" / "self" / "cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, names, path = line.split(":", 2)
        mounts = ["sys/fs/cgroup", "sys/fs/cgroup/unified"] if not names else [f"sys/fs/cgroup/{controller}"]
        if not names or controller in names.split(","):
            for mount in mounts:
                # Inside a container the path may be that of the host: then only the top is there
                folder = Path(path.lstrip("/"))
                yield from (root / mount / one for one in (folder, *folder.parents) if (root / mount / one).is_dir())


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


def _inactive_file(text: str) -> str:
    """Return the page cache that is given up when memory is wanted."""
    return dict(line.split() for line in text.splitlines()).get("inactive_file", "0")


def _number(path: Path, find: Callable[[str], str] = str.strip) -> int | None:
    """Return a number of a file; None if it is not there, or says something else, such as max."""
    try:
        return int(find(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, IndexError):
        return None
