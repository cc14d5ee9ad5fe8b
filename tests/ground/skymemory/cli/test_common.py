"""What the commands share: signals that come at an awkward moment."""

import signal
import subprocess
import sys

import pytest

PATIENCE_S = 120.0
SCRIPT = """
import os, sys, time
import click
from skymemory.cli.common import Commands

class Slow:
    def __del__(self):
        os.kill(os.getpid(), int(sys.argv[1]))
        time.sleep(1)  # the signal's exception is raised here, and dropped

@click.group(cls=Commands)
def group():
    pass

@group.command()
def run():
    Slow()
    try:
        print("goes on", flush=True)
        time.sleep(600)
    finally:
        print("has cleared up", flush=True)

group(["run"])
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 1)])
def test_a_signal_while_an_object_is_destroyed_ends_the_command(number: signal.Signals, status: int) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(int(number))], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert ran.returncode == status
    assert ran.stdout.splitlines()[-1] == "has cleared up"
    assert "Traceback" not in ran.stderr


def test_other_mistakes_while_an_object_is_destroyed_are_told() -> None:
    script = SCRIPT.replace("os.kill(os.getpid(), int(sys.argv[1]))", "raise ValueError('a mistake')").replace("600", "0")
    ran = subprocess.run([sys.executable, "-c", script, "0"], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ran.returncode == 0
    assert "a mistake" in ran.stderr
