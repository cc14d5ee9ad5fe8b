"""Layout of a prompt: its tokens, and where segments stand in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skymemory.segments.pieces import check_pieces
from skymemory.segments.placed_segment import PlacedSegment, with_variants
from skymemory.segments.strategy import Kind, Strategy


@dataclass(frozen=True, slots=True)
class SegmentId:
    """A segment of which only the id is at hand."""

    id: str


@dataclass(frozen=True, slots=True)
class SegmentOrTokens:
    """A segment whose tokens are at hand. If it cannot be looked up, they stand in the prompt instead."""

    id: str
    tokens: Sequence[int]


@dataclass(frozen=True)
class LaidOut:
    """A prompt that was put together from pieces, before anything of it is computed.

    Attributes:
        tokens: Token ids of the whole prompt.
        placed: Its segments, in order.
        lossless: True if the codec gives back each bit.
    """

    tokens: list[int]
    placed: tuple[PlacedSegment, ...]
    lossless: bool

    def used(self, wanted: Strategy) -> list[PlacedSegment]:
        """Return what a strategy uses of the segments."""
        return list(with_variants(self.placed, wanted))

    def check(self, wanted: Strategy) -> None:
        """Raise ValueError if a segment does not go with a strategy."""
        if wanted.kind is not Kind.AUTO:
            check_pieces([one.piece(self.lossless) for one in self.used(wanted)], len(self.tokens), wanted)
