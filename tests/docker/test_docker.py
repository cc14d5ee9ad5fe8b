"""95 containers for real: blocks go up from the host and from a container, one satellite dies, blocks come back."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.docker import containers
from skymemory.wire.address import Satellite

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]
VALUE_BYTES = 600_000
VICTIM = Satellite(3, 10)
"""the centre of the window: it holds a share of every block"""


@pytest.fixture(scope="module")
def sky(start_containers) -> Iterator[Constellation]:
    """All 95 satellites."""
    with start_containers(Constellation().replace(cache={"deadline_ms": 5000})) as sky:
        yield sky


def answering(sky: Constellation) -> set[Satellite]:
    with SkyStore(sky) as store:
        routes = [Route(place, place) for place in sky.torus.satellites()]
        return set(store.control.ping(routes, deadline_s=10.0))


def test_all_satellites_run_and_answer(sky: Constellation, project: str) -> None:
    states = containers(project)
    assert set(states) == set(sky.torus.satellites())
    assert set(states.values()) == {"running"}
    assert answering(sky) == set(sky.torus.satellites())


def test_the_image_holds_one_file(sky: Constellation, docker) -> None:
    name = docker("create", docker("ps", "--filter", "name=sat-1-1", "--format", "{{.Image}}").split()[0]).strip()
    try:
        exported = subprocess.run(["docker", "export", name], capture_output=True, check=True).stdout
        listing = subprocess.run(["tar", "t"], input=exported, capture_output=True, check=True).stdout.decode().split()
    finally:
        docker("rm", name)
    # Docker itself makes the mount points that every container has.
    made = {"dev/", "etc/", "proc/", "sys/", ".dockerenv", "dev/console", "dev/pts/", "dev/shm/"}
    made |= {"etc/hostname", "etc/hosts", "etc/mtab", "etc/resolv.conf"}
    assert set(listing) - made == {"skysat"}


def test_a_container_on_the_network_is_a_ground_host_too(sky: Constellation, project: str) -> None:
    """Put from a container, get from the host: the same cache for all below."""
    key, value = os.urandom(32), os.urandom(VALUE_BYTES)
    program = (
        "import sys\n"
        "from skymemory.sky.constellation import Constellation\n"
        "from skymemory.store.sky_store import SkyStore\n"
        f"sky = Constellation.model_validate_json({sky.model_dump_json(by_alias=True, exclude_none=True)!r}, strict=False)\n"
        "with SkyStore(sky) as store:\n"
        f"    result = store.put([(bytes.fromhex({key.hex()!r}), sys.stdin.buffer.read())])[0]\n"
        "sys.exit(0 if result.ok else result.status)\n"
    )
    # The interpreter of this test with all it needs, where it is: nothing has to be installed in the container.
    folders = {"/usr", sys.prefix, sys.base_prefix, os.path.realpath(sys.base_prefix)}
    mounts = [word for folder in sorted(folders) for word in ("--volume", f"{folder}:{folder}:ro")]
    host = f"{sky.network.base.rsplit('.', 1)[0]}.200"
    command = ["docker", "run", "--rm", "--interactive", "--network", project, "--ip", host, *mounts]
    command += ["debian:bookworm-slim", sys.executable, "-c", program]
    done = subprocess.run(command, input=value, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    with SkyStore(sky) as store:
        assert store.get([key])[0].data == value


def test_without_parity_a_killed_satellite_costs_a_miss_and_blocks_go_up_again(sky: Constellation, docker) -> None:
    blocks = [(os.urandom(32), os.urandom(VALUE_BYTES)) for _ in range(4)]
    with SkyStore(sky.replace(cache={"parity": 0})) as store:
        assert all(result.ok for result in store.put(blocks))
        assert [result.data for result in store.get([key for key, _ in blocks])] == [data for _, data in blocks]

        victim = docker("ps", "--filter", f"name=sat-{VICTIM.plane}-{VICTIM.slot}", "--format", "{{.ID}}\t{{.Names}}")
        chosen = [line.split("\t") for line in victim.splitlines()]
        identity = next(i for i, name in chosen if name.replace("_", "-").endswith(f"sat-{VICTIM.plane}-{VICTIM.slot}-1"))
        docker("update", "--restart", "no", identity)
        docker("kill", identity)

        lost = store.get([key for key, _ in blocks])
        assert [result.data for result in lost] == [None] * len(blocks)
        again = store.put(blocks)
        assert [result.status for result in again] == ["done"] * len(blocks)
        assert [result.data for result in store.get([key for key, _ in blocks])] == [data for _, data in blocks]

        docker("start", identity)
    assert answering(sky) == set(sky.torus.satellites())
