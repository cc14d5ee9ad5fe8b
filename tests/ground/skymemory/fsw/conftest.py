"""Satellites in the test's own process, and as processes with Python code on board."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from skymemory.fsw import Executive
from skymemory.sky.constellation import Constellation
from skymemory.testbed import satellite_program as skysat
from skymemory.testbed.local import free_port
from skymemory.wire.address import Satellite
from support.waiting import wait_until


@pytest.fixture
def constellation() -> Constellation:
    """The paper's 5 x 19 at a port that nobody uses."""
    base = Constellation()
    return base.replace(network={"port": free_port(base)})


@pytest.fixture
def words(constellation: Constellation) -> list[str]:
    """Arguments of satellite (3, 10)."""
    return skysat.arguments(constellation, Satellite(3, 10))


@pytest.fixture
def satellite(words: list[str]) -> Iterator[Executive]:
    """Satellite (3, 10) in this process; its neighbours do not run."""
    with Executive(words) as executive:
        yield executive


@pytest.fixture
def start_health(tmp_path: Path) -> Iterator[Callable[[Constellation, Sequence[Satellite]], None]]:
    """Start satellites with the health monitor on board, one Python process each, and wait until all are ready."""
    children: list[subprocess.Popen[bytes]] = []

    def start(constellation: Constellation, places: Sequence[Satellite]) -> None:
        logs = []
        for place in places:
            logs.append(tmp_path / f"{place.plane}-{place.slot}.log")
            with logs[-1].open("wb") as log:
                command = [sys.executable, "-m", "skymemory.fsw.health", "--health-s", "0.5"]
                command += skysat.arguments(constellation, place)
                children.append(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT))

        def are_ready() -> bool:
            assert all(child.poll() is None for child in children), [log.read_text() for log in logs]
            return all(b" ready" in log.read_bytes() for log in logs)

        wait_until(are_ready, lambda: f"satellites are ready: {[log.read_text() for log in logs]}")

    yield start
    for child in children:
        child.terminate()
    assert [child.wait(30) for child in children] == [0] * len(children)
