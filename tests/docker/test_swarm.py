"""docker/stack.yaml on a swarm of one machine that carries all five planes: 95 satellites answer a ground host, blocks go up and
come back, and a plane that dies is found at its new address."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from skymemory.config import Constellation
from skymemory.testbed.docker import build_image, find_checkout
from skymemory.testbed.several import PLANE
from support.ground_container import ALL_IS_WELL, ground, routes

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]
STACK = "skymemory-test"
ROOT = Path(__file__).resolve().parents[2]
CONSTELLATION = ROOT / "docker" / "five-hosts.toml"
START_S = 180.0
OVERLAY = "198.51.100.0/24"
"""set aside for documentation (RFC 5737): no machine of the network that the test runs in has such an address"""

@pytest.fixture(scope="module")
def swarm(docker: Callable[..., str]) -> Iterator[Constellation]:
    """The stack as it is in the repository, all planes on this machine."""
    if docker("info", "--format", "{{.Swarm.LocalNodeState}}").strip() != "inactive":
        why = "this engine is in a swarm already: the test makes one of its own, and leaves yours alone"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    build_image(find_checkout(ROOT), PLANE)
    constellation = Constellation.load(CONSTELLATION)
    pool = ["--default-addr-pool", OVERLAY, "--default-addr-pool-mask-length", "26"]
    docker("swarm", "init", "--advertise-addr", "127.0.0.1", *pool)
    try:
        node = docker("node", "ls", "--quiet").strip()
        for plane in range(1, constellation.planes + 1):
            docker("node", "update", "--label-add", f"plane-{plane}=true", node)
        docker("stack", "deploy", "--resolve-image", "never", "--compose-file", str(ROOT / "docker" / "stack.yaml"), STACK)
        await_planes(docker, constellation.planes)
        yield constellation
    finally:
        docker("stack", "rm", STACK)
        deadline_s = time.monotonic() + START_S
        while planes(docker) and time.monotonic() < deadline_s:
            time.sleep(0.5)
        docker("swarm", "leave", "--force")


def planes(docker: Callable[..., str], *filters: str) -> list[str]:
    """Ids of the containers of planes."""
    words = ["--filter", f"label=com.docker.stack.namespace={STACK}"]
    for one in filters:
        words += ["--filter", one]
    return docker("ps", "--quiet", *words).split()


def await_planes(docker: Callable[..., str], count: int) -> None:
    """All satellites of so many planes listen."""
    deadline_s = time.monotonic() + START_S
    while len(planes(docker, "health=healthy")) < count:
        if time.monotonic() > deadline_s:
            told = docker("stack", "ps", "--no-trunc", STACK)
            pytest.fail(f"{count} planes are not up after {START_S:.0f} s:\n{told}")
        time.sleep(0.5)


def test_all_satellites_answer_and_blocks_come_back(swarm: Constellation, docker: Callable[..., str]) -> None:
    with routes(docker, f"{STACK}_sky", swarm) as network:
        assert ground(network, CONSTELLATION) == ALL_IS_WELL


def test_satellites_are_nobody(swarm: Constellation, docker: Callable[..., str]) -> None:
    for container in planes(docker):
        status = docker("exec", container, "sh", "-c", "grep -h -E '^(Name|Uid|CapEff|CapBnd|NoNewPrivs)' /proc/[0-9]*/status")
        satellites = status.split("Name:\tskysat\n")[1:]
        assert len(satellites) == swarm.slots
        for lines in satellites:
            told = dict(line.split(":\t", 1) for line in lines.splitlines()[:4])
            assert told["Uid"].split() == ["65534"] * 4
            assert int(told["CapEff"], 16) == int(told["CapBnd"], 16) == 0
            assert told["NoNewPrivs"] == "1"


def test_a_plane_that_dies_is_found_again(swarm: Constellation, docker: Callable[..., str]) -> None:
    victim = docker("ps", "--quiet", "--filter", f"name={STACK}_plane-2").strip()
    docker("rm", "--force", victim)
    await_planes(docker, swarm.planes)
    with routes(docker, f"{STACK}_sky", swarm) as network:
        assert ground(network, CONSTELLATION) == ALL_IS_WELL
