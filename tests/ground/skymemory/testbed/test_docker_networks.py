"""Networks for containers, when others have some. Those of a real engine: tests/docker."""

from ipaddress import IPv4Network
from pathlib import Path

import pytest

from skymemory.sky.constellation import Constellation
from skymemory.testbed.docker_networks import NetworkTakenError, TakenNetwork, choose_network, host_routes

OURS = "skymemory-1a2b3c4d"
ROUTES = """Iface	Destination	Gateway 	Flags	RefCnt	Use	Metric	Mask		MTU	Window	IRTT
eth0	00000000	010011AC	0003	0	0	0	00000000	0	0	0
eth0	000011AC	00000000	0001	0	0	0	0000FFFF	0	0	0
vpn0	0000000A	00000000	0001	0	0	0	000000FF	0	0	0
tun0	00000000	0100080A	0003	0	0	0	00000080	0	0	0
tun0	00000080	0100080A	0003	0	0	0	00000080	0	0	0
down	000012C6	00000000	0000	0	0	0	0000FFFF	0	0	0
"""


def taken(subnet: str, name: str = "theirs") -> TakenNetwork:
    return TakenNetwork(IPv4Network(subnet), f"{subnet} belongs to the network {name}", name)


def test_the_first_that_is_free_is_taken() -> None:
    sky = Constellation()
    assert choose_network(sky, OURS, []) == "198.18.0.0/16"
    assert choose_network(sky, OURS, [taken("198.18.0.0/16")]) == "198.19.0.0/16"
    assert choose_network(sky, OURS, [taken("198.18.0.0/15"), taken("10.198.7.0/24")]) == "10.199.0.0/16"


def test_a_network_that_the_project_has_already_is_kept() -> None:
    assert choose_network(Constellation(), OURS, [taken("198.19.0.0/16", OURS)]) == "198.19.0.0/16"
    assert choose_network(Constellation(), OURS, [taken("172.30.0.0/16", OURS)]) == "198.18.0.0/16"


def test_the_network_of_the_file_comes_first() -> None:
    sky = Constellation().replace(network={"network": "198.18.0.0/15"})
    assert choose_network(sky, OURS, [taken("10.0.0.0/8")]) == "198.18.0.0/15"
    with pytest.raises(NetworkTakenError, match=r"is taken: 198\.19\.0\.0/16 belongs to the network theirs; choose another one"):
        choose_network(sky, OURS, [taken("198.19.0.0/16")])


def test_who_has_all_of_them_is_told() -> None:
    everything = [taken("198.18.0.0/15", "one"), taken("10.0.0.0/8", "two")]
    with pytest.raises(
        NetworkTakenError, match=r"no network is free .* the network one; 10\.0\.0\.0/8 belongs to the network two"
    ):
        choose_network(Constellation(), OURS, everything)


def test_routes_of_this_machine_count(tmp_path: Path) -> None:
    (tmp_path / "proc" / "net").mkdir(parents=True)
    (tmp_path / "proc" / "net" / "route").write_text(ROUTES)
    found = list(host_routes(tmp_path))
    assert [str(one.subnet) for one in found] == ["172.17.0.0/16", "10.0.0.0/8"]
    assert found[1].owner == "this machine has a route to 10.0.0.0/8 through vpn0"
    assert list(host_routes(tmp_path / "none")) == []
