"""What the commands share: signals that come at an awkward moment."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from skymemory.cli.common import DROPPED_S
from skymemory.common.file_lock import turn

PATIENCE_S = 120.0
SCRIPT = """
import os, sys, time
import click
from skymemory.cli import common

common.DROPPED_S = float(sys.argv[2])

class Slow:
    def __del__(self):
        os.kill(os.getpid(), int(sys.argv[1]))
        time.sleep(1)  # the signal's exception is raised here, and dropped

@click.group(cls=common.Commands)
def group():
    pass

@group.command()
def run():
    try:
        Slow()
        print("goes on", flush=True)
        time.sleep(600)
    finally:
        print("has cleared up", flush=True)

group(["run"])
"""


def run_script(script: str, number: int, after_s: float) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", script, str(number), str(after_s)]
    return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


@pytest.mark.parametrize("after_s", [DROPPED_S, 1e-6], ids=["soon", "before the hook returns"])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_signal_while_an_object_is_destroyed_ends_the_command(number: signal.Signals, status: int, after_s: float) -> None:
    ran = run_script(SCRIPT, int(number), after_s)
    assert ran.returncode == status
    assert ran.stdout.endswith("has cleared up\n")  # the signal may come in the middle of the line before
    assert "Traceback" not in ran.stderr


def test_other_mistakes_while_an_object_is_destroyed_are_told() -> None:
    script = SCRIPT.replace("os.kill(os.getpid(), int(sys.argv[1]))", "raise ValueError('a mistake')").replace("600", "0")
    ran = run_script(script, 0, DROPPED_S)
    assert ran.returncode == 0
    assert "a mistake" in ran.stderr


BUSY = """
import sys
from pathlib import Path
import click
from skymemory.cli import common
from skymemory.common.file_lock import turn

@click.group(cls=common.Commands)
def group():
    pass

@group.command()
def run():
    with turn(Path(sys.argv[1]), "run", 0.1, lambda text: click.echo(text, err=True)):
        click.echo("has it")

group(["run"])
"""


def test_the_exit_status_says_that_another_command_is_at_work(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BUSY, str(tmp_path / "lock")]
    with turn(tmp_path / "lock", "skymem up", 0.0, print):
        ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr.splitlines()[1].startswith("Error: `skymem up` (pid ")
    assert subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False).stdout == "has it\n"
