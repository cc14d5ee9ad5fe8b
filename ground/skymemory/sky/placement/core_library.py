"""The core's functions that Python calls, mostly of placement, and their types in Python; the client library carries them.

Nothing is loaded before the first call. So a module that needs only names and types of this package imports it at little cost,
and without the compiled library.
"""

import ctypes
import struct
from collections.abc import Iterable
from functools import cache
from typing import Final

from skymemory.common import compiled
from skymemory.sky.placement import structures
from skymemory.sky.placement.torus import Torus
from skymemory.wire.address import Satellite

_LIBRARY: Final = "libskymem_client.so"


@cache
def library() -> ctypes.CDLL:
    """Return the library, which is loaded once.

    Raises:
        FileNotFoundError: The library is missing.
        OSError: The library is not for this machine.
    """
    return compiled.load(compiled.library_path(_LIBRARY), structures.SIGNATURES)


@cache
def core_torus(torus: Torus) -> structures.Torus:
    """Return the torus as a structure of the core, which must not be changed.

    Raises:
        ValueError: The torus is too large.
    """
    raw = structures.Torus()
    if not library().SKY_Torus_Init(ctypes.byref(raw), torus.planes, torus.slots, torus.seam_cut):
        raise ValueError(f"the torus has {torus.planes} planes x {torus.slots} slots; allowed are 1 to 65,535 of each")
    return raw


def crc32c(data: bytes) -> int:
    """Return the core's CRC-32C of some bytes."""
    return int(library().SKY_Crc32c(0, data, len(data)))


def from_core(found: "ctypes.Array[structures.Addr]") -> list[Satellite]:
    """Return the satellites that the core found."""
    return list(map(Satellite._make, struct.iter_unpack("=HH", found)))


def to_core(satellites: Iterable[Satellite]) -> "ctypes.Array[structures.Addr]":
    """Return satellites as an array for the core."""
    chosen = [structures.Addr(*one) for one in satellites]
    return (structures.Addr * len(chosen))(*chosen)


def sorted_list(satellites: Iterable[Satellite]) -> structures.Satellites:
    """Return satellites as a sorted list, in which the core searches."""
    held = to_core(sorted(satellites))
    return structures.Satellites(held, len(held))
