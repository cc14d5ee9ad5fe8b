"""Keys of token blocks: a chain of hashes whose start covers all that the tensors depend on (design, section "Keys").

    key[i] = SHA-256(key[i - 1] || tokens of block i)
    key[-1] = SHA-256(model and tokenizer, layout, codec, tokens of a block, tenant secret)

So a lookup finds a block only after the same tokens and for the same model, tokenizer, layout, codec and tenant. To everything
below the manager a key is 32 opaque bytes.
"""

import hashlib
from collections.abc import Sequence

from skymemory.wire.icd import LIMIT_KEY_BYTES as KEY_BYTES

TOKEN_BYTES = 8
"""Bytes of a token in the hash, big-endian. The width is fixed, so that no two token sequences give the same bytes."""

_ROOT_DOMAIN = b"skymemory key root 1"
_DIGEST_DOMAIN = b"skymemory block digest 1"


def root_key(*, fingerprint: bytes, layout: str, codec: str, block_tokens: int, tenant_secret: bytes = b"") -> bytes:
    """Return the start of all chains: `key[-1]`, 32 bytes.

    Args:
        fingerprint: Digest of model and tokenizer (`skymemory.prompt.fingerprint`).
        layout: Name of the order of the tensors in a block (`skymemory.prompt.blocks.LAYOUT`).
        codec: Name of the codec that made the bytes.
        block_tokens: Tokens of a block.
        tenant_secret: Secret without which nobody can compute the tenant's keys or make blocks that pass their digest. It hides
            nothing, because keys and blocks go over the links as they are. Somebody who sees a key there can fetch its block,
            purge it, or replace it by garbage, which is a miss.
    """
    digest = hashlib.sha256()
    for field in (_ROOT_DOMAIN, fingerprint, layout.encode(), codec.encode(), block_tokens.to_bytes(8), tenant_secret):
        # The length is hashed too, so that a byte moved from one field to the next changes the digest
        digest.update(len(field).to_bytes(8))
        digest.update(field)
    return digest.digest()


def digest_key(root: bytes) -> bytes:
    """Return the secret key of the digests of all blocks whose chain starts at `root`, 32 bytes.

    The root is never sent, and no block key reveals it, so that it is as secret as the tenant secret. If that secret is empty,
    anybody who has the model can compute the root.
    """
    return hashlib.sha256(_DIGEST_DOMAIN + root).digest()


def block_keys(root: bytes, tokens: Sequence[int], block_tokens: int) -> list[bytes]:
    """Return the keys of the full blocks of a prompt, in order. A last block that is not full has no key.

    Args:
        root: Start of the chain from `root_key`, 32 bytes.
        tokens: Token ids of the prompt, each 0 to 2^64 - 1.
        block_tokens: Tokens of a block, at least 1.

    Raises:
        ValueError: An argument is out of range; the message says which.
    """
    if len(root) != KEY_BYTES:
        raise ValueError(f"a root key has {KEY_BYTES} bytes, not {len(root)}")
    if block_tokens < 1:
        raise ValueError(f"block_tokens is {block_tokens}; allowed are 1 and more")
    if wrong := [token for token in tokens if not 0 <= token < 1 << 8 * TOKEN_BYTES]:
        raise ValueError(f"token id {wrong[0]}; allowed are 0 to 2^{8 * TOKEN_BYTES} - 1")
    keys: list[bytes] = []
    key = root
    for start in range(0, len(tokens) - block_tokens + 1, block_tokens):
        digest = hashlib.sha256(key)
        digest.update(b"".join(token.to_bytes(TOKEN_BYTES) for token in tokens[start : start + block_tokens]))
        key = digest.digest()
        keys.append(key)
    return keys
