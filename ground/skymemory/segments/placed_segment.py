"""Segments at their places in a prompt, and which variant of each is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from skymemory.segments.manifest import Manifest
from skymemory.segments.pieces import Piece
from skymemory.segments.segment_fetch import SegmentPart
from skymemory.segments.strategy import Kind, Strategy
from skymemory.segments.variants import best_variant


class _Nothing:
    def layer(self, index: int) -> None:
        """Have no layer."""


_NOTHING: Final = _Nothing()


@dataclass(frozen=True)
class PlacedSegment:
    """A segment at a place in a prompt.

    Attributes:
        start: Position of its first token.
        manifest: The segment.
        variant: Name of the variant that is used; empty for what was computed alone.
    """

    start: int
    manifest: Manifest
    variant: bytes = b""

    @property
    def id(self) -> str:
        """Its id."""
        return self.manifest.id

    @property
    def end(self) -> int:
        """Position behind its last token."""
        return self.start + len(self.manifest.tokens)

    def part(self, part: SegmentPart, lossless: bool) -> Piece:
        """Return a part of it that the sky has."""
        sinks = self.manifest.sinks
        return Piece(self.start + part.first, part.tokens, part, sinks, lossless, part.first, not self.variant)

    def piece(self, lossless: bool) -> Piece:
        """Return all of the segment as one piece without a source, to see whether it fits."""
        tokens, sinks = len(self.manifest.tokens), self.manifest.sinks
        return Piece(self.start, tokens, _NOTHING, sinks, lossless, alone=not self.variant)


def with_variants(placed: Sequence[PlacedSegment], wanted: Strategy) -> Iterator[PlacedSegment]:
    """Yield segments with the variant that is used of each. One of which there is nothing to use is left to be computed."""
    before: list[str] = []
    for one in placed:
        if wanted.kind in {Kind.EXACT, Kind.AUTO}:  # nothing was measured of variants
            if one.manifest.is_alone:
                yield one
        else:
            yield replace(one, variant=best_variant(one.manifest, before))
        before.append(one.id)
