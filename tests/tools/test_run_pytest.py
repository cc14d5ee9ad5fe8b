"""The second run of tests that failed, with real runs of pytest on small projects."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "run_pytest.py"
ONCE = """\
from pathlib import Path
def test_once():
    mark = Path("was-here")
    was_here = mark.exists()
    mark.touch()
    assert was_here
"""
GOOD = "def test_good():\n    pass\n"
BAD = "def test_bad():\n    assert False\n"
CRASH = "import os\n" + ONCE.replace("assert was_here", "was_here or os.abort()")


def run(folder: Path, tests: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_one.py").write_text(tests)
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, TOOL, "-n", "2", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_what_passes_runs_once(tmp_path: Path) -> None:
    done = run(tmp_path, GOOD)
    assert done.returncode == 0
    assert "run_pytest" not in done.stdout


def test_what_passes_alone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "flaky"
    told.write_text("an earlier line\n")
    monkeypatch.setenv("SKYMEM_FLAKY", str(told))
    done = run(tmp_path, GOOD + ONCE)
    assert done.returncode == 0
    line = "run_pytest: FLAKY, passed in its second run only: test_one.py::test_once"
    assert done.stdout.splitlines()[-1] == line
    assert told.read_text() == f"an earlier line\n{line}\n"


@pytest.mark.parametrize(
    "tests",
    [
        BAD,
        BAD + ONCE,
        "".join(ONCE.replace("once", f"once_{number}").replace("was-here", f"was-here-{number}") for number in range(7)),
        "import no_such_module\n",
        CRASH,
    ],
    ids=["twice", "one of two", "seven", "no import", "crash"],
)
def test_what_fails_is_a_failure(tmp_path: Path, tests: str) -> None:
    done = run(tmp_path, tests)
    assert done.returncode != 0
    assert "FLAKY" not in done.stdout


def test_no_test_is_a_failure(tmp_path: Path) -> None:
    assert run(tmp_path, GOOD, "-k", "nothing").returncode == 5
