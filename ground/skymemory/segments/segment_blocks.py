"""Blocks of segments as bytes: a slice of tokens and layers each, as `skymemory.prompt.blocks` packs it.

The keys in them are those before the rotary embedding, so a block has no position but that in its segment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skymemory.prompt.blocks import block_bytes_max, dtype_name, pack_block, unpack_block
from skymemory.segments.keys import SegmentKeys
from skymemory.wire.envelope import BlockError, Kind
from skymemory.wire.key_derivation import seal_keys

if TYPE_CHECKING:
    import torch

    from skymemory.prompt.codecs import Codec
    from skymemory.prompt.huggingface import Geometry


class SegmentCoder:
    """Packs and opens blocks of one segment."""

    def __init__(self, keys: SegmentKeys, geometry: Geometry, groups: Sequence[range], codec: Codec) -> None:
        """Prepare.

        Args:
            keys: Keys of the segment.
            geometry: Geometry of the model.
            groups: The layers of each group.
            codec: The codec that encodes the tensors.
        """
        self._keys = keys
        self._seals = seal_keys(keys.root)
        self._geometry = geometry
        self._groups = groups
        self._codec = codec

    def bytes_max(self, group: int) -> int:
        """Return an upper bound for the bytes of a block of a group.

        Raises:
            CodecError: The codec cannot take the model's tensors.
        """
        return block_bytes_max(self._shape(group, len(self._keys.span(0))), self._geometry.dtype, self._codec)

    def pack(self, tensors: torch.Tensor, block: int, group: int) -> bytearray:
        """Return the bytes of a block.

        Args:
            tensors: The segment's tensor [layers - 1, 2, kv_heads, tokens, head_dim] of layers 1 and up, on the CPU.
            block: Index of the block, from 0.
            group: Group of layers, from 0.

        Raises:
            CodecError: The codec cannot take the tensors.
        """
        span, layers = self._keys.span(block), self._groups[group]
        return pack_block(
            tensors[layers.start - 1 : layers.stop - 1, :, :, span.start : span.stop].contiguous(),
            key=self._keys.of_group(group)[block],
            keys=self._seals,
            codec=self._codec,
            block_index=block,
            first_position=span.start,
            kind=Kind.SEGMENT,
        )

    def unpack(self, data: bytearray, block: int, group: int) -> torch.Tensor:
        """Open a block in place, once.

        Returns:
            A CPU tensor [layers of the group, 2, kv_heads, tokens of the block, head_dim].

        Raises:
            BlockError: The bytes are not this block.
        """
        span = self._keys.span(block)
        key = self._keys.of_group(group)[block]
        header, tensors = unpack_block(data, key=key, keys=self._seals, codec=self._codec, kind=Kind.SEGMENT)
        found = (header.shape, header.dtype, header.block_index, header.first_position, header.rope)
        wanted = (self._shape(group, len(span)), dtype_name(self._geometry.dtype), block, span.start, None)
        if found != wanted:
            raise BlockError(f"shape, dtype, index, position and rotation of the block are {found}; wanted are {wanted}")
        return tensors

    def _shape(self, group: int, tokens: int) -> tuple[int, int, int, int, int]:
        geometry = self._geometry
        return len(self._groups[group]), 2, geometry.kv_heads, tokens, geometry.head_dim
