"""Commands on a sky that `skymem up` did not start: each takes its file, or the variable names it once."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from click.testing import CliRunner, Result

from skymemory.cli import main
from skymemory.sky.orbit.positions import Site
from skymemory.sky.orbit.schedule import Schedule
from skymemory.sky.orbit.walker import Walker
from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess
from support.ports import free_ports

HOUR_MS = 3_600_000
CONFIG = """
[constellation]
planes = 3
slots = 5
[network]
port = {port}
[cache]
centre = [2, 3]
servers = 6
"""
Skymem = Callable[..., Result]


@pytest.fixture
def file(start_sky: Callable[..., LocalConstellation], tmp_path: Path) -> str:
    """The constellation file of satellites that run, and that no record tells of."""
    local = start_sky(cache={"servers": 6})
    path = tmp_path / "theirs.toml"
    path.write_text(CONFIG.format(port=local.constellation.network.port))
    return str(path)


@pytest.fixture
def skymem(tmp_path: Path) -> Skymem:
    """Run the command with a state folder of its own."""

    def run(*words: str, status: int = 0, stdin: bytes | None = None, **environment: str) -> Result:
        state = {"SKYMEM_STATE": str(tmp_path / "state"), **environment}
        result = CliRunner().invoke(main, words, input=stdin, env=state, prog_name="skymem")
        assert result.exit_code == status, f"{result.output}\n{result.exception!r}"
        return result

    return run


def write_schedule(folder: Path) -> str:
    """A schedule of two hours that began an hour ago."""
    start_ms = int(time.time()) * 1000 - HOUR_MS
    walker = Walker(3, 5, 550.0, 86.4, True, 1)
    Schedule.compute(walker, "walker", Site(52.5, 13.4), 10.0, start_ms, 2 * HOUR_MS).save(path := folder / "sky.csv")
    return str(path)


def test_values_come_and_go_with_the_file(skymem: Skymem, file: str) -> None:
    assert "`skymem up`" in skymem("status", status=1).output
    skymem("put", "k", "-", "--constellation", file, stdin=b"some text")
    assert skymem("get", "k", "-", "--constellation", file).stdout_bytes == b"some text"
    report = json.loads(skymem("status", "--json", "--constellation", file).stdout)
    assert (report["alive"], report["total"]["chunks"]) == (15, 3)  # one chunk, and two copies of it
    skymem("del", "k", "--constellation", file)
    assert "no schedule" in skymem("prefetch", "k", "--at", "+60", "--constellation", file, status=1).output
    assert "is not there" in skymem("get", "k", "-", "--constellation", file, status=1).output


def test_the_variable_names_it_once(skymem: Skymem, file: str) -> None:
    skymem("put", "k", "-", stdin=b"some text", SKYMEM_CONSTELLATION=file)
    assert skymem("get", "k", "-", SKYMEM_CONSTELLATION=file).stdout_bytes == b"some text"
    assert "in use" in skymem("up", status=1, SKYMEM_CONSTELLATION=file).output


def test_a_replay_is_followed_by_all_who_name_the_file(skymem: Skymem, file: str, tmp_path: Path) -> None:
    """The agent too, which was there before."""
    value = os.urandom(60_000)  # chunks on all six servers: some of them move, at whatever hour of the day this runs
    skymem("put", "k", "-", "--constellation", file, stdin=value)
    schedule = write_schedule(tmp_path)
    flags = ("--constellation", file, "--resp-port", "0")
    with AgentProcess(tmp_path / "state", *flags) as agent, redis.Redis.from_url(agent.addresses["redis"]) as client:
        agent.wait_ready()
        words = [schedule, "--speed", "600", "--hours", "0.5", "--json", "--constellation", file]
        report = json.loads(skymem("replay", *words).stdout)
        assert report["chunks"] > 0
        window = json.loads(skymem("status", "--json", "--constellation", file).stdout)["window"]
        assert window["centre"] == report["rows"][-1]["centre"]
        assert window["row"] == report["rows"][-1]["row"]
        assert skymem("get", "k", "-", "--constellation", file).stdout_bytes == value
        assert client.get("k") == value
    skymem("prefetch", "k", "--at", "+60", "--constellation", file)


def test_one_sky_does_not_follow_the_replay_of_another(
    skymem: Skymem, file: str, start_sky: Callable[..., LocalConstellation], tmp_path: Path
) -> None:
    (other := tmp_path / "other.toml").write_text(CONFIG.format(port=start_sky().constellation.network.port))
    schedule = write_schedule(tmp_path)
    skymem("replay", schedule, "--speed", "600", "--hours", "0.3", "--constellation", file)
    rows = [
        json.loads(skymem("status", "--json", "--constellation", str(path)).stdout)["window"]["row"] for path in (file, other)
    ]
    assert rows[0] is not None
    assert rows[1] is None


def test_relay_with_the_variable(file: str, tmp_path: Path) -> None:
    commands, telemetry = (f"127.0.0.1:{port}" for port in free_ports(2))
    program = [sys.executable, "-c", "from skymemory.cli import main; main()", "relay", "1", "1"]
    program += ["--commands", commands, "--telemetry", telemetry]
    environment = {**os.environ, "SKYMEM_STATE": str(tmp_path / "state"), "SKYMEM_CONSTELLATION": file}
    with subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, text=True) as relay:
        assert relay.stdout is not None
        said = relay.stdout.readline()
        relay.send_signal(signal.SIGTERM)
    assert said == f"satellite [1, 1]: commands at {commands}, telemetry to {telemetry}\n"
