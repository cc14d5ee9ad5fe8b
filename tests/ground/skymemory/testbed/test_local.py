"""Satellites as processes."""

import socket
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from skymemory.link.control import ControlPlane
from skymemory.security.keyring import HostRecord, KeyringError
from skymemory.security.mission_folder import begin_mission, host_file
from skymemory.sky.constellation import ConfigError, Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.testbed.local import LocalConstellation, StartError, free_port
from skymemory.testbed.processes import is_alive
from skymemory.wire.address import Satellite

PATIENCE_S = 60.0


def answering(local: LocalConstellation) -> set[Satellite]:
    with ControlPlane(local.constellation) as control:
        return set(control.ping([Route(place, place) for place in local.constellation.torus.satellites()], 2.0))


def test_all_95_answer(full_sky: LocalConstellation) -> None:
    assert len(full_sky.processes) == 95
    assert answering(full_sky) == set(full_sky.constellation.torus.satellites())


def test_nothing_is_left_when_it_ends(start_sky: Callable[..., LocalConstellation]) -> None:
    local = start_sky(constellation={"planes": 2, "slots": 3}, cache={"centre": [1, 1], "servers": 4})
    processes = list(local.processes.values())
    assert len(processes) == 6
    assert all(is_alive(process) for process in processes)
    local.stop()
    assert not any(is_alive(process) for process in processes)
    local.stop()  # twice is as good as once


def test_who_is_not_among_the_processes_yet_ends_as_well(start_sky: Callable[..., LocalConstellation]) -> None:
    """A signal may come when a satellite has been started, and before its process is known."""
    local = start_sky(constellation={"planes": 2, "slots": 3}, cache={"centre": [1, 1], "servers": 4})
    processes = list(local.processes.values())
    local.processes.popitem()
    stopping = Thread(target=local.stop, daemon=True)
    stopping.start()
    stopping.join(PATIENCE_S)
    assert not stopping.is_alive()
    assert not any(is_alive(process) for process in processes)


def test_a_killed_satellite_is_silent_and_comes_back(start_sky: Callable[..., LocalConstellation]) -> None:
    local = start_sky()
    everyone = set(local.constellation.torus.satellites())
    local.kill(Satellite(2, 3))
    assert answering(local) == everyone - {Satellite(2, 3)}
    local.restart(Satellite(2, 3))
    assert answering(local) == everyone


def test_two_constellations_side_by_side(start_sky: Callable[..., LocalConstellation]) -> None:
    one, other = start_sky(), start_sky()
    assert one.constellation.network.port != other.constellation.network.port
    assert answering(one) == answering(other)


def test_an_address_in_use_is_refused_and_nothing_is_left_running() -> None:
    sky = Constellation().replace(constellation={"planes": 1, "slots": 3}, cache={"centre": [1, 1], "servers": 1, "parity": 0})
    sky = sky.replace(network={"port": free_port(sky)})
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        # SO_REUSEADDR would let two processes share an address, and the later one take the earlier one's packets.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.18.1.3", sky.network.port))
        local = LocalConstellation(sky)
        with pytest.raises(StartError, match=rf"127\.18\.1\.3 port {sky.network.port} is in use"):
            local.start()
        assert local.processes == {}


def test_an_address_that_is_not_ours_is_told() -> None:
    sky = Constellation().replace(network={"network": "203.0.0.0/16"}, security={"insecure": True})
    with pytest.raises(StartError, match=r"203\.0\.1\.1 is no address of this machine"):
        LocalConstellation(sky).start()


def test_satellites_that_others_reach_need_a_keyring_or_a_decision() -> None:
    sky = Constellation().replace(network={"network": "203.0.0.0/16"})
    with pytest.raises(ConfigError, match=r'no keyring protects them; allowed are security\.keyring = "FILE".*insecure = true'):
        LocalConstellation(sky).start()


def test_a_hosts_keyring_starts_no_satellites(tmp_path: Path) -> None:
    begin_mission(tmp_path / "keys", 1, 2, HostRecord(name="host", tenants=(0,)))
    sky = Constellation().replace(
        constellation={"planes": 1, "slots": 2},
        cache={"servers": 1, "parity": 0, "centre": [1, 1]},
        security={"keyring": str(host_file(tmp_path / "keys", 1, "host"))},
    )
    with pytest.raises(KeyringError, match=r"is the keyring of host host, which starts no satellites"):
        LocalConstellation(sky, tmp_path).start()
