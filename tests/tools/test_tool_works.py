"""Tools that are there and do not work, with real compilers and stand-ins for broken ones."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
NO_RUN_TIME = """\
#!/bin/sh
case "$*" in *-dumpversion*) echo 14.0.6; exit ;; esac
echo "clang: warning: nothing of interest" >&2
echo "/usr/bin/ld: cannot find libclang_rt.fuzzer-x86_64.a: No such file or directory" >&2
echo "clang: error: linker command failed with exit code 1" >&2
exit 1
"""


def run(tool: str, *arguments: str, path: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    wanted = {name: value for name, value in os.environ.items() if name != "CI"} | environment
    wanted["PATH"] = path or wanted["PATH"]
    return subprocess.run([TOOLS / tool, *arguments], env=wanted, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def without_run_time(tmp_path: Path) -> str:
    """A PATH on which clang cannot link a fuzz target."""
    program = tmp_path / "clang"
    program.write_text(NO_RUN_TIME)
    program.chmod(0o755)
    return f"{tmp_path}:{os.environ['PATH']}"


def test_what_works_is_passed_over() -> None:
    done = run("tool_works.sh", "gcc", "make")
    assert (done.returncode, done.stdout) == (0, "")
    assert run("optional.sh", "gcc", "a thing", "--", "echo", "it", "ran").stdout == "it ran\n"


def test_a_compiler_without_its_run_time_library_does_not_work(without_run_time: str) -> None:
    done = run("tool_works.sh", "gcc", "clang", path=without_run_time)
    assert done.returncode == 1
    (line,) = done.stdout.splitlines()
    assert "cannot find libclang_rt.fuzzer-x86_64.a" in line
    assert "apt install clang libclang-rt-14-dev" in line
    packages = run("tool_works.sh", "--packages", "gcc", "clang", path=without_run_time)
    assert packages.stdout == "clang libclang-rt-14-dev\n"


def test_a_broken_tool_leaves_a_check_out_and_ends_ci(without_run_time: str) -> None:
    left_out = run("optional.sh", "clang", "fuzzing", "--", "echo", "ran", path=without_run_time)
    assert left_out.returncode == 0
    assert left_out.stdout.startswith("skipped: fuzzing (clang is installed, but does not work")
    refused = run("optional.sh", "clang", "fuzzing", "--", "echo", "ran", path=without_run_time, CI="true")
    assert refused.returncode == 1
    assert "apt install" in refused.stderr
    assert refused.stdout == ""


def test_broken_tools_are_told_before_anything_long(without_run_time: str) -> None:
    # The bin/ of VENV would come first in PATH.
    command = ["make", "--no-print-directory", "test-tools", "TOOLS=clang", "VENV=no-such-folder"]
    for ci, status in (("", 0), ("true", 2)):
        environment = os.environ | {"PATH": without_run_time, "CI": ci}
        done = subprocess.run(
            command, cwd=TOOLS.parent, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert (done.returncode, "libclang-rt-14-dev" in done.stdout) == (status, True), done.stderr


def test_an_unknown_tool_is_named() -> None:
    done = run("tool_works.sh", "no-such-tool")
    assert done.returncode == 1
    assert done.stdout == "no-such-tool is not installed; Debian: apt install no-such-tool\n"
