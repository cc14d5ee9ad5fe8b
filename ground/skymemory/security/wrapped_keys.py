"""Commands of the mission about keys of satellites: payloads of operation `rekey`, as `sky_rekey.h` has them.

New keys are wrapped with ChaCha20-Poly1305 (RFC 8439). Cipher key and nonce key follow from the satellite's valid master key:

    bound               = command 1 | generation 1 | generation of the valid key 1 | 0 | plane 2 | slot 2
    cipher, nonce keys  = KDF(valid master key, "skymemory 2 wrap" | bound), 64 bytes
    nonce               = keyed BLAKE2b of 12 bytes under the nonce key, over bound | plain text

`bound` is the associated data, too. KDF is that of `derivation`. The plain text is the new master key; or the index of a
satellite, 4 bytes, and keys between this one and the satellites from there on.
"""

import hashlib
import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Final

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from skymemory.security.derivation import KEY_BYTES, key_derived
from skymemory.security.keyring import MissionKeyring
from skymemory.wire import icd
from skymemory.wire.address import Satellite

NONCE_BYTES: Final = 12
PEERS_MOST: Final = 32
"""Most keys of one command."""
_HEAD: Final = struct.Struct(">BBBx")
_ADDRESS: Final = struct.Struct(">HH")
_INDEX: Final = struct.Struct(">I")


class KeyCommand(IntEnum):
    """Commands of `rekey`."""

    LOAD = 1
    """Keep the next master key, which nobody may use yet."""
    ACTIVATE = 2
    """Make the key that was loaded valid, beside the one of before."""
    FORGET = 3
    """Erase a master key, and end the associations under it."""
    LOAD_PEERS = 4
    """Keep keys with other satellites, which are valid with the master key of their generation."""


def load_payload(mission: MissionKeyring, under: MissionKeyring, place: Satellite) -> bytes:
    """Return the command that loads a satellite's master key.

    Args:
        mission: Keyring of the key's generation.
        under: Keyring of the valid key's generation, which has to be a lower one.

    Raises:
        ValueError: It is not.
    """
    if mission.generation <= under.generation:
        raise ValueError(f"generation {mission.generation} under {under.generation}; allowed are later ones under earlier ones")
    return _wrap(KeyCommand.LOAD, mission, under, place, mission.master_key(place))


def peer_payloads(mission: MissionKeyring, under: MissionKeyring, place: Satellite) -> Iterator[bytes]:
    """Yield the commands that load the keys between a satellite and all others.

    Args:
        mission: Keyring of the keys' generation.
        under: Keyring of the valid key's generation, which may be the same.
    """
    places = mission.satellites()
    for first in range(0, len(places), PEERS_MOST):
        keys = b"".join(mission.peer_key(place, other) for other in places[first : first + PEERS_MOST])
        yield _wrap(KeyCommand.LOAD_PEERS, mission, under, place, _INDEX.pack(first) + keys)


def _wrap(command: KeyCommand, mission: MissionKeyring, under: MissionKeyring, place: Satellite, text: bytes) -> bytes:
    return wrap(command, under.master_key(place), under.generation, place, mission.generation, text)


def wrap(command: KeyCommand, valid_key: bytes, under: int, place: Satellite, generation: int, text: bytes) -> bytes:
    """Return a command whose plain text is wrapped under a valid key of generation `under`."""
    head = _HEAD.pack(command, generation, under)
    bound = head + _ADDRESS.pack(*place)
    keys = key_derived(valid_key, b"skymemory 2 wrap" + bound, 2 * KEY_BYTES)
    nonce = hashlib.blake2b(bound + text, key=keys[KEY_BYTES:], digest_size=NONCE_BYTES).digest()
    return head + nonce + ChaCha20Poly1305(keys[:KEY_BYTES]).encrypt(nonce, text, bound)


def plain_payload(command: KeyCommand, generation: int) -> bytes:
    """Return a command that has no key with it."""
    return _HEAD.pack(command, generation, 0).ljust(icd.REKEY_BYTES, b"\0")
