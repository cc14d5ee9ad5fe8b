"""How many satellites fit: limits of the machine, of the user, and of control groups of both versions."""

from pathlib import Path

import pytest

from skymemory.common.machine import free_memory_bytes
from skymemory.testbed.room_for_satellites import (
    BRIDGE_PORTS,
    CONTAINER_MEMORY_BYTES,
    CONTAINER_THREADS,
    MEMORY_BYTES,
    THREADS,
    Engine,
    container_rooms,
    refusal,
    rooms,
    tightest,
)


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
    room = tightest(rooms(root))
    assert room is not None
    assert (room.satellites, room.limit) == (7, "free memory is 21 MiB")
    assert free_memory_bytes(root) == 7 * MEMORY_BYTES


@pytest.mark.parametrize("name", ["threads-max", "pid_max"])
def test_threads_of_the_machine(root: Path, name: str) -> None:
    write(root, f"proc/sys/kernel/{name}", str(1000 + 16 + 5 * THREADS))
    room = tightest(rooms(root))
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
    room = tightest(rooms(root))
    assert room is not None
    assert room.satellites == 3
    assert "pids.max" in room.limit


def test_page_cache_of_a_group_is_free_memory(root: Path) -> None:
    write(root, "proc/self/cgroup", "0::/a\n")
    write(root, "sys/fs/cgroup/a/memory.max", str(10 * MEMORY_BYTES))
    write(root, "sys/fs/cgroup/a/memory.current", str(8 * MEMORY_BYTES))
    write(root, "sys/fs/cgroup/a/memory.stat", f"anon 5\ninactive_file {2 * MEMORY_BYTES}\n")
    room = tightest(rooms(root))
    assert room is not None
    assert room.satellites == 4
    assert free_memory_bytes(root) == 4 * MEMORY_BYTES


def test_what_cannot_be_read_is_no_limit(tmp_path: Path) -> None:
    assert [room for room in rooms(tmp_path) if "ulimit" not in room.limit] == []
    assert free_memory_bytes(tmp_path) is None


def fits(engine: Engine, root: Path) -> tuple[int, str]:
    room = tightest(container_rooms(engine, root))
    assert room is not None
    return room.satellites, room.limit


def test_containers_of_another_machine_have_its_memory_and_a_bridge(root: Path) -> None:
    """Nothing else is known of it: neither its free memory nor its threads."""
    write(root, "proc/meminfo", "MemAvailable: 8 kB\n")
    write(root, "proc/sys/kernel/threads-max", "1001")
    assert fits(Engine(64 << 30, is_here=False), root) == (BRIDGE_PORTS, "a bridge has 1,023 ports")
    assert fits(Engine(20 * CONTAINER_MEMORY_BYTES, is_here=False), root) == (20, "the engine has 160 MiB of memory")


def test_containers_of_this_machine_share_it(root: Path) -> None:
    engine = Engine(64 << 30, is_here=True)
    assert fits(engine, root)[0] == BRIDGE_PORTS
    write(root, "proc/sys/kernel/threads-max", str(1000 + 16 + 7 * CONTAINER_THREADS))
    assert fits(engine, root)[0] == 7
    write(root, "proc/meminfo", f"MemAvailable: {CONTAINER_MEMORY_BYTES // 1024 * 5} kB\n")
    assert fits(engine, root) == (5, "free memory is 40 MiB")


def test_what_is_refused_says_how_many_fit(root: Path) -> None:
    engine = Engine(64 << 30, is_here=False)
    assert refusal(BRIDGE_PORTS, container_rooms(engine, root)) == ""
    told = "2,000 satellites are more than fit: a bridge has 1,023 ports, which leaves room for 1,023"
    assert refusal(2000, container_rooms(engine, root)) == told
