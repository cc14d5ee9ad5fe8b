"""TCP ports for programs that have to be told theirs."""

import random
import socket
from itertools import islice

_PORTS = range(10_000, 32_768)
"""below those that Linux gives to whoever asks for any: nobody has them by the time that the program has started"""


def free_ports(count: int) -> list[int]:
    """Ports that nobody uses on this machine."""
    return list(islice(filter(_is_free, random.sample(_PORTS, len(_PORTS))), count))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
