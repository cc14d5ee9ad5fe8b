"""`skymem put` and `skymem get`, each a process that knows nothing of the other, under a sky that loses links and satellites."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from skymemory.placement.torus import Satellite
from skymemory.placement.window import server_satellites
from skymemory.testbed.local import LocalConstellation
from skymemory.testbed.state import Running, State

StartSky = Callable[..., LocalConstellation]
OLD, NEW = os.urandom(200_000), os.urandom(200_000)


class User:
    """Somebody at the shell of a host under this sky."""

    def __init__(self, local: LocalConstellation, folder: Path) -> None:
        self._environment = {**os.environ, "SKYMEM_STATE": str(folder)}
        State(folder).save(Running("local", local.constellation, dict(local.processes)))

    def run(self, *words: str, stdin: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
        """`skymem WORDS...`, to its end."""
        command = [sys.executable, "-c", "from skymemory.cli import main; main()", *words]
        return subprocess.run(command, input=stdin, capture_output=True, env=self._environment, check=False)

    def put(self, value: bytes) -> bytes:
        """Returns what was said about satellites."""
        done = self.run("put", "name", "-", stdin=value)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def get(self) -> bytes | None:
        """None: it was told in one line that the value is not there."""
        done = self.run("get", "name", "-")
        if done.returncode == 0:
            return done.stdout
        assert (done.returncode, done.stdout) == (1, b"")
        assert b"Error: 'name' is not there, or not whole any more\n" in done.stderr
        return None


def test_a_link_that_the_file_cuts_is_passed_by_from_the_first_packet(start_sky: StartSky, tmp_path: Path) -> None:
    cut = [{"from": [2, 3], "to": [2, 4], "cut": True}]
    user = User(start_sky(links={"override": cut}, cache={"uplink": "nearest"}), tmp_path)
    assert user.put(OLD) == b""  # nobody stands in: satellites need not notice first
    assert user.get() == OLD


def test_a_satellite_that_is_lost_before_the_put(start_sky: StartSky, tmp_path: Path) -> None:
    local = start_sky(cache={"deadline_ms": 700})
    user = User(local, tmp_path)
    local.kill(Satellite(2, 4))
    assert user.put(OLD) == b"no answer from [2, 4]: others stand in; asked again in 30 s\n"
    assert user.get() == OLD


@pytest.mark.parametrize("lost", [Satellite(3, 5), Satellite(3, 4)])
def test_a_satellite_that_is_lost_and_with_it_the_ways_over_it(start_sky: StartSky, tmp_path: Path, lost: Satellite) -> None:
    """Its neighbours have not noticed: with one way in, those behind it are silent too. Others stand in for all, or for it."""
    cache = {"uplink": "nearest", "centre": [3, 4], "deadline_ms": 700}
    local = start_sky(constellation={"planes": 5, "slots": 7}, cache=cache)
    user = User(local, tmp_path)
    local.kill(lost)
    assert str(lost).encode() in user.put(OLD)
    assert user.get() == OLD


def test_a_satellite_that_is_lost_after_the_put(start_sky: StartSky, tmp_path: Path) -> None:
    local = start_sky(cache={"deadline_ms": 700})
    user = User(local, tmp_path)
    user.put(OLD)
    local.kill(server_satellites(local.constellation)[4])
    assert user.get() is None
    user.put(NEW)
    assert user.get() == NEW


@pytest.mark.parametrize("server", [0, 4])
def test_a_satellite_that_comes_back_empty_after_the_put(start_sky: StartSky, tmp_path: Path, server: int) -> None:
    """What a stand-in holds is not looked for there any more: a miss, put again and found; nothing old comes back."""
    local = start_sky(cache={"deadline_ms": 700})
    user = User(local, tmp_path)
    victim = server_satellites(local.constellation)[server]
    local.kill(victim)
    user.put(OLD)
    local.restart(victim)
    assert user.get() is None
    user.put(NEW)
    assert user.get() == NEW

    local.kill(victim)  # the stand-in still has its share of the old value, as long as that of the new one
    assert user.get() is None
    user.put(NEW)
    assert user.get() == NEW


def test_a_value_larger_than_the_sky_is_refused_with_the_limit(start_sky: StartSky, tmp_path: Path) -> None:
    local = start_sky(satellite={"store_mib": 1})
    user = User(local, tmp_path)
    user.put(OLD)
    refused = user.run("put", "name", "-", stdin=bytes(10_000_000))
    assert refused.returncode == 2
    assert refused.stderr == b"Error: <stdin>: value of 10,000,000 bytes; allowed are 0 to 8,855,964 (9 servers of 1 MiB)\n"
    assert user.get() == OLD
