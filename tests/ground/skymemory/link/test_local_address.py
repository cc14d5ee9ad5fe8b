"""A host listens where the constellation is."""

import socket
from ipaddress import IPv4Address

import pytest

from skymemory.link.control import ControlPlane
from skymemory.link.local_address import local_address
from skymemory.sky.constellation import Constellation
from skymemory.testbed.local import LocalConstellation


def constellation_at(network: str) -> Constellation:
    return Constellation.model_validate({"network": {"network": network}})


def test_satellites_of_this_machine_are_reached_from_loopback() -> None:
    assert IPv4Address(local_address(constellation_at("127.18.0.0/16"))) == IPv4Address("127.0.0.1")


def test_a_host_is_not_there_for_other_addresses(full_sky: LocalConstellation) -> None:
    with ControlPlane(full_sky.constellation) as control, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.2", control.port))  # taken, if the host listened everywhere
        with pytest.raises(OSError, match="in use"), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as same:
            same.bind(("127.0.0.1", control.port))
