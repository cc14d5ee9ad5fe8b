"""Derivation of the links' keys from the root of a mission, as docs/guide.md ("Keys") has it.

    master key of a satellite     = KDF(root, "skymemory 2 master" | plane 2 | slot 2 | generation 1)
    key of two satellites         = KDF(root, "skymemory 2 peers" | lower address 4 | higher address 4 | generation 1)
    pair key (host and satellite) = KDF(master key of the satellite, "skymemory 2 pair" | credential 48)

KDF is HKDF (RFC 5869) with HMAC-BLAKE2b-512, without a salt, of 32 bytes. Numbers are big-endian; an address is plane 2 | slot 2.
"""

import struct
from typing import Final

from cryptography.hazmat.primitives.hashes import BLAKE2b
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

from skymemory.wire.address import Satellite

KEY_BYTES: Final = 32
_ADDRESS: Final = struct.Struct(">HH")
_HASH: Final = BLAKE2b(64)


class RootKeys:
    """Keys that one generation of a mission's root gives."""

    def __init__(self, root: bytes, generation: int) -> None:
        self._generation = bytes([generation])
        self._extracted = HKDF.extract(_HASH, None, root)  # once: a constellation has a million keys

    def master_key(self, place: Satellite) -> bytes:
        """Return the master key of a satellite."""
        return self._expand(b"skymemory 2 master" + _ADDRESS.pack(*place))

    def peer_key(self, one: Satellite, other: Satellite) -> bytes:
        """Return the key between two satellites, whichever is named first."""
        lower, higher = sorted((one, other))
        return self._expand(b"skymemory 2 peers" + _ADDRESS.pack(*lower) + _ADDRESS.pack(*higher))

    def _expand(self, info: bytes) -> bytes:
        return HKDFExpand(_HASH, KEY_BYTES, info + self._generation).derive(self._extracted)


def pair_key(master_key: bytes, credential: bytes) -> bytes:
    """Return the key between a satellite and the holder of a packed credential."""
    return key_derived(master_key, b"skymemory 2 pair" + credential)


def key_derived(key: bytes, info: bytes, count: int = KEY_BYTES) -> bytes:
    """Return what follows from a key for the use that `info` names: at most 64 bytes."""
    return HKDF(_HASH, count, None, info).derive(key)
