"""Planes as Kubernetes starts them: on each machine a container that routes, and beside it, in the same network, one a satellite.

A machine is here a container's network on a bridge that all share.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from skymemory.sky.constellation import Constellation
from skymemory.testbed import satellite_program as skysat
from skymemory.testbed.compose import SATELLITE
from skymemory.testbed.docker import build_image, find_checkout
from skymemory.testbed.several_machines import PLANE
from skymemory.wire.address import Satellite
from support.ground_container import ALL_IS_WELL, ground, routes

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]
NETWORK = "skymemory-test-machines"
SUBNET = "203.0.113.0/24"
"""set aside for documentation (RFC 5737)"""
# Other addresses than those of the Compose file: what leaves a bridge with them Docker would take for that network's.
FILE = """
[constellation]
planes = 3
slots = 3
[network]
network = "100.77.0.0/16"
mtu = 1472
[cache]
servers = 9
centre = [2, 2]
"""


@pytest.fixture(scope="module")
def constellation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pods") / "constellation.toml"
    path.write_text(FILE)
    return path


@pytest.fixture(scope="module")
def machines(docker: Callable[..., str], constellation: Path) -> Iterator[dict[int, str]]:
    """Three machines with a plane each: by plane the container that routes."""
    checkout = find_checkout(Path(__file__).parent)
    for image in (PLANE, SATELLITE):
        build_image(checkout, image)
    sky = Constellation.load(constellation)
    with ExitStack() as stack:
        docker("network", "create", "--subnet", SUBNET, NETWORK)
        stack.callback(docker, "network", "rm", NETWORK)
        found = {}
        for plane in range(1, sky.planes + 1):
            found[plane] = stack.enter_context(routes(docker, NETWORK, sky, str(plane), "--network-alias", f"plane-{plane}"))
            for slot in range(1, sky.slots + 1):
                words = ["run", "--detach", "--rm", "--network", f"container:{found[plane]}", "--read-only", "--cap-drop", "ALL"]
                words += ["--user", "65534:65534", SATELLITE.name, *skysat.arguments(sky, Satellite(plane, slot))]
                stack.callback(docker, "kill", docker(*words).strip())
        yield found


@pytest.mark.usefixtures("machines")
def test_satellites_answer_and_blocks_come_back(docker: Callable[..., str], constellation: Path) -> None:
    with routes(docker, NETWORK, Constellation.load(constellation)) as network:
        assert ground(network, constellation) == ALL_IS_WELL


def test_a_machine_is_left_as_it_was(machines: dict[int, str], docker: Callable[..., str], constellation: Path) -> None:
    """A plane that goes takes its addresses with it; those of the plane beside it stay."""
    sky = Constellation.load(constellation)
    with routes(docker, f"container:{machines[2]}", sky, "7"):
        local = docker("exec", machines[2], "ip", "route", "show", "table", "local")
        assert "local 100.77.2.0/24 " in local
        assert "local 100.77.7.0/24 " in local
    local = docker("exec", machines[2], "ip", "route", "show", "table", "local")
    assert "local 100.77.2.0/24 " in local
    assert "100.77.7.0/24" not in local


def test_addresses_that_somebody_has_are_not_taken(machines: dict[int, str], docker: Callable[..., str]) -> None:
    words = ["run", "--rm", "--network", f"container:{machines[1]}", "--cap-add", "NET_ADMIN", "--entrypoint", "sh", PLANE.name]
    route = "100.99.0.0/16 dev eth0"
    told = docker(*words, "-c", f"ip route add {route} && sky-net 100.99.0.0 3 1 2>&1; echo $?; ip route delete {route}")
    first, second, status = told.splitlines()
    assert first.startswith("sky-net: 100.99.0.0 belongs to a network of this machine already: 100.99.0.0/16 dev eth0")
    assert second == "sky-net: remove that network, or choose another network.network in the constellation file"
    assert status == "1"


def test_nothing_of_the_constellation_goes_elsewhere(machines: dict[int, str], docker: Callable[..., str]) -> None:
    assert "via " in docker("exec", machines[1], "ip", "route", "get", "100.77.3.1")
    assert "No route to host" in docker("exec", machines[1], "sh", "-c", "ip route get 100.77.200.1 2>&1 || true")
