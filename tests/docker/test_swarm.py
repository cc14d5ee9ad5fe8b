"""docker/stack.yaml on a swarm of one machine that carries all five planes: 95 satellites answer a ground host, blocks go up and
come back, and a plane that dies is found at its new address."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from skymemory.config import Constellation
from skymemory.testbed.docker import build_image, find_checkout
from skymemory.testbed.several import PLANE

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]
STACK = "skymemory-test"
ROOT = Path(__file__).resolve().parents[2]
CONSTELLATION = ROOT / "docker" / "five-hosts.toml"
START_S = 180.0
OVERLAY = "198.51.100.0/24"
"""set aside for documentation (RFC 5737): no machine of the network that the test runs in has such an address"""

GROUND = """
import json, os, sys
from skymemory.config import Constellation
from skymemory.link.control import ControlPlane
from skymemory.placement.window import Route
from skymemory.store import SkyStore

sky = Constellation.load(sys.argv[1])
routes = {place: Route(place, place) for place in sky.torus.satellites()}
with ControlPlane(sky) as control:
    waiting = dict(routes)
    for _ in range(60):
        for place in control.ping(list(waiting.values()), 2.0):
            del waiting[place]
        if not waiting:
            break
    through = control.ping([Route(place, sky.cache.centre) for place in routes], 20.0)
with SkyStore(sky) as store:
    blocks = [(os.urandom(32), os.urandom(600_000)) for _ in range(4)]
    put = [result.status for result in store.put(blocks)]
    got = [result.data == data for result, (_, data) in zip(store.get([key for key, _ in blocks]), blocks)]
print(json.dumps({"silent": list(waiting), "through_the_centre": len(through), "put": put, "got": got}))
"""


@pytest.fixture(scope="module")
def swarm(docker: Callable[..., str]) -> Iterator[Constellation]:
    """The stack as it is in the repository, all planes on this machine."""
    if docker("info", "--format", "{{.Swarm.LocalNodeState}}").strip() != "inactive":
        pytest.fail("this engine is in a swarm already; the test makes its own and leaves yours alone")
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


def ground(sky: Constellation, docker: Callable[..., str]) -> dict[str, Any]:
    """What a ground host on the overlay network sees: a container that routes, and in its network this test's interpreter."""
    folders = {"/usr", sys.prefix, sys.base_prefix, os.path.realpath(sys.base_prefix)}
    folders |= {folder for folder in sys.path if folder.endswith("site-packages")}
    mounts = [word for folder in sorted(folders) for word in ("--volume", f"{folder}:{folder}:ro")]
    words = ["run", "--detach", "--rm", "--network", f"{STACK}_sky", "--cap-drop", "ALL", "--cap-add", "NET_ADMIN"]
    routes = docker(*words, PLANE.name, sky.network.base, str(sky.planes), "").strip()
    try:
        command = ["docker", "run", "--rm", "--network", f"container:{routes}", *mounts]
        command += ["--volume", f"{CONSTELLATION}:/constellation.toml:ro", "debian:bookworm-slim"]
        command += [sys.executable, "-c", GROUND, "/constellation.toml"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    finally:
        docker("stop", routes)
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


EXPECTED = {"silent": [], "through_the_centre": 95, "put": ["done"] * 4, "got": [True] * 4}


def test_all_satellites_answer_and_blocks_come_back(swarm: Constellation, docker: Callable[..., str]) -> None:
    assert ground(swarm, docker) == EXPECTED


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
    assert ground(swarm, docker) == EXPECTED
