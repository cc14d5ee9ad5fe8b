"""The core's functions for placement, which the client library carries, and their types in Python.

Nothing is loaded before the first call. So what only needs names and types of this package imports it at little cost, and without
the compiled library.
"""

import ctypes
import struct
from collections.abc import Iterable
from functools import cache
from typing import Final

from skymemory import compiled
from skymemory.placement import structures
from skymemory.placement.torus import Satellite, Torus

_LIBRARY: Final = "libskymem_client.so"


@cache
def library() -> ctypes.CDLL:
    """The library, loaded once.

    Raises:
        FileNotFoundError: it is not there.
        OSError: it is not for this machine.
    """
    return compiled.load(compiled.library_path(_LIBRARY), structures.SIGNATURES)


@cache
def core_torus(torus: Torus) -> structures.Torus:
    """A torus as the core has it; nobody changes it.

    Raises:
        ValueError: it is too large.
    """
    raw = structures.Torus()
    if not library().SKY_Torus_Init(ctypes.byref(raw), torus.planes, torus.slots, torus.seam_cut):
        raise ValueError(f"a torus of {torus.planes} planes x {torus.slots} slots; allowed are 1 to 65,535 of each")
    return raw


def from_core(found: "ctypes.Array[structures.Addr]") -> list[Satellite]:
    """Satellites that the core found."""
    return list(map(Satellite._make, struct.iter_unpack("=HH", found)))


def to_core(satellites: Iterable[Satellite]) -> "ctypes.Array[structures.Addr]":
    """The same for the core."""
    chosen = [structures.Addr(*one) for one in satellites]
    return (structures.Addr * len(chosen))(*chosen)


def sorted_list(satellites: Iterable[Satellite]) -> structures.Satellites:
    """Satellites as a list in which the core searches."""
    held = to_core(sorted(satellites))
    return structures.Satellites(held, len(held))
