"""Turns of commands: who waits is told for whom, and does not wait for ever."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from skymemory.common.file_lock import BusyError, turn
from support.waiting import PATIENCE_S

HOLD = """
import sys
from pathlib import Path
from skymemory.common.file_lock import turn
with turn(Path(sys.argv[1]), "skymem up", 60.0, print):
    print("has it", flush=True)
    sys.stdin.read()
"""


def test_who_waits_is_told_for_whom(tmp_path: Path) -> None:
    said: list[str] = []
    lock = tmp_path / "lock"
    with turn(lock, "skymem up", 0.0, said.append):
        for _ in range(2):
            with pytest.raises(BusyError) as caught, turn(lock, "skymem down", 0.2, said.append):
                pytest.fail("two had it at once")
            who = f"`skymem up` (pid {os.getpid()})"
            assert str(caught.value) == f"{who} has been at work in {tmp_path} for 0.2 s; try again later"
            assert said.pop() == f"{who} is at work in {tmp_path}: this command waits for it, up to 0.2 s"
            assert not said
    with turn(lock, "skymem down", 0.0, said.append):
        assert lock.read_text() == f"`skymem down` (pid {os.getpid()})"
    assert not said


def test_a_process_that_is_killed_gives_its_turn_up(tmp_path: Path) -> None:
    said: list[str] = []
    command = [sys.executable, "-c", HOLD, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "has it\n"

        def end(text: str) -> None:
            said.append(text)
            child.kill()

        with turn(tmp_path / "lock", "skymem down", PATIENCE_S, end):
            assert said[0].startswith(f"`skymem up` (pid {child.pid}) is at work in ")


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="none/lock"), turn(tmp_path / "none" / "lock", "skymem up", 0.0, print):
        pass
