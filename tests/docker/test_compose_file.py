"""docker/compose.yaml by hand, as the guide has it: then the agent, a replay and the other commands, by the file beside it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from skymemory.sky.orbit.positions import Site
from skymemory.sky.orbit.schedule import Schedule
from skymemory.sky.orbit.walker import Walker
from skymemory.testbed.compose import PROJECT, SATELLITE
from skymemory.testbed.docker import build_image, compose_command, of_project
from support.agents import AgentProcess

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]
ROOT = Path(__file__).resolve().parents[2]
FILE = "docker/constellation.toml"
HOUR_MS = 3_600_000
Skymem = Callable[..., bytes]


@pytest.fixture(scope="module")
def skymem(docker: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Skymem]:
    """Run the command with a state folder of its own, while the containers of docker/compose.yaml are up."""
    build_image(ROOT, SATELLITE)
    compose = [*compose_command(), "-f", "docker/compose.yaml"]
    environment = {**os.environ, "COMPOSE_HTTP_TIMEOUT": "300", "DOCKER_BUILDKIT": os.environ.get("DOCKER_BUILDKIT", "0")}
    state = tmp_path_factory.mktemp("state")

    def run(*words: str, stdin: bytes = b"") -> bytes:
        program = [sys.executable, "-c", "from skymemory.cli import main; main()", *words, "--constellation", FILE]
        done = subprocess.run(
            program, cwd=ROOT, env={**os.environ, "SKYMEM_STATE": str(state)}, input=stdin, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    try:
        subprocess.run([*compose, "up", "-d"], cwd=ROOT, env=environment, check=True, capture_output=True)
        assert len(docker("ps", "--quiet", "--filter", of_project("skymemory-file")).split()) == 95
        yield run
    finally:
        subprocess.run([*compose, "down", "--timeout", "2"], cwd=ROOT, env=environment, check=False, capture_output=True)
        assert docker("ps", "--all", "--quiet", "--filter", f"network={PROJECT}") == ""


def test_all_commands_find_it_by_its_file(skymem: Skymem, tmp_path: Path) -> None:
    report = json.loads(skymem("status", "--json"))
    assert (report["alive"], report["satellites"][0]["address"]) == (95, "198.18.1.1")
    value = os.urandom(200_000)
    skymem("put", "k", "-", stdin=value)
    start_ms = int(time.time()) * 1000 - HOUR_MS
    walker = Walker(5, 19, 550.0, 86.4, True, 1)
    Schedule.compute(walker, "walker", Site(52.5, 13.4), 10.0, start_ms, 2 * HOUR_MS).save(schedule := tmp_path / "sky.csv")
    flags = ("--constellation", str(ROOT / FILE), "--resp-port", "0")
    with AgentProcess(tmp_path / "agent", *flags) as agent, redis.Redis.from_url(agent.addresses["redis"]) as client:
        agent.wait_ready()
        assert client.get("k") == value
    report = json.loads(skymem("replay", str(schedule), "--speed", "60", "--hours", "0.3", "--json"))
    assert report["chunks"] > 0
    assert json.loads(skymem("status", "--json"))["window"]["centre"] == report["rows"][-1]["centre"]
    assert skymem("get", "k", "-") == value
    skymem("del", "k")
