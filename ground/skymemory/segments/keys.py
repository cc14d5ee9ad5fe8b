"""Keys of segments' blocks: a chain over the tokens of the segment alone, in a domain of its own.

    name[i]     = key of name[i - 1] and the tokens of block i, under the key of names; a last block of fewer tokens says how many
    name[-1]    = empty
    key[i, g]   = key of name[i] and the group of layers g
    id          = key of all tokens

A variant of a segment, which was computed behind other tokens, has the same id, and keys under a root of its own:

    variant     = key of all tokens before it

A segment's keys and values were computed without what stands before it in a prompt. So its root has another label than that of
prompts, and no key of a segment is one of a prompt. The names of blocks are never sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

from skymemory.prompt.block_keys import TOKEN_BYTES
from skymemory.wire.key_derivation import block_key, name_key, root_key

_LABEL: Final = "segments"
_SCOPE: Final = b"scope"
_VARIANT: Final = b"variant"
_ID_BYTES: Final = 16
_ID_START: Final = "seg-"


def segment_root(
    *, fingerprint: bytes, layout: str, codec: str, block_tokens: int, sinks: int, tenant_secret: bytes, scope: bytes = b""
) -> bytes:
    """Return the root of the keys of segments, 32 bytes.

    Args:
        fingerprint: Digest of model and tokenizer (`skymemory.prompt.fingerprint`).
        layout: Name of the order of the tensors (`skymemory.segments.groups.layout_of`).
        codec: Name of the codec that made the bytes.
        block_tokens: Tokens of a block.
        sinks: Tokens BOS before the segment when it was computed.
        tenant_secret: Secret of the tenant (`skymemory.wire.key_derivation.root_key`).
        scope: Name of one of several users of a tenant, who never find each other's segments.
    """
    root = root_key(_LABEL, tenant_secret, fingerprint, layout, codec, str(block_tokens), str(sinks))
    return scoped(root, scope)


def scoped(root: bytes, scope: bytes) -> bytes:
    """Return the root of a scope under a root; the root itself for the scope without a name."""
    return block_key(root, _SCOPE, scope) if scope else root


def block_names(root: bytes, tokens: Sequence[int], block_tokens: int) -> list[bytes]:
    """Return the names of a segment's blocks, in order, 32 bytes each. They are as secret as the root.

    Args:
        root: The root from `segment_root`.
        tokens: Token ids of the segment.
        block_tokens: Tokens of a block. The last block has the tokens that are left.
    """
    names, chain = name_key(root), [b""]
    for start in range(0, len(tokens), block_tokens):
        part = tokens[start : start + block_tokens]
        word = [b"block"] if len(part) == block_tokens else [b"tail", len(part).to_bytes(8)]
        chain.append(block_key(names, *word, chain[-1], _raw(part)))
    return chain[1:]


def group_key(root: bytes, name: bytes, group: int) -> bytes:
    """Return the key under which a group of layers of a block is stored, 32 bytes.

    Args:
        root: The root from `segment_root`.
        name: The name of the block.
        group: Number of the group, from 0.
    """
    return block_key(name_key(root), b"group", name, group.to_bytes(8))


def segment_id(root: bytes, tokens: Sequence[int]) -> str:
    """Return the id of a segment. Who does not know the root cannot tell from an id what it is of."""
    return _ID_START + block_key(name_key(root), b"id", _raw(tokens))[:_ID_BYTES].hex()


class SegmentKeys:
    """The keys of one segment's blocks, or of those of a variant."""

    def __init__(self, root: bytes, tokens: Sequence[int], block_tokens: int, groups: int, variant: bytes = b"") -> None:
        """Derive them.

        Args:
            root: Root of the segment's keys.
            tokens: Token ids of the segment.
            block_tokens: Tokens of a block.
            groups: Groups of layers of a block.
            variant: Name of the variant from `SegmentKeys.variant_name`; empty for the segment that was computed alone.
        """
        self._segment_root = root
        self.root = block_key(name_key(root), _VARIANT, variant) if variant else root
        self.tokens = tokens
        self.block_tokens = block_tokens
        self.groups = groups
        self._names = block_names(self.root, tokens, block_tokens)

    @property
    def id(self) -> str:
        """The segment's id, which is that of its variants, too."""
        return segment_id(self._segment_root, self.tokens)

    def of_variant(self, name: bytes) -> SegmentKeys:
        """Return the keys of the variant of a name."""
        return SegmentKeys(self._segment_root, self.tokens, self.block_tokens, self.groups, name)

    def variant_name(self, before: Sequence[int]) -> bytes:
        """Return the name of the variant that was computed behind some tokens, 32 bytes. It is no key, and is never sent."""
        return block_key(name_key(self._segment_root), _VARIANT, _raw(before))

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(self._names)

    def span(self, block: int) -> range:
        """Return the tokens of a block, counted from the segment's first one."""
        start = block * self.block_tokens
        return range(start, min(start + self.block_tokens, len(self.tokens)))

    def of_group(self, group: int) -> list[bytes]:
        """Return the keys of all blocks of a group of layers."""
        return self._keys[group]

    @property
    def all(self) -> list[bytes]:
        """The keys of all blocks, group after group."""
        return [key for of_group in self._keys for key in of_group]

    @cached_property
    def _keys(self) -> list[list[bytes]]:
        return [[group_key(self.root, name, group) for name in self._names] for group in range(self.groups)]


def is_segment_id(word: str) -> bool:
    """Return True if a word has the form of an id."""
    digits = word.removeprefix(_ID_START)
    return len(digits) == 2 * _ID_BYTES == len(word) - len(_ID_START) and set(digits) <= set("0123456789abcdef")


def _raw(tokens: Sequence[int]) -> bytes:
    return b"".join([token.to_bytes(TOKEN_BYTES) for token in tokens])
