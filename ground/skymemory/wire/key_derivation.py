"""Derivation of keys: of blocks in the sky, and of the digests that seal them (`skymemory.wire.envelope`).

    root  = BLAKE3 in derive-key mode of a label: over the tenant secret and all else that decides the bytes of the blocks
    key   = BLAKE3 keyed with its parent, which is the root or another key: over the block's name, such as its tokens
    digest key = BLAKE3 in derive-key mode: over the root

The length of each part is hashed too, so that a byte moved from one part to the next changes the key. A root is never sent, and
no key reveals it. If the tenant secret is empty, anybody who knows the other parts can compute the root.
"""

from collections.abc import Iterable
from typing import Final

from blake3 import blake3

from skymemory.wire.icd import LIMIT_KEY_BYTES as KEY_BYTES

_ROOT_CONTEXT: Final = "skymemory 2 root of keys: "
_DIGEST_CONTEXT: Final = "skymemory 2 key of digests"


def root_key(label: str, tenant_secret: bytes, *parts: bytes | str) -> bytes:
    """Return the root of a tenant's keys, 32 bytes.

    Args:
        label: Word for the kind of the blocks, so that blocks of different kinds never share a key.
        tenant_secret: Secret without which nobody can compute the tenant's keys or make blocks that pass their digest. It hides
            nothing, because keys and blocks go over the links as they are. Somebody who sees a key there can fetch its block,
            purge it, or replace it by garbage, which is a miss.
        parts: All else that decides the bytes of the blocks, always in the same order.
    """
    raw = [part.encode() if isinstance(part, str) else part for part in parts]
    return blake3(_joined((tenant_secret, *raw)), derive_key_context=_ROOT_CONTEXT + label).digest()


def block_key(parent: bytes, *parts: bytes) -> bytes:
    """Return the key of a block, 32 bytes.

    Args:
        parent: A root, or the key of the block before or above this one, 32 bytes.
        parts: The name of the block under its parent.

    Raises:
        ValueError: The parent has another length.
    """
    if len(parent) != KEY_BYTES:
        raise ValueError(f"a root or parent key has {KEY_BYTES} bytes, not {len(parent)}")
    return blake3(_joined(parts), key=parent).digest()


def digest_key(root: bytes) -> bytes:
    """Return the key of the digests of all blocks whose keys start at `root`, 32 bytes. It is as secret as the root.

    Raises:
        ValueError: The root has another length.
    """
    if len(root) != KEY_BYTES:
        raise ValueError(f"a root key has {KEY_BYTES} bytes, not {len(root)}")
    return blake3(root, derive_key_context=_DIGEST_CONTEXT).digest()


def _joined(parts: Iterable[bytes]) -> bytes:
    return b"".join([len(part).to_bytes(8) + part for part in parts])
