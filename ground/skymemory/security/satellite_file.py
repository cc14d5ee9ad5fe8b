"""The file of a satellite's keys, which `skysat --keys FILE` reads: its master key, and a key for each other satellite.

    magic "SKYK" 4 | format 1 | generation 1 | planes 2 | slots 2 | own plane 2 | own slot 2 | zeros 2 | master key 32
    and then 32 bytes a satellite, plane by plane; zeros at the satellite's own place

Numbers are big-endian.
"""

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from skymemory.common import defaults
from skymemory.common.secret_files import SecretFileError, read_secret
from skymemory.security.derivation import KEY_BYTES
from skymemory.wire.address import Satellite

MAGIC: Final = b"SKYK"
FORMAT: Final = 1
_HEAD: Final = struct.Struct(f">4sBBHHHH2s{KEY_BYTES}s")
HEAD_BYTES: Final = _HEAD.size
_BYTES_MAX: Final = HEAD_BYTES + defaults.MOST_PLANES * defaults.MOST_SLOTS * KEY_BYTES


@dataclass(frozen=True)
class SatelliteKeys:
    """Keys of one satellite."""

    generation: int
    planes: int
    slots: int
    place: Satellite
    master_key: bytes = field(repr=False)
    peer_keys: bytes = field(repr=False)
    """A key for each satellite, plane by plane, 32 bytes each."""

    def pack(self) -> bytes:
        """Return the content of its file."""
        head = _HEAD.pack(MAGIC, FORMAT, self.generation, self.planes, self.slots, *self.place, bytes(2), self.master_key)
        return head + self.peer_keys


def parse_satellite_keys(content: bytes) -> SatelliteKeys:
    """Return the keys that a satellite's file holds.

    Raises:
        ValueError: It is no such file; the message says why.
    """
    if len(content) < HEAD_BYTES:
        raise ValueError(f"{len(content)} bytes, fewer than its head has ({HEAD_BYTES})")
    magic, form, generation, planes, slots, plane, slot, spare, master_key = _HEAD.unpack_from(content)
    if (magic, form, spare) != (MAGIC, FORMAT, bytes(2)):
        raise ValueError(f"it does not begin as a file of keys of format {FORMAT}")
    if not (1 <= plane <= planes <= defaults.MOST_PLANES and 1 <= slot <= slots <= defaults.MOST_SLOTS):
        raise ValueError(f"satellite [{plane}, {slot}] of {planes} planes x {slots} slots")
    peer_keys = content[HEAD_BYTES:]
    if len(peer_keys) != planes * slots * KEY_BYTES:
        raise ValueError(f"{len(content)} bytes instead of {HEAD_BYTES + planes * slots * KEY_BYTES}")
    own = ((plane - 1) * slots + slot - 1) * KEY_BYTES
    if any(peer_keys[own : own + KEY_BYTES]):
        raise ValueError("it has a key between the satellite and itself")
    return SatelliteKeys(generation, planes, slots, Satellite(plane, slot), master_key, peer_keys)


def read_satellite_keys(path: Path) -> SatelliteKeys:
    """Read the file of a satellite's keys.

    Raises:
        SecretFileError: The file cannot be read, others may read it, or it is damaged.
    """
    try:
        return parse_satellite_keys(read_secret(path, _BYTES_MAX))
    except ValueError as error:
        raise SecretFileError(f"{path} is damaged: {error}") from error


def file_name(place: Satellite) -> str:
    """Return the name of a satellite's file in the folder of all."""
    return f"{place.plane}-{place.slot}.key"
