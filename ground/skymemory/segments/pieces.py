"""Pieces of a prompt that are segments, and where their keys and values come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from torch import Tensor

from skymemory.segments.strategy import Kind, Strategy

SINKS: Final = 4
"""Tokens BOS before a segment that is computed for LegoLink-0 (EPIC, section 4.4)."""


class LayerSource(Protocol):
    """Keys and values of one segment, layer by layer."""

    def layer(self, index: int) -> Tensor | None:
        """Return keys before rotation, and values, of a layer from 1 on: [2, kv_heads, tokens, head_dim].

        The call may wait for them. None means that they did not come. Layers are asked for in ascending order, not all of them.
        """


class TensorSource:
    """A segment's keys and values that are in memory."""

    def __init__(self, tensor: Tensor) -> None:
        """Take a tensor as `Linker.compute` returns it."""
        self._tensor = tensor

    def layer(self, index: int) -> Tensor | None:
        return self._tensor[index - 1]


@dataclass(frozen=True)
class Piece:
    """A segment in a prompt, or a run of its tokens.

    Attributes:
        start: Position of its first token.
        tokens: Number of its tokens.
        source: Its keys and values.
        sinks: Number of sinks before which the segment was computed.
        lossless: Its keys and values are those that the model computed, bit by bit.
        first: Number of the segment's tokens before it.
        alone: False if its keys and values were computed behind other tokens, as those of an answer and of a variant.
    """

    start: int
    tokens: int
    source: LayerSource
    sinks: int = 0
    lossless: bool = True
    first: int = 0
    alone: bool = True

    @property
    def end(self) -> int:
        """Position behind its last token."""
        return self.start + self.tokens

    @property
    def segment_start(self) -> int:
        """Position of the segment's first token."""
        return self.start - self.first

    @property
    def exact(self) -> bool:
        """True if the segment stands where it was computed. Keys that were un-rotated are never exact, because that rounds."""
        return self.segment_start == 0 and self.sinks == 0 and self.lossless and self.alone


def check_pieces(pieces: Sequence[Piece], tokens: int, strategy: Strategy) -> None:
    """Check pieces of a prompt of so many tokens.

    Raises:
        ValueError: They overlap or do not lie in the prompt, or do not go with the strategy.
    """
    if strategy.kind is Kind.AUTO:
        raise ValueError("the strategy auto is to be chosen before segments are linked")
    behind = 0
    for piece in pieces:
        if piece.tokens < 1 or piece.segment_start < 0 or not behind <= piece.start <= piece.end <= tokens:
            raise ValueError(
                f"a segment at positions {piece.start} to {piece.end - 1} does not lie behind the one before (position {behind}) "
                f"and in the prompt of {tokens} tokens"
            )
        behind = piece.end
        if strategy.kind is Kind.LEGO0 and not piece.exact and piece.sinks != SINKS:
            raise ValueError(
                f"the segment at position {piece.start} was computed behind {piece.sinks} sinks; lego0 needs segments that were "
                f"computed behind {SINKS}"
            )
