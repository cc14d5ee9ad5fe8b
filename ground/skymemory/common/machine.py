"""This machine's memory, and the limits of the control groups that this process is in."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

_GROUP_FILES: Final = (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes"))
"""Files with the limit and the use: of control groups of version 2, then of version 1."""


def memory_bytes(root: Path = Path("/")) -> int:
    """Return the memory of this machine, or the container's limit if that is less.

    Args:
        root: Folder above /proc and /sys.
    """
    limits = [number(folder / limit) for folder in group_folders(root, "memory") for limit, _ in _GROUP_FILES]
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *(limit for limit in limits if limit is not None)])


def free_memories(root: Path = Path("/")) -> Iterator[tuple[int, str]]:
    """Yield the free bytes of the machine and of each control group, each with words that name the owner."""
    free = free_machine_memory_bytes(root)
    if free is not None:
        yield free, "free memory"
    for folder in group_folders(root, "memory"):
        for limit, usage in _GROUP_FILES:
            most, used = number(folder / limit), number(folder / usage)
            if most is not None and used is not None:
                free = most - used + (number(folder / "memory.stat", _inactive_file) or 0)
                yield max(0, free), "the control group's free memory"


def free_machine_memory_bytes(root: Path = Path("/")) -> int | None:
    """Return the free bytes of this machine, whatever the limits of this process; None if they are unknown."""
    kib = number(root / "proc" / "meminfo", lambda text: text.partition("MemAvailable:")[2].split()[0])
    return None if kib is None else 1024 * kib


def free_memory_bytes(root: Path = Path("/")) -> int | None:
    """Return the free bytes within this process's limits; None if they are unknown."""
    return min((free for free, _ in free_memories(root)), default=None)


def group_folders(root: Path, controller: str) -> Iterator[Path]:
    """Yield the folders of this process's control group and of those above it, of version 1 or 2."""
    try:
        lines = (root / "proc" / "self" / "cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, names, path = line.split(":", 2)
        mounts = ["sys/fs/cgroup", "sys/fs/cgroup/unified"] if not names else [f"sys/fs/cgroup/{controller}"]
        if not names or controller in names.split(","):
            for mount in mounts:
                # Inside a container the path may be that of the host. Then only the top exists.
                folder = Path(path.lstrip("/"))
                yield from (root / mount / one for one in (folder, *folder.parents) if (root / mount / one).is_dir())


def number(path: Path, find: Callable[[str], str] = str.strip) -> int | None:
    """Return a number that a file holds; None if the file is missing or holds something else, such as `max`."""
    try:
        return int(find(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, IndexError):
        return None


def _inactive_file(text: str) -> str:
    """Return the bytes of page cache that the kernel gives up when memory is wanted."""
    return dict(line.split() for line in text.splitlines()).get("inactive_file", "0")
