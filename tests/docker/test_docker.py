"""95 containers for real: a satellite dies, the sky turns, and blocks from the host and from a container come back."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from skymemory.cli.status_report import collect
from skymemory.link.control import ControlPlane
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.sky.orbit.positions import Site
from skymemory.sky.orbit.schedule import Schedule
from skymemory.sky.orbit.walker import Walker
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.docker import containers
from skymemory.testbed.playing_record import PlayingRecord
from skymemory.testbed.replay import Handover, follow, playing_now, upload
from skymemory.wire.address import Satellite
from support.waiting import PATIENT

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]
VALUE_BYTES = 600_000
SPEED = 60.0
MINUTES = 30
TURNING_BYTES = 300_000
"""bytes of a block while the sky turns"""
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


def test_the_sky_turns_at_sixty_times_real_time(sky: Constellation, tmp_path: Path) -> None:
    """Blocks are got and put all the while."""
    orbits = Walker(5, 19, 550.0, 86.4, True, 1)
    schedule = Schedule.compute(orbits, "walker star:5x19", Site(52.5, 13.4), 10.0, 1_795_000_000_000, MINUTES * 60_000)
    schedule.save(source := tmp_path / "berlin.csv")
    record = PlayingRecord(tmp_path)
    items = {os.urandom(32): os.urandom(TURNING_BYTES) for _ in range(4)}
    failures: list[str] = []
    windows: list[list[int]] = []
    over, gets = threading.Event(), [0]

    sky = sky.replace(cache={"deadline_ms": 20_000})
    with (
        SkyStore(sky, playing=record, timing=PATIENT) as store,
        ControlPlane(sky, PATIENT) as control,
    ):
        assert all(result.ok for result in store.put(list(items.items())))

        def use() -> None:
            while not over.is_set():
                for result in store.get(list(items)):
                    gets[0] += 1
                    if result.data != items[result.key]:
                        failures.append(result.status)
                key, value = os.urandom(32), os.urandom(TURNING_BYTES)
                if len(items) < 40:
                    failures.extend(result.status for result in store.put([(key, value)]) if not result.ok)
                    items[key] = value

        playing = playing_now(sky, schedule, 0, schedule.header.duration_ms, SPEED, None)
        record.save(playing, source)
        upload(control, playing)
        user = threading.Thread(target=use)
        user.start()
        done: list[Handover] = []
        try:
            for handover in follow(control, playing, "schedule"):
                done.append(handover)
                windows.append(list(collect(sky, playing)["window"]["centre"]))
        finally:
            over.set()
            user.join()
        assert failures == []
        assert gets[0] > 4 * len(done)
        assert len(done) == len(playing.track.rows) - 1 >= 5
        assert sum(handover.chunks for handover in done) > 0
        assert len({tuple(centre) for centre in windows}) > 3  # status shows the window moving
        assert all(result.data == items[result.key] for result in store.get(list(items)))
        assert store.stats().misses == 0
        for handover in done:
            print(handover)
