"""The address of this machine from which it reaches a constellation: where a ground host's sockets listen, and nowhere else."""

import socket
from ipaddress import IPv4Address

from skymemory.sky.constellation import Constellation


def local_address(constellation: Constellation) -> int:
    """Return the IPv4 address as a number; 0, which is any, if there is no way now, or planes are reached from several."""
    return _one(_addresses(constellation))


def has_moved(constellation: Constellation, local: int, *, heard: bool) -> bool:
    """Return True if sockets at an address should be opened anew, at the one from which satellites are reached now.

    While no way leads to the satellites, and where sockets may still hear them, it is False: what is opened anew forgets much.

    Args:
        local: Address at which the sockets listen; 0: any.
        heard: True if a satellite has answered there.
    """
    try:
        found = _addresses(constellation)
    except OSError:  # out of descriptors: nothing could be opened either
        return False
    return bool(found) and _one(found) != local and not (heard and local and _is_here(local))


def _addresses(constellation: Constellation) -> set[str]:
    """Return the addresses from which planes are reached; none if some satellite cannot be reached."""
    found: set[str] = set()
    for plane in range(1, constellation.planes + 1):
        for slot in (1, constellation.slots):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:  # one that was connected before keeps its address
                try:
                    probe.connect((constellation.address(plane, slot), constellation.network.port))  # nothing is sent
                except OSError:
                    return set()
                found.add(probe.getsockname()[0])
    return found


def _one(addresses: set[str]) -> int:
    return int(IPv4Address(next(iter(addresses)))) if len(addresses) == 1 else 0


def _is_here(address: int) -> bool:
    """Return True if this machine has the address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((str(IPv4Address(address)), 0))
        except OSError:
            return False
    return True
