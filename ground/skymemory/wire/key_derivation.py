"""Derivation of keys: of blocks in the sky, and of what seals them (`skymemory.wire.envelope`).

    root         = BLAKE3 in derive-key mode of a label: over the tenant secret and all else that decides the bytes of the blocks
    key of names, of encryption, of nonces = BLAKE3 in derive-key mode, each of a label of its own: over the root
    block's key  = BLAKE3 keyed with the key of names, or with another secret under it: over the block's name, such as its tokens

Only blocks' keys are sent; satellites see them. The length of each part is hashed too, so that a byte moved from one part to the
next changes the key. Who knows neither the tenant secret nor the root can compute no block's key, cannot tell from a key which
name it is of, and can neither read nor make a block. If the tenant secret is empty, anybody who knows the other parts can do
all of it; that is for tests only.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from blake3 import blake3

from skymemory.wire.icd import LIMIT_KEY_BYTES as KEY_BYTES

_ROOT_CONTEXT: Final = "skymemory 3 root of keys: "
_NAMES_CONTEXT: Final = "skymemory 3 key of names"
_ENCRYPTION_CONTEXT: Final = "skymemory 3 key of encryption"
_NONCES_CONTEXT: Final = "skymemory 3 key of nonces"
_PUBLIC_CONTEXT: Final = "skymemory 3 public name of a root"


class SealKeys(NamedTuple):
    """Keys that seal all blocks under one root. They are as secret as the root."""

    encryption: bytes
    """Key of AES-256."""
    nonces: bytes
    """Key of the digests that nonces are taken from."""


def root_key(label: str, tenant_secret: bytes, *parts: bytes | str) -> bytes:
    """Return the root of a tenant's keys, 32 bytes. It is as secret as the tenant secret.

    Args:
        label: Word for the kind of the blocks, so that blocks of different kinds never share a key.
        tenant_secret: Secret without which nobody can compute the tenant's keys, read blocks, or make blocks that pass.
            Somebody who sees a key on a link can still fetch the sealed block, purge it, or replace it by garbage, which is a
            miss.
        parts: All else that decides the bytes of the blocks, always in the same order.
    """
    raw = [part.encode() if isinstance(part, str) else part for part in parts]
    return blake3(_joined((tenant_secret, *raw)), derive_key_context=_ROOT_CONTEXT + label).digest()


def name_key(root: bytes) -> bytes:
    """Return the key of the names of all blocks under a root, 32 bytes, for `block_key`. It is as secret as the root.

    Raises:
        ValueError: The root has another length.
    """
    return _derived(root, _NAMES_CONTEXT)


def block_key(parent: bytes, *parts: bytes) -> bytes:
    """Return the key of a block, 32 bytes.

    Args:
        parent: A key of names, or another secret, 32 bytes. It is no key that is sent: who saw a public parent could find out by
            trying which name a block's key is of.
        parts: The name of the block under its parent.

    Raises:
        ValueError: The parent has another length.
    """
    if len(parent) != KEY_BYTES:
        raise ValueError(f"a root or parent key has {KEY_BYTES} bytes, not {len(parent)}")
    return blake3(_joined(parts), key=parent).digest()


def seal_keys(root: bytes) -> SealKeys:
    """Return the keys that seal all blocks whose keys start at a root.

    Raises:
        ValueError: The root has another length.
    """
    return SealKeys(_derived(root, _ENCRYPTION_CONTEXT), _derived(root, _NONCES_CONTEXT))


def public_name(root: bytes) -> bytes:
    """Return 32 bytes that tell roots apart and reveal nothing of them, for those who must not know the root.

    Raises:
        ValueError: The root has another length.
    """
    return _derived(root, _PUBLIC_CONTEXT)


def _derived(root: bytes, context: str) -> bytes:
    if len(root) != KEY_BYTES:
        raise ValueError(f"a root key has {KEY_BYTES} bytes, not {len(root)}")
    return blake3(root, derive_key_context=context).digest()


def _joined(parts: Iterable[bytes]) -> bytes:
    return b"".join([len(part).to_bytes(8) + part for part in parts])
