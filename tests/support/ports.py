"""TCP ports for programs that need theirs as an argument."""

import random
import socket
from itertools import islice

_PORTS = range(10_000, 32_768)
"""Ports below those that Linux gives to programs that ask for any: nobody takes them before the program has started."""


def free_ports(count: int) -> list[int]:
    """Return ports that nobody uses on this machine."""
    return list(islice(filter(_is_free, random.sample(_PORTS, len(_PORTS))), count))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
