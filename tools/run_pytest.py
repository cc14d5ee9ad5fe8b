#!/usr/bin/env python3
"""Run pytest, and run up to six failed tests a second time, alone.

usage: tools/run_pytest.py [PYTEST ARGUMENT ...]

Tests use real processes and sockets, and CI's machines are shared: one of three thousand tests now and then meets a machine that
stands still, and several at once if it does so for long. A test that fails twice is a failure. A test that passes alone is named
in the last lines of the output, and has to be mended. More than six failures, an error of pytest itself and a worker that crashed
are failures at once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SECOND_RUNS_MAX = 6
"""Failed tests that run a second time, at most."""
FLAKY_FILE = "SKYMEM_FLAKY"
"""Environment variable with the path of a file that gets the lines about tests which passed alone. CI ends with that file."""
LAST_FAILED = Path(".pytest_cache/v/cache/lastfailed")
"""File in which pytest keeps the names of failed tests, below its root."""


class Crashes:
    """A plugin of pytest that sees whether a worker crashed."""

    seen = False

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object, error: object) -> None:
        """Note that a worker ended by an error."""
        self.seen = self.seen or error is not None


def run_pytest(arguments: list[str]) -> int:
    """Run pytest in the current folder, which must be its root, and return an exit status: 0 if every test passed once."""
    crashes = Crashes()
    status = int(pytest.main([*arguments, "--cache-clear", "--max-worker-restart=0"], plugins=[crashes]))
    if status != pytest.ExitCode.TESTS_FAILED or crashes.seen:
        return status
    failed = sorted(json.loads(LAST_FAILED.read_text()))
    if len(failed) > SECOND_RUNS_MAX:
        return status
    print(f"run_pytest: {len(failed)} failed; a second run, alone", flush=True)
    alone = [sys.executable, "-m", "pytest", *arguments, "--last-failed", "--last-failed-no-failures=none", "-n", "0"]
    status = subprocess.run(alone, check=False).returncode
    if status == 0:
        for name in failed:
            line = f"run_pytest: FLAKY, passed in its second run only: {name}"
            print(line, flush=True)
            if told := os.environ.get(FLAKY_FILE):
                with Path(told).open("a") as file:
                    file.write(f"{line}\n")
    return status


if __name__ == "__main__":
    sys.exit(run_pytest(sys.argv[1:]))
