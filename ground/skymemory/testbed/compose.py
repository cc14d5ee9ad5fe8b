"""The constellation as a compose file: one container a satellite, for Compose 1.29 and 2."""

import json
from dataclasses import dataclass
from importlib.metadata import version
from ipaddress import IPv4Network
from pathlib import Path

from skymemory.security.satellite_file import file_name
from skymemory.sky.constellation import CONFIG_FILE, Constellation
from skymemory.testbed import satellite_program as skysat

PROJECT = "skymemory"
"""Beginning of the names of images, and of what `skymem up` starts."""
NETWORK = "198.18.0.0/15"
"""Network for benchmarks of network devices (RFC 2544, RFC 6890): nobody else has its addresses. Containers get it, or a part."""
BRIDGE_MTU = 9000
UDP_OVERHEAD = 28
"""Bytes of IPv4 and UDP headers: packets up to BRIDGE_MTU - 28 bytes are never fragmented."""

KEY_FILE = "/run/secrets/satellite.key"
"""File of a satellite's keys, as its container sees it."""

AT_ONCE = 16
"""Satellites that are started side by side: each waits for the one that many places before it. Compose 1.29 shares 64 workers
between services and their containers, and locks up when 64 services have taken them all."""


@dataclass(frozen=True)
class Image:
    """A target of docker/Dockerfile, from which a container is made."""

    target: str
    memory_mib: int
    """Memory beside the store: the program, and the kernel's socket buffers, which count too."""

    @property
    def name(self) -> str:
        """Name with the version of this package as its tag."""
        return f"{PROJECT}-{self.target}:{version('skymemory')}"


SATELLITE = Image("satellite", 8)
"""The static satellite and nothing else; it takes less than 3 MiB."""
SATELLITE_PYTHON = Image("satellite-python", 48)
"""The satellite inside a Python process, with the health monitor on board."""


def in_containers(constellation: Constellation, network: str = NETWORK) -> Constellation:
    """Return the constellation on the containers' network: its addresses, and packets that its frames can carry.

    Args:
        constellation: The constellation.
        network: Network of the containers. A constellation whose own network is none of this machine alone keeps that.
    """
    mtu = min(constellation.network.mtu, BRIDGE_MTU - UDP_OVERHEAD)
    return constellation.replace(network={"network": own_network(constellation) or network, "mtu": mtu})


def own_network(constellation: Constellation) -> str | None:
    """Return the network that the constellation file chooses for containers; None if it is in 127.0.0.0/8, where none can be."""
    network = IPv4Network(constellation.network.network)
    return None if network.is_loopback else str(network)


def network_name(network: str) -> str:
    """Return the name of the network in a Compose file, which follows its addresses."""
    return PROJECT if network == NETWORK else f"{PROJECT}-{network.replace('/', '-')}"


def compose_file(
    constellation: Constellation,
    image: Image = SATELLITE,
    *,
    reference: str | None = None,
    name: str | None = None,
    source: str = str(CONFIG_FILE),
    context: str | None = "..",
    keys: Path | None = None,
) -> str:
    """Return the text of compose.yaml.

    Args:
        reference: Name or id of the image; None: its name.
        name: Name of the network; None: one that follows its addresses.
        source: Origin of the constellation, for the head of the text.
        context: Checkout that the image is built from, as seen from the file's folder: `..` from `docker/`. None: there is no
            checkout, and the image must exist.
        keys: Folder of the key files, as seen from the file's folder; None without a keyring. Each container sees its own only.
    """
    inside = in_containers(constellation)
    network = IPv4Network(inside.network.network)
    memory = inside.satellite.store_mib + image.memory_mib
    lines = [
        f"# Made by `skymem compose` from {source if source.isprintable() else ascii(source)}. Do not edit.",
        "",
        "x-satellite: &satellite",
        f"  image: {reference or image.name}",
        f"  mem_limit: {memory}m",
        "  restart: unless-stopped",
        "  read_only: true",
        "  user: '65534:65534'",
        "  cap_drop: [ALL]",
        "  security_opt: ['no-new-privileges=true']",
        "  logging: {driver: json-file, options: {max-size: 64k, max-file: '1'}}",
        "",
        "networks:",
        "  sky:",
        f"    name: {name or network_name(str(network))}",
        "    driver: bridge",
        "    driver_opts:",
        f"      com.docker.network.driver.mtu: '{BRIDGE_MTU}'",
        "    ipam:",
        "      config:",
        f"        - subnet: {network}",
        f"          gateway: {network.network_address + 1}",
        "",
    ]
    places = list(inside.torus.satellites())
    if keys is not None:
        lines.append("secrets:")
        for place in places:
            lines.append(f"  keys-{place.plane}-{place.slot}: {{file: {_quoted(str(keys / file_name(place)))}}}")
        lines.append("")
    lines.append("services:")
    for number, place in enumerate(places):
        words = ", ".join(f'"{word}"' for word in skysat.arguments(inside, place, None if keys is None else KEY_FILE))
        lines += [f"  sat-{place.plane}-{place.slot}:", "    <<: *satellite"]
        if number == 0 and context is not None:  # one service builds the image that all use
            lines.append(f"    build: {{context: {_quoted(context)}, dockerfile: docker/Dockerfile, target: {image.target}}}")
        if number >= AT_ONCE:
            before = places[number - AT_ONCE]
            lines.append(f"    depends_on: [sat-{before.plane}-{before.slot}]")
        if keys is not None:
            lines.append(f"    secrets: [{{source: keys-{place.plane}-{place.slot}, target: {KEY_FILE}}}]")
        lines += [
            f"    command: [{words}]",
            f"    networks: {{sky: {{ipv4_address: {inside.address(*place)}}}}}",
        ]
    return "\n".join([*lines, ""])


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("$", "$$")  # Compose would replace $NAME
