"""However a command ends, what it started ends with it: signals at random moments, and nobody is left.

What a command starts is known by a variable in its environment, which children inherit: never by names.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skymemory.sky.constellation import Constellation
from skymemory.testbed.local import free_port
from skymemory.testbed.processes import ProcessId, identify, is_alive
from skymemory.testbed.run_record import RunRecord
from support.waiting import wait_until

MARK = "SKYMEM_TEST_ENDS"
PATIENCE_S = 300.0
"""torch alone takes a minute on a machine that is busy with something else"""
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL)
CONFIG = "[constellation]\nplanes = 3\nslots = 4\n[network]\nport = {port}\n[cache]\ncentre = [2, 2]\nservers = 6\n"


def marked(mark: str) -> set[ProcessId]:
    """Processes with this mark in their environment."""
    found = set()
    word = f"{MARK}={mark}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if word in words and (process := identify(int(folder.name))) is not None:
            found.add(process)
    return found


def await_end(mark: str) -> None:
    """Wait until nobody has the mark any more."""
    wait_until(
        lambda: not marked(mark),
        lambda: [Path(f"/proc/{one.pid}/cmdline").read_bytes() for one in marked(mark)],
        patience_s=PATIENCE_S,
        pause_s=0.05,
    )


class Started:
    """A command in a folder of its own, with a mark."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.mark = f"{os.getpid()}-{time.monotonic_ns()}"
        self.state = RunRecord(folder / "state")
        environment = {**os.environ, MARK: self.mark, "SKYMEM_STATE": str(self.state.folder), "HF_HUB_OFFLINE": "1"}
        (folder / "tmp").mkdir(exist_ok=True)
        environment["TMPDIR"] = str(folder / "tmp")
        command = [sys.executable, "-c", "from skymemory.cli import main; main()", *words]
        self.child = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )

    def send(self, number: signal.Signals) -> str:
        """Signal it, and wait for its end; returns what it said of mistakes."""
        self.child.send_signal(number)
        return self.child.communicate(timeout=PATIENCE_S)[1]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """With a constellation file; what is recorded as up is stopped at the end."""
    sky = Constellation().replace(constellation={"planes": 3, "slots": 4}, cache={"centre": [2, 2], "servers": 6})
    (tmp_path / "constellation.toml").write_text(CONFIG.format(port=free_port(sky)))
    yield tmp_path
    Started(tmp_path, "down").child.communicate(timeout=PATIENCE_S)


def needs(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            assert not os.environ.get("CI"), f"CI leaves nothing out: {program} is not installed"
            pytest.skip(f"{program} is not installed")


def wait_for(started: Started, there: Callable[[], bool]) -> None:
    """Wait for what the command makes while it runs."""

    def is_there() -> bool:
        assert started.child.poll() is None, started.child.communicate()[1]
        return there()

    wait_until(is_there, patience_s=PATIENCE_S)


def wait_for_children(started: Started, count: int) -> None:
    """Until so many processes of it run."""
    wait_for(started, lambda: len(marked(started.mark)) > count)


COMMANDS: dict[str, tuple[int, tuple[str, ...], tuple[str, ...]]] = {
    "demo": (12, (), ("demo", "--tokens", "2")),
    "idle": (12, (), ("bench", "idle", "--seconds", "60")),
    "links": (84, (), ("bench", "links", "--rounds", "100")),
    "gateway": (15, ("redis-server", "redis-benchmark"), ("bench", "gateway")),
    "peers": (14, ("redis-server", "memcached"), ("bench", "peers", "--rounds", "1000")),
}
"""how many processes it starts, programs that it needs, its command line"""


HEAVY = ("demo", "links", "peers")
"""get one signal that can be caught, and the one that cannot"""


@pytest.mark.parametrize(
    ("name", "number"),
    [(name, number) for name in COMMANDS for number in (SIGNALS[::3] if name in HEAVY else SIGNALS)],
    ids=lambda one: getattr(one, "name", one),
)
def test_nobody_is_left_when_all_were_there(folder: Path, name: str, number: signal.Signals) -> None:
    count, programs, words = COMMANDS[name]
    needs(*programs)
    started = Started(folder, *words)
    wait_for_children(started, count)
    said = started.send(number)
    assert started.child.returncode == (-9 if number == signal.SIGKILL else 128 + number)
    await_end(started.mark)
    assert started.state.load() is None
    assert "Traceback" not in said
    assert list((folder / "tmp").glob("skymem-*")) == []  # torch leaves a cache there


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("words", [("up",), ("bench", "idle", "--seconds", "60")], ids=lambda words: words[-1])
def test_nobody_is_left_whenever_it_is_interrupted(folder: Path, words: tuple[str, ...], seed: int) -> None:
    """But for an `up` that is complete: then all are there, and the record knows them."""
    chance = random.Random(seed)
    started = Started(folder, *words)
    wait_for_children(started, 0)
    time.sleep(chance.uniform(0.0, 1.5))
    started.send(chance.choice(SIGNALS))
    left = set() if (running := started.state.load()) is None else set(running.alive().values())
    if words == ("up",) and started.child.returncode == 0:
        assert len(left) == 12
        return
    if len(left) < 12:  # else it was complete, and had not said so yet
        await_end(started.mark)
    assert words == ("up",) or not left


@pytest.mark.parametrize("moment", ["starting", "recorded"])
def test_an_up_that_is_killed_leaves_nobody(folder: Path, moment: str) -> None:
    """SIGKILL when half of the satellites are there, and when the record is written."""
    started = Started(folder, "up")
    there: Callable[[], bool] = {"starting": lambda: len(marked(started.mark)) > 6, "recorded": started.state.path.exists}[moment]
    wait_for(started, there)
    started.send(signal.SIGKILL)
    running = started.state.load()  # on a busy machine it may be complete by now
    if running is None or len(running.alive()) < 12:
        await_end(started.mark)


def test_satellites_of_an_up_outlive_it(folder: Path) -> None:
    started = Started(folder, "up")
    assert started.child.wait(PATIENCE_S) == 0
    running = started.state.require()
    time.sleep(0.5)
    assert len(running.alive()) == 12
    assert all(is_alive(process) for process in running.processes.values())
    Started(folder, "down").child.communicate(timeout=PATIENCE_S)
    await_end(started.mark)
