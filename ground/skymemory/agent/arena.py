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
"""without them a file cut short would end whoever touches the lost pages (SIGBUS)"""
_NOT_WRITABLE: Final = fcntl.F_SEAL_WRITE | 0x0010
"""the second is F_SEAL_FUTURE_WRITE, which Python does not name"""
GRAIN_BYTES: Final = 4096
"""leases begin at pages"""


class ArenaError(ValueError):
    """What should be an arena is none; the message says why."""


def make(length: int) -> tuple[int, mmap.mmap]:
    """A new arena: its descriptor, to be sent and closed, and its memory, which lives as long as anything refers to it.

    Raises:
        OSError: the system has none to give.
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
    """Map an arena that an engine has made. The descriptor stays the caller's, and is not needed any more.

    Raises:
        ArenaError: it is no sealed memory of that length.
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
    """Pieces of an arena: the lowest gap that is large enough. Not thread-safe.

    Low places first: their pages have been touched before, and gaps grow together again at the far end.
    """

    def __init__(self, length: int) -> None:
        """Of the last page only a whole one is used."""
        self._starts = [0]
        """of gaps, rising; no two touch"""
        self._ends = [length // GRAIN_BYTES * GRAIN_BYTES]

    def take(self, length: int) -> int | None:
        """Where a piece of so many bytes lies, at least 1; None: there is no gap for it."""
        need = _whole_grains(length)
        for at, (start, end) in enumerate(zip(self._starts, self._ends, strict=True)):
            if end - start >= need:
                self._starts[at] += need
                if self._starts[at] == end:
                    del self._starts[at], self._ends[at]
                return start
        return None

    def give_back(self, start: int, length: int) -> None:
        """A piece that was taken is free again."""
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
        """Of all gaps together."""
        return sum(self._ends) - sum(self._starts)


def _whole_grains(length: int) -> int:
    return -(-length // GRAIN_BYTES) * GRAIN_BYTES
