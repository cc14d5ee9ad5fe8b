"""Dumps of satellites: all memory of their processes, as somebody has it who captured one."""

import os
from collections.abc import Collection, Iterator

from skymemory.testbed.local import LocalConstellation

PAGE = os.sysconf("SC_PAGESIZE")
PIECE = 1 << 16
OVERLAP = 4096
ZEROS = bytes(PIECE + OVERLAP)


def memory_of(pid: int) -> Iterator[bytes]:
    """Yield all that a process has written, in pieces that overlap."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            span, mode, *_ = line.split()
            start, end = (int(one, 16) for one in span.split("-"))
            if mode.startswith("rw"):
                for at in written(pid, start, end):
                    memory.seek(at)
                    yield memory.read(min(PIECE + OVERLAP, end - at))


def written(pid: int, start: int, end: int) -> Iterator[int]:
    """Yield the beginnings of the pieces of which a page is in memory."""
    with open(f"/proc/{pid}/pagemap", "rb", 0) as pages:
        pages.seek(start // PAGE * 8)
        for at in range(start, end, PIECE):
            entries = pages.read((min(PIECE, end - at) + PAGE - 1) // PAGE * 8)
            if any(entry & 0xC0 for entry in entries[7::8]):  # present, or swapped out
                yield at


def shown(local: LocalConstellation, texts: Collection[bytes]) -> set[bytes]:
    """Return which of these texts, of 4096 bytes at most, the memory of any satellite shows."""
    assert all(len(text) <= OVERLAP for text in texts)
    found: set[bytes] = set()
    for process in local.processes.values():
        for piece in memory_of(process.pid):
            if piece != ZEROS[: len(piece)]:
                found.update(text for text in texts if text in piece)
    return found
