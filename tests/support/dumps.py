"""Dumps of satellites: all memory of their processes, as somebody has it who captured one."""

from collections.abc import Iterator

from skymemory.testbed.local import LocalConstellation


def memory_of(pid: int) -> Iterator[bytes]:
    """Yield the contents of each writable mapping of a process."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            place, modes = line.split()[:2]
            if modes.startswith("rw"):
                first, end = (int(word, 16) for word in place.split("-"))
                memory.seek(first)
                yield memory.read(end - first)


def shown(local: LocalConstellation, texts: list[bytes]) -> set[bytes]:
    """Return which of these texts the memory of any satellite shows."""
    found: set[bytes] = set()
    for process in local.processes.values():
        for piece in memory_of(process.pid):
            found.update(text for text in texts if text in piece)
    return found
