"""The linking of one prompt: which layers are loaded, and which rows are computed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import DynamicCache

from skymemory.segments.choice import Choice
from skymemory.segments.decoder import Decoder
from skymemory.segments.errors import CancelledLinkError
from skymemory.segments.pieces import Piece
from skymemory.segments.rows import Rows, take
from skymemory.segments.strategy import Kind, Strategy

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LinkReport:
    """Report of what was done to link a prompt.

    Attributes:
        strategy: The strategy.
        switch_layer: The switch layer; the number of layers if all rows were computed.
        rows: Number of rows that each layer computed. At the switch layer, keys and values of all others are computed, too.
        prefix_tokens: Tokens of the exact prefix that was given.
        linked_tokens: Tokens of segments whose keys and values were loaded, with those that were computed again.
        recomputed_tokens: Tokens of linked segments that were computed again: the mean over the layers from the switch layer on.
        exact_tokens: Tokens from the beginning whose keys and values are what the model computes.
        why: Reason why less was linked than wanted; "" if all was.
        waited_s: Seconds that sources took to give layers.
        total_s: Seconds of the whole call.
    """

    strategy: Strategy
    switch_layer: int
    rows: tuple[int, ...]
    prefix_tokens: int
    linked_tokens: int
    recomputed_tokens: int
    exact_tokens: int
    why: str
    waited_s: float
    total_s: float


class _LateError(Exception):
    """Signal that a layer above the switch layer did not come."""


@dataclass(frozen=True)
class _Part:
    """The part of a piece whose keys and values are loaded: positions `begin` to `end` - 1."""

    piece: Piece
    begin: int
    end: int


class Linking:
    """The linking of one prompt, or of a batch.

    Attributes:
        kept: Keys and values by layer, of all tokens but the last.
        why: Reason why less was linked than wanted; "" if all was.
    """

    def __init__(
        self,
        decoder: Decoder,
        ids: Tensor,
        pieces: Sequence[Piece],
        strategy: Strategy,
        prefix: DynamicCache | None,
        switch_layer: int,
        cancelled: Callable[[], bool],
    ) -> None:
        """Begin a cache with the prefix. The arguments are those of `Linker.link`, checked; `ids` is [batch, tokens]."""
        self._decoder = decoder
        self._cancelled = cancelled
        self._end = ids.shape[1] - 1
        self._first = 0 if prefix is None else min(prefix.get_seq_length(), self._end)
        self._ids = ids[:, self._first : self._end]
        self._strategy = strategy
        parts = [_Part(piece, max(piece.start, self._first), min(piece.end, self._end)) for piece in pieces]
        self._parts = [part for part in parts if part.begin < part.end and (part.piece.exact or strategy.kind is not Kind.EXACT)]
        # With keys and values of all rows at the last layer there is nothing left to load
        self._switch = switch_layer if self._parts and switch_layer < decoder.layers - 1 else decoder.layers
        self._row_counts: list[int] = []
        self._waited_s = 0.0
        self.why = ""
        self.kept = [decoder.layer(self._end, len(ids)) for _ in range(decoder.layers)]
        if prefix is not None and self._first:
            for layer, (keys, values, *_) in zip(self.kept, prefix, strict=True):
                layer.keys[:, :, : self._first] = keys[:, :, : self._first]
                layer.values[:, :, : self._first] = values[:, :, : self._first]

    @torch.no_grad()
    def run(self) -> None:
        """Fill all layers."""
        if self._ids.shape[1] == 0:
            return
        positions = torch.arange(self._first, self._end, device=self._decoder.device).expand(len(self._ids), -1)
        hidden = self._decoder.embed(self._ids)
        rows = self._decoder.rows(positions, hidden)
        self._turns = rows.turns
        hidden = self._compute(0, self._switch, hidden, rows)
        if self._switch < self._decoder.layers:
            try:
                self._link(hidden, rows)
            except _LateError as late:
                self.why = str(late)
                self._compute_from_switch(hidden, rows)

    def report(self, total_s: float) -> LinkReport:
        """Return what was done in so many seconds."""
        linked = sum(part.end - part.begin for part in self._parts) if self._switch < self._decoder.layers else 0
        again = [rows - (self._ids.shape[1] - linked) for rows in self._row_counts[self._switch :]]
        inexact = [part.begin for part in self._parts if linked and not part.piece.exact]
        return LinkReport(
            strategy=self._strategy,
            switch_layer=self._switch,
            rows=tuple(self._row_counts),
            prefix_tokens=self._first,
            linked_tokens=linked,
            recomputed_tokens=round(sum(again) / len(again)) if again else 0,
            exact_tokens=min(inexact, default=self._end),
            why=self.why,
            waited_s=self._waited_s,
            total_s=total_s,
        )

    def _compute(self, begin: int, end: int, hidden: Tensor, rows: Rows) -> Tensor:
        for index in range(begin, end):
            hidden = self._layer(index, hidden, rows)
        return hidden

    def _compute_from_switch(self, hidden: Tensor, rows: Rows) -> None:
        begin, self._switch = self._switch, self._decoder.layers
        del self._row_counts[begin:]
        self._compute(begin, self._decoder.layers, hidden, rows)

    def _layer(self, index: int, hidden: Tensor, rows: Rows) -> Tensor:
        if self._cancelled():
            raise CancelledLinkError
        self._row_counts.append(len(rows))
        if index == self._decoder.layers - 1:  # nobody needs what the last layer makes of hidden states
            self._decoder.project(index, hidden, rows, self.kept[index])
            return hidden
        return self._decoder.run(index, hidden, rows, self.kept[index])

    def _link(self, hidden: Tensor, rows: Rows) -> None:
        """Run the layers from the switch layer on."""
        switch, last = self._switch, self._decoder.layers - 1
        blend = self._strategy.kind is Kind.BLEND
        came = [part for part in self._parts if self._load(switch if blend else switch + 1, part)]
        if len(came) < len(self._parts):
            self.why = f"{len(self._parts) - len(came)} of {len(self._parts)} segments did not come in time"
            self._parts = came
        if not came:
            self._compute_from_switch(hidden, rows)
            return
        linked = [(part.begin - self._first, part.end - self._first, part.piece) for part in came]
        choice = Choice(self._strategy, self._ids, linked, self._first, range(switch, last))
        kept = self.kept[switch]
        kept.compare = blend
        self._decoder.project(switch, hidden, rows, kept)
        kept.compare = False
        deviation = kept.deviation
        for index in range(switch, last + 1):
            if index == switch or (blend and index < last):
                # The switch layer's keys choose the rows of two layers: those of the next one are not known before it runs
                chosen = choice.rows(index, deviation)
                rows, hidden = rows.at(chosen), take(hidden, chosen)
                deviation = None if deviation is None else take(deviation, chosen)
            if index > switch + (not blend):
                self._load_all(index)
            kept = self.kept[index]
            kept.compare = blend and index > switch
            hidden = self._layer(index, hidden, rows)
            if kept.compare:
                deviation = kept.deviation
                kept.compare = False

    def _load_all(self, index: int) -> None:
        for part in self._parts:
            if not self._load(index, part):
                raise _LateError(f"layer {index} of the segment at position {part.piece.start} did not come in time")

    def _load(self, index: int, part: _Part) -> bool:
        """Load a layer of a piece, turn its keys to their positions, and tell whether it came."""
        begin = time.monotonic()
        try:
            given = part.piece.source.layer(index)
        except Exception:  # a source that fails is no better than one that is late
            _log.warning("layer %d of a segment could not be loaded", index, exc_info=True)
            given = None
        self._waited_s += time.monotonic() - begin
        if given is None:
            return False
        kept = self.kept[index]
        batch, heads, _, channels = kept.keys.shape
        wanted = (2, batch, heads, part.piece.tokens, channels)
        pair = given[:, None] if given.dim() == 4 else given
        if tuple(pair.shape) not in {wanted, (2, 1, *wanted[2:])}:
            _log.warning("layer %d of a segment has shape %s; wanted is %s", index, tuple(pair.shape), wanted)
            return False
        keys, values = pair[..., part.begin - part.piece.start : part.end - part.piece.start, :].to(kept.keys)
        cos, sin = (turn[:, part.begin - self._first : part.end - self._first] for turn in self._turns)
        kept.keys[:, :, part.begin : part.end] = self._decoder.rotations[index].rotate(keys, cos, sin)
        kept.values[:, :, part.begin : part.end] = values
        return True
