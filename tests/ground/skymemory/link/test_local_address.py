"""A host listens where the constellation is."""

import json
import socket
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from skymemory.link.control import ControlPlane
from skymemory.link.local_address import local_address
from skymemory.sky.constellation import Constellation
from skymemory.testbed.local import LocalConstellation
from support.namespace import run_in_namespace


def constellation_at(network: str) -> Constellation:
    return Constellation.model_validate({"network": {"network": network}})


def test_satellites_of_this_machine_are_reached_from_loopback() -> None:
    assert IPv4Address(local_address(constellation_at("127.18.0.0/16"))) == IPv4Address("127.0.0.1")


def test_a_host_is_not_there_for_other_addresses(full_sky: LocalConstellation) -> None:
    with ControlPlane(full_sky.constellation) as control, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.2", control.port))  # taken, if the host listened everywhere
        with pytest.raises(OSError, match="in use"), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as same:
            same.bind(("127.0.0.1", control.port))


MOVES = """
import json, os
from ipaddress import IPv4Address
from skymemory.link.local_address import has_moved, local_address
from skymemory.sky.constellation import Constellation

sky = Constellation.model_validate({"network": {"network": "10.77.0.0/16"}})
here, other, told = int(IPv4Address("10.1.0.1")), int(IPv4Address("10.2.0.1")), {}

def tell(case):
    told[case] = [has_moved(sky, local, heard=heard) for local in (0, here, other) for heard in (False, True)]

tell("no way")
os.system("ip addr add 10.1.0.1/32 dev lo; ip addr add 10.2.0.1/32 dev lo")
os.system("ip route add local 10.77.0.0/16 dev lo src 10.1.0.1")
assert local_address(sky) == here
tell("from here")
os.system("ip addr del 10.2.0.1/32 dev lo")
tell("the other is gone")
os.system("ip addr add 10.2.0.1/32 dev lo; ip route add local 10.77.2.0/24 dev lo src 10.2.0.1")
assert local_address(sky) == 0
tell("from both")
print(json.dumps(told))
"""


def test_sockets_move_only_to_where_they_hear_more(tmp_path: Path) -> None:
    # Each for sockets at any address, at the one from which satellites are reached, and at another; not heard there, and heard
    assert json.loads(run_in_namespace(MOVES, tmp_path)) == {
        "no way": [False, False, False, False, False, False],
        "from here": [True, True, False, False, True, False],
        "the other is gone": [True, True, False, False, True, True],
        "from both": [False, False, True, False, True, False],
    }
