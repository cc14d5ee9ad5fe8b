"""The address of this machine from which it reaches a constellation: where a ground host's sockets listen, and nowhere else."""

import socket
from ipaddress import IPv4Address

from skymemory.sky.constellation import Constellation


def local_address(constellation: Constellation) -> int:
    """Return the IPv4 address as a number; 0, which is any, if there is no way now, or planes are reached from several."""
    found: set[str] = set()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for plane in range(1, constellation.planes + 1):
            for slot in (1, constellation.slots):
                try:
                    probe.connect((constellation.address(plane, slot), constellation.network.port))  # nothing is sent
                except OSError:
                    return 0
                found.add(probe.getsockname()[0])
    return int(IPv4Address(found.pop())) if len(found) == 1 else 0
