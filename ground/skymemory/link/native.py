"""The flight core's functions, which the ground's library carries (`ground/native`), through ctypes."""

import ctypes
from functools import cache
from typing import Final

from skymemory.common import compiled
from skymemory.link import structures

_LIBRARY: Final = "libskymem_client.so"


@cache
def library() -> ctypes.CDLL:
    """Return the library, which is loaded once.

    Raises:
        FileNotFoundError: The library is missing.
        OSError: The library is not for this machine.
    """
    return compiled.load(compiled.library_path(_LIBRARY), structures.SIGNATURES)


def crc32c(data: bytes) -> int:
    """Return the flight core's CRC-32C of some bytes."""
    return int(library().SKY_Crc32c(0, data, len(data)))
