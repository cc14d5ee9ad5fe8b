"""Memory of the machine, and of the control group that has less."""

from pathlib import Path

import pytest

from skymemory.common.machine import memory_bytes


def test_the_machine_has_memory(tmp_path: Path) -> None:
    assert memory_bytes() >= 1 << 28
    assert memory_bytes(tmp_path) >= memory_bytes()


@pytest.mark.parametrize(
    ("line", "file"),
    [("0::/a/b", "a/b/memory.max"), ("0::/a/b", "a/memory.max"), ("8:memory:/a", "memory/a/memory.limit_in_bytes")],
)
def test_a_control_group_has_less(tmp_path: Path, line: str, file: str) -> None:
    for path, text in (("proc/self/cgroup", line + "\n"), (f"sys/fs/cgroup/{file}", "1000000\n")):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)
    assert memory_bytes(tmp_path) == 1_000_000
    (tmp_path / "sys/fs/cgroup" / file).write_text("max\n")
    assert memory_bytes(tmp_path) > 1_000_000
