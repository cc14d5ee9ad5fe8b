"""The memory that an engine shares with its agent: anonymous, sealed, with no name that could be left behind.

The engine makes it and decides what lies where; the agent maps it and reads and writes where it is told. When either dies the
kernel takes the memory back.
"""

import bisect
import fcntl
import mmap
import os
import stat
from typing import Final

SEALS: Final = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
"""Seals that an arena needs. If somebody could shorten the file, access to the lost pages would end a process (SIGBUS)."""
_NOT_WRITABLE: Final = fcntl.F_SEAL_WRITE | 0x0010
"""Seals that an arena must not have; the second is F_SEAL_FUTURE_WRITE, which Python does not name."""
GRAIN_BYTES: Final = 4096
"""Bytes of a page. Leases begin at page boundaries."""


class ArenaError(ValueError):
    """A descriptor is no arena; the message says why."""


def make(length: int) -> tuple[int, mmap.mmap]:
    """Make an arena: a descriptor, to be sent and closed, and memory, which lives as long as anything refers to it.

    Raises:
        OSError: The system has no memory to give.
    """
    descriptor = os.memfd_create("skymemory-arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(descriptor, length)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, SEALS)
        return descriptor, mmap.mmap(descriptor, length)
    except BaseException:
        os.close(descriptor)
        raise


def adopt(descriptor: int, length: int) -> mmap.mmap:
    """Map an arena that an engine has made. The caller should close the descriptor afterwards.

    Raises:
        ArenaError: The descriptor is no sealed memory of that length.
    """
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise ArenaError("the descriptor is no file in memory (memfd)")
    try:
        seals = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
    except OSError as error:
        raise ArenaError("the descriptor is no file in memory (memfd)") from error
    if seals & SEALS != SEALS:
        raise ArenaError("the arena is not sealed against shrinking, growing and unsealing")
    if seals & _NOT_WRITABLE:
        raise ArenaError("the arena is sealed against writing")
    if status.st_size != length:
        raise ArenaError(f"the arena has {status.st_size} bytes, and {length} were announced")
    try:
        return mmap.mmap(descriptor, length)
    except (OSError, ValueError) as error:
        raise ArenaError(f"the arena cannot be mapped: {error}") from error


class Allocator:
    """Allocator of pieces of an arena, which takes the lowest gap that is large enough. Not thread-safe.

    Low pages have been touched before, and gaps at the far end grow together again.
    """

    def __init__(self, length: int) -> None:
        """Make an allocator of all whole pages of an arena; a last page that is not whole stays unused."""
        self._starts = [0]
        """Starts and ends of gaps, rising; no two gaps touch."""
        self._ends = [length // GRAIN_BYTES * GRAIN_BYTES]

    def take(self, length: int) -> int | None:
        """Return the offset of a new piece of at least 1 byte; None if no gap is large enough."""
        need = _whole_grains(length)
        for at, (start, end) in enumerate(zip(self._starts, self._ends, strict=True)):
            if end - start >= need:
                self._starts[at] += need
                if self._starts[at] == end:
                    del self._starts[at], self._ends[at]
                return start
        return None

    def give_back(self, start: int, length: int) -> None:
        """Free a piece that was taken."""
        end = start + _whole_grains(length)
        at = bisect.bisect_left(self._starts, start)
        assert at == 0 or self._ends[at - 1] <= start
        assert at == len(self._starts) or end <= self._starts[at]
        if at < len(self._starts) and self._starts[at] == end:
            end = self._ends[at]
            del self._starts[at], self._ends[at]
        if at and self._ends[at - 1] == start:
            self._ends[at - 1] = end
        else:
            self._starts.insert(at, start)
            self._ends.insert(at, end)

    @property
    def free_bytes(self) -> int:
        """Bytes of all gaps together."""
        return sum(self._ends) - sum(self._starts)


def _whole_grains(length: int) -> int:
    return -(-length // GRAIN_BYTES) * GRAIN_BYTES
