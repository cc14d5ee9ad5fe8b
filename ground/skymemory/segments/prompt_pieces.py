"""Pieces of a prompt, as a program gives them: their tokens, and the segments among them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import torch

from skymemory.prompt.manager import KVCManager
from skymemory.prompt.prompts import Encoding, Prompt, plain_tokens, token_list, tokens_in_front
from skymemory.segments.errors import SegmentError, SilentSkyError
from skymemory.segments.host_list import Segment
from skymemory.segments.layout import SegmentId, SegmentOrTokens
from skymemory.segments.manifest import Manifest
from skymemory.segments.passages import Passage, SeenPassages
from skymemory.segments.placed_segment import PlacedSegment
from skymemory.segments.sky_segments import SkySegments

_log = logging.getLogger(__name__)

PromptPiece: TypeAlias = str | Sequence[int] | torch.Tensor | Encoding | Segment | SegmentId | SegmentOrTokens | Passage
"""Text; token ids; what a tokenizer returns; a segment, its id, or its id with its tokens; a passage, which becomes a segment
when it comes again."""

_LOOKUPS_MAX: Final = 8
"""Most passages that are looked up at once."""
_FORM: Final = "a prompt is a list of texts, token ids and segments"


@dataclass
class Unchecked:
    """Segments that were taken as this program remembers them, without asking the sky."""

    ids: set[str] = field(default_factory=set)
    """Ids of segments."""
    passages: dict[str, Sequence[int]] = field(default_factory=dict)
    """Token ids of passages by the id of their segment."""


class PromptPieces:
    """Lays out pieces of prompts for one model. Thread-safe."""

    def __init__(
        self, manager: KVCManager, segments: Callable[[], SkySegments], add: Callable[[Sequence[int], Passage], Segment]
    ) -> None:
        """Remember no passage yet.

        Args:
            manager: The manager of the model's prompts.
            segments: Returns the segments in its store.
            add: Makes the tokens of a passage a segment.
        """
        self._manager = manager
        self._segments = segments
        self._add = add
        self._passages = SeenPassages()

    def plain(self, content: Prompt) -> list[int]:
        """Return the token ids of a piece, without special tokens if it is text."""
        if isinstance(content, str):
            content = plain_tokens(content, self._manager.tokenizer)
        return token_list(content, self._manager.tokenizer, self._manager.engine.vocabulary)

    def front(self, index: int) -> list[int]:
        """Return the token ids that the tokenizer puts in front of a text that is piece `index`."""
        return tokens_in_front(self._manager.tokenizer) if index == 0 else []

    def lay_out(
        self,
        pieces: Sequence[PromptPiece],
        may_link: Callable[[], bool],
        check_length: Callable[[int], object],
        unchecked: Unchecked | None = None,
    ) -> tuple[list[int], list[PlacedSegment]]:
        """Return all token ids of a prompt, and where its segments stand.

        Args:
            pieces: The pieces, in order.
            may_link: Tells whether passages may become segments. It is not called if there are none.
            check_length: Called with the number of tokens before they are put together. It may raise.
            unchecked: Takes the segments that this program remembers. Without it the sky is asked for all.

        Raises:
            TypeError: A piece is none.
            ValueError: The model does not have a token id, or cannot be digested now.
            SegmentError: There is no token, or a segment is unknown, has expired or is of another model.
        """
        if isinstance(pieces, (str, Mapping, torch.Tensor)) or not isinstance(pieces, Sequence):
            raise TypeError(f"{_FORM}; not {type(pieces).__name__}")
        for number, piece in enumerate(pieces, 1):
            if not isinstance(piece, (str, Sequence, torch.Tensor, Mapping, Segment, SegmentId, SegmentOrTokens, Passage)):
                raise TypeError(f"{_FORM}; piece {number} is {type(piece).__name__}")
        ids = {piece.id for piece in pieces if isinstance(piece, (Segment, SegmentId))}
        manifests = self._manifests(ids, {piece.id for piece in pieces if isinstance(piece, SegmentOrTokens)}, unchecked)
        passages = self._of_passages(pieces, may_link, unchecked)
        parts: list[tuple[Sequence[int], Manifest | None]] = []
        for number, piece in enumerate(pieces):
            if isinstance(piece, Passage):
                parts.append(passages[number])
            elif isinstance(piece, (Segment, SegmentId)):
                parts.append((manifests[piece.id].tokens, manifests[piece.id]))
            elif isinstance(piece, SegmentOrTokens):
                parts.append((piece.tokens, manifests.get(piece.id)))
            else:
                parts.append(((self.front(number) if isinstance(piece, str) else []) + self.plain(piece), None))
        check_length(sum(len(own) for own, _ in parts))
        tokens: list[int] = []
        placed = []
        for own, manifest in parts:
            placed += [] if manifest is None else [PlacedSegment(len(tokens), manifest)]
            tokens += own
        if not tokens:
            raise SegmentError("the prompt has no token; it needs one or more")
        return tokens, placed

    def check(self, unchecked: Unchecked) -> None:
        """Ask the sky for segments that were taken as they are remembered. If nobody answers, they count.

        Raises:
            SegmentError: One that is no passage is unknown, has expired or is of another model.
        """
        found = self._segments().look_up({*unchecked.ids, *unchecked.passages})
        errors = {segment: error for segment, error in found.items() if isinstance(error, SegmentError)}
        for segment, error in errors.items():
            if not isinstance(error, SilentSkyError):
                if segment in unchecked.passages:
                    self._passages.forget(unchecked.passages[segment])
                if segment in unchecked.ids:
                    raise error

    def _manifests(self, ids: set[str], dispensable: set[str], unchecked: Unchecked | None) -> dict[str, Manifest]:
        """Return what the sky has of some ids, or what is remembered of all. Those that are dispensable may be missing."""
        wanted = ids | dispensable
        if not wanted:
            return {}
        known = {} if unchecked is None else self._segments().remembered(wanted)
        if unchecked is not None and len(known) == len(wanted):
            unchecked.ids |= ids
            return known
        manifests = {}
        for segment, found in self._segments().look_up(wanted).items():
            if not isinstance(found, SegmentError):
                manifests[segment] = found
            elif segment in ids:
                raise found
            else:
                _log.info("a segment is computed as text: %s", found)
        return manifests

    def _of_passages(
        self, pieces: Sequence[PromptPiece], may_link: Callable[[], bool], unchecked: Unchecked | None
    ) -> dict[int, tuple[list[int], Manifest | None]]:
        """Return the token ids of each passage by its index, and what is known of those that are segments."""
        passages = {number: piece for number, piece in enumerate(pieces) if isinstance(piece, Passage)}
        tokens = {number: self.plain(piece.content) for number, piece in passages.items()}
        distinct = {tuple(tokens[number]): piece for number, piece in passages.items()}
        if not distinct:
            return {}
        linkable = may_link()

        def seen(own: tuple[int, ...]) -> Manifest | None:
            piece = distinct[own]
            add = lambda: self._add(own, piece).id  # noqa: E731  # only handed on
            try:
                segment = self._passages.segment(own, add if linkable and own else None)
                if segment is None or not linkable:
                    return None
                known = None if unchecked is None else self._segments().remembered([segment]).get(segment)
                if unchecked is None or known is None:
                    return self._segments().get(segment)
                unchecked.passages[segment] = own
                return known
            except (SegmentError, OSError) as error:
                _log.info("a passage is computed as text: %s", error)
                if not isinstance(error, SilentSkyError):
                    self._passages.forget(own)
                return None

        with ThreadPoolExecutor(min(len(distinct), _LOOKUPS_MAX)) as pool:
            manifests = dict(zip(distinct, pool.map(seen, distinct), strict=True))
        return {number: (own, manifests[tuple(own)]) for number, own in tokens.items()}
