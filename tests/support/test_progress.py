"""Tests wait for processes as long as these get on."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.progress import BOUND_S, QUIET_S, Progress, cpu_ticks, run


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that does nothing."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def test_who_writes_gets_on_until_the_bound(sleeper: subprocess.Popen[bytes], tmp_path: Path) -> None:
    clock, log = Clock(), tmp_path / "log"
    progress = Progress(sleeper, log, clock=clock)
    while clock.now + 100 < BOUND_S:
        clock.now += 100
        with log.open("a") as opened:
            opened.write("still here\n")
        progress.check("it writes")
    clock.now = BOUND_S
    with pytest.raises(AssertionError, match="not within 1800 s"):
        progress.check("it writes")


def test_who_does_nothing_is_given_up(sleeper: subprocess.Popen[bytes]) -> None:
    clock = Clock()
    progress = Progress(sleeper, clock=clock)

    def look_ten_times() -> None:  # what it takes to start moves it, and then nothing does
        for _ in range(10):
            clock.now += QUIET_S
            progress.check("it waits")

    with pytest.raises(AssertionError, match="nothing has moved for 120 s"):
        look_ten_times()


def test_who_has_ended_is_told_at_once(sleeper: subprocess.Popen[bytes]) -> None:
    progress = Progress(sleeper)
    sleeper.kill()
    sleeper.wait()
    with pytest.raises(AssertionError, match="has ended with -9"):
        progress.check("it runs")


def test_a_child_counts(tmp_path: Path) -> None:
    work = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
    with subprocess.Popen([sys.executable, "-c", work], start_new_session=True) as process:
        try:
            progress = Progress(process)
            before = cpu_ticks(process.pid)
            progress.wait(lambda: cpu_ticks(process.pid) > before + 20, "the child computes")
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def test_a_command(tmp_path: Path) -> None:
    assert run([sys.executable, "-c", "print('done')"]) == "done\n"
    with pytest.raises(AssertionError, match="in vain"):
        run([sys.executable, "-c", "import sys; sys.exit('in vain')"])
