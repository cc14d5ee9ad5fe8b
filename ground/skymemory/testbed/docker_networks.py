"""Networks for containers: which ones the engine and this machine have, and one that none of them overlaps."""

import json
import socket
import struct
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, Final

from skymemory.sky.constellation import Constellation
from skymemory.testbed.compose import NETWORK, own_network

PROJECT_LABEL: Final = "com.docker.compose.project"
"""Label with which Compose marks what belongs to a project."""
_PREFIX: Final = 16
"""Prefix of the networks to choose from: satellite (p, s) is at A.B.p.s, with at most 255 planes."""
_PRIVATE: Final = tuple(f"10.{second}.0.0/{_PREFIX}" for second in range(198, 256))
"""Networks for private use (RFC 1918), for the third constellation on a machine and those after it."""
_ROUTE_UP: Final = 1


@dataclass(frozen=True)
class TakenNetwork:
    """Addresses that somebody has."""

    subnet: IPv4Network
    owner: str
    """Clause that says who has them."""
    name: str = ""
    """Name of the engine's network; '' for a route of this machine."""


class NetworkTakenError(RuntimeError):
    """The addresses that containers want are taken, or none are free. The message names who has them."""


def choose_network(constellation: Constellation, project: str, taken: Sequence[TakenNetwork]) -> str:
    """Return the network for the containers of a project.

    It is the one of the constellation file, unless that is in 127.0.0.0/8. Otherwise it is the one that the project has already,
    or the first that is free.

    Args:
        constellation: The constellation of the file.
        project: Name of the project, and of its network.
        taken: Addresses that somebody has.

    Raises:
        NetworkTakenError: The network of the file is taken, or no network is free.
    """
    others = [one for one in taken if one.name != project]
    fixed = own_network(constellation)
    if fixed is not None:
        if found := _overlapping(fixed, others):
            raise NetworkTakenError(f"{fixed}, the constellation's network.network, is taken: {found.owner}; choose another one")
        return fixed
    choices = [*(str(one) for one in IPv4Network(NETWORK).subnets(new_prefix=_PREFIX)), *_PRIVATE]
    own = {str(one.subnet) for one in taken if one.name == project}
    for network in sorted(choices, key=lambda one: one not in own):  # a stable order
        if _overlapping(network, others) is None:
            return network
    who = "; ".join(dict.fromkeys(one.owner for network in choices if (one := _overlapping(network, others))))
    among = f"{NETWORK}, {_PRIVATE[0]} to {_PRIVATE[-1]}"
    raise NetworkTakenError(f"no network is free for containers, of {among}: {who}; choose a network.network")


def taken_networks(*, is_here: bool) -> list[TakenNetwork]:
    """Return the addresses of the engine's networks and, if the engine is here, those to which this machine has routes."""
    found = list(_engine_networks())
    known = {one.subnet for one in found}
    return [*found, *(route for route in host_routes() if route.subnet not in known)] if is_here else found


def host_routes(root: Path = Path("/")) -> Iterator[TakenNetwork]:
    """Yield the addresses to which this machine has routes, but for the default route, which a VPN may write as two halves.

    Args:
        root: Folder above /proc.
    """
    try:
        lines = (root / "proc/net/route").read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return
    for line in lines:
        interface, target, _, flags, _, _, _, mask, *_ = line.split()
        if int(flags, 16) & _ROUTE_UP and int(mask, 16).bit_count() > 1:
            subnet = IPv4Network((_address(target), _address(mask)))
            yield TakenNetwork(subnet, f"this machine has a route to {subnet} through {interface}")


def _engine_networks() -> Iterator[TakenNetwork]:
    """Yield the addresses of the engine's networks. An engine that does not answer has none."""
    names = subprocess.run(["docker", "network", "ls", "--quiet"], capture_output=True, text=True, check=False).stdout.split()
    if not names:
        return
    # A network that has just gone is left out of the answer.
    told = subprocess.run(["docker", "network", "inspect", *names], capture_output=True, text=True, check=False).stdout
    for one in json.loads(told or "[]"):
        yield from _of_network(one)


def _of_network(told: dict[str, Any]) -> Iterator[TakenNetwork]:
    name, project = told["Name"], (told.get("Labels") or {}).get(PROJECT_LABEL)
    for config in (told.get("IPAM") or {}).get("Config") or ():
        subnet: IPv4Network | IPv6Network = ip_network(config["Subnet"], strict=False)
        if isinstance(subnet, IPv4Network):
            whose = f" of the project {project}" if project else ""
            yield TakenNetwork(subnet, f"{subnet} belongs to the network {name}{whose}", name)


def _overlapping(network: str, taken: Iterable[TakenNetwork]) -> TakenNetwork | None:
    wanted = IPv4Network(network)
    return next((one for one in taken if one.subnet.overlaps(wanted)), None)


def _address(word: str) -> str:
    """Return an address of /proc/net/route, which has the bytes in the machine's order."""
    return socket.inet_ntoa(struct.pack("=I", int(word, 16)))
