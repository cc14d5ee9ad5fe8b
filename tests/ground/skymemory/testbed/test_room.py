"""How many satellites fit: limits of the machine, of the user, and of control groups of both versions."""

from pathlib import Path

import pytest

from skymemory.machine import free_memory_bytes
from skymemory.testbed.room import MEMORY_BYTES, THREADS, rooms, tightest


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine with 1,000 threads, and room for a million more."""
    write(tmp_path, "proc/loadavg", "0.1 0.2 0.3 2/1000 4711\n")
    write(tmp_path, "proc/sys/kernel/threads-max", "1000000\n")
    write(tmp_path, "proc/sys/kernel/pid_max", "4000000\n")
    write(tmp_path, "proc/meminfo", "MemTotal: 9 kB\nMemFree: 1 kB\nMemAvailable:   30000000 kB\n")
    return tmp_path


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_memory(root: Path) -> None:
    write(root, "proc/meminfo", f"MemAvailable: {MEMORY_BYTES // 1024 * 7} kB\n")
    room = tightest(root)
    assert room is not None
    assert (room.satellites, room.limit) == (7, "free memory is 21 MiB")
    assert free_memory_bytes(root) == 7 * MEMORY_BYTES


@pytest.mark.parametrize("name", ["threads-max", "pid_max"])
def test_threads_of_the_machine(root: Path, name: str) -> None:
    write(root, f"proc/sys/kernel/{name}", str(1000 + 16 + 5 * THREADS))
    room = tightest(root)
    assert room is not None
    assert room.satellites == 5
    assert room.limit.startswith(f"kernel.{name} is ")


@pytest.mark.parametrize(
    ("line", "folder"),
    [("0::/a/b", "sys/fs/cgroup/a"), ("8:pids:/a/b", "sys/fs/cgroup/pids/a"), ("0::/elsewhere", "sys/fs/cgroup")],
)
def test_control_groups_count_with_those_above_them(root: Path, line: str, folder: str) -> None:
    write(root, "proc/self/cgroup", line + "\n")
    write(root, f"{folder}/pids.max", str(100 + 16 + 3 * THREADS))
    write(root, f"{folder}/pids.current", "100")
    (root / folder / "b").mkdir(exist_ok=True)
    write(root, f"{folder}/b/pids.max", "max")
    write(root, f"{folder}/b/pids.current", "50")
    room = tightest(root)
    assert room is not None
    assert room.satellites == 3
    assert "pids.max" in room.limit


def test_page_cache_of_a_group_is_free_memory(root: Path) -> None:
    write(root, "proc/self/cgroup", "0::/a\n")
    write(root, "sys/fs/cgroup/a/memory.max", str(10 * MEMORY_BYTES))
    write(root, "sys/fs/cgroup/a/memory.current", str(8 * MEMORY_BYTES))
    write(root, "sys/fs/cgroup/a/memory.stat", f"anon 5\ninactive_file {2 * MEMORY_BYTES}\n")
    room = tightest(root)
    assert room is not None
    assert room.satellites == 4
    assert free_memory_bytes(root) == 4 * MEMORY_BYTES


def test_what_cannot_be_read_is_no_limit(tmp_path: Path) -> None:
    assert [room for room in rooms(tmp_path) if "ulimit" not in room.limit] == []
    assert free_memory_bytes(tmp_path) is None
