"""Commands of the mission about master keys of satellites: payloads of operation `rekey`, as `sky_rekey.h` has them.

A new key is wrapped with ChaCha20-Poly1305 (RFC 8439). Cipher key and nonce key follow from the satellite's valid master key:

    bound               = command 1 | generation 1 | generation of the valid key 1 | 0 | plane 2 | slot 2
    cipher, nonce keys  = KDF(valid master key, "skymemory 2 wrap" | bound), 64 bytes
    nonce               = keyed BLAKE2b of 12 bytes under the nonce key, over bound | new key

`bound` is the associated data, too. KDF is that of `derivation`.
"""

import hashlib
import struct
from enum import IntEnum
from typing import Final

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from skymemory.security.derivation import KEY_BYTES, key_derived
from skymemory.security.keyring import MissionKeyring
from skymemory.wire import icd
from skymemory.wire.address import Satellite

NONCE_BYTES: Final = 12
_HEAD: Final = struct.Struct(">BBBx")
_ADDRESS: Final = struct.Struct(">HH")


class KeyCommand(IntEnum):
    """Commands of `rekey`."""

    LOAD = 1
    """Keep the next key, which nobody may use yet."""
    ACTIVATE = 2
    """Make the key that was loaded valid, beside the one of before."""
    FORGET = 3
    """Erase a key, and end the associations of hosts under it."""


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
    return wrap(under.master_key(place), under.generation, place, mission.generation, mission.master_key(place))


def wrap(valid_key: bytes, under: int, place: Satellite, generation: int, key: bytes) -> bytes:
    """Return the command that loads a key, wrapped under a valid one of generation `under`."""
    head = _HEAD.pack(KeyCommand.LOAD, generation, under)
    bound = head + _ADDRESS.pack(*place)
    keys = key_derived(valid_key, b"skymemory 2 wrap" + bound, 2 * KEY_BYTES)
    nonce = hashlib.blake2b(bound + key, key=keys[KEY_BYTES:], digest_size=NONCE_BYTES).digest()
    return head + nonce + ChaCha20Poly1305(keys[:KEY_BYTES]).encrypt(nonce, key, bound)


def plain_payload(command: KeyCommand, generation: int) -> bytes:
    """Return a command that has no key with it."""
    return _HEAD.pack(command, generation, 0).ljust(icd.REKEY_BYTES, b"\0")
