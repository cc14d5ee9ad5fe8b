"""Keys of token blocks: a chain whose start covers all that the tensors depend on (`skymemory.wire.key_derivation`).

    key[i] = key of key[i - 1] and the tokens of block i, under the key of names
    key[-1] = empty
    key of names = of the root: of model and tokenizer, layout, codec, tokens of a block, tenant secret

So a lookup finds a block only after the same tokens and for the same model, tokenizer, layout, codec and tenant. To everything
below the manager a key is 32 opaque bytes: who sees the keys of a prompt cannot find out its tokens by trying.
"""

from collections.abc import Sequence

from skymemory.wire.key_derivation import block_key, name_key, root_key

TOKEN_BYTES = 8
"""Bytes of a token in the hash, big-endian. The width is fixed, so that no two token sequences give the same bytes."""


def prompt_root(*, fingerprint: bytes, layout: str, codec: str, block_tokens: int, tenant_secret: bytes) -> bytes:
    """Return the root of all chains, 32 bytes.

    Args:
        fingerprint: Digest of model and tokenizer (`skymemory.prompt.fingerprint`).
        layout: Name of the order of the tensors in a block (`skymemory.prompt.blocks.LAYOUT`).
        codec: Name of the codec that made the bytes.
        block_tokens: Tokens of a block.
        tenant_secret: Secret of the tenant (`skymemory.wire.key_derivation.root_key`).
    """
    return root_key("prompts", tenant_secret, fingerprint, layout, codec, str(block_tokens))


def block_keys(root: bytes, tokens: Sequence[int], block_tokens: int) -> list[bytes]:
    """Return the keys of the full blocks of a prompt, in order. A last block that is not full has no key.

    Args:
        root: Root of the chain from `prompt_root`, 32 bytes.
        tokens: Token ids of the prompt, each 0 to 2^64 - 1.
        block_tokens: Tokens of a block, at least 1.

    Raises:
        ValueError: An argument is out of range; the message says which.
    """
    if block_tokens < 1:
        raise ValueError(f"block_tokens is {block_tokens}; allowed are 1 and more")
    if wrong := [token for token in tokens if not 0 <= token < 1 << 8 * TOKEN_BYTES]:
        raise ValueError(f"token id {wrong[0]}; allowed are 0 to 2^{8 * TOKEN_BYTES} - 1")
    names, keys = name_key(root), [b""]
    for start in range(0, len(tokens) - block_tokens + 1, block_tokens):
        raw = b"".join([token.to_bytes(TOKEN_BYTES) for token in tokens[start : start + block_tokens]])
        keys.append(block_key(names, keys[-1], raw))
    return keys[1:]
