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
from skymemory.segments.linked_layer import LinkedLayer
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
        ahead_layers: Number of first layers of which all rows were computed before the prefix and the segments were given.
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
    ahead_layers: int
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

    Its first layers may be computed before it is known what can be loaded: all rows, as a full prefill computes them.

    Attributes:
        tokens: Token ids, [batch, tokens].
        cancelled: Tells, before each layer, whether nobody waits for the cache any more.
        kept: Keys and values by layer, of all tokens but the last.
        ahead_layers: Number of first layers that were computed ahead.
        ahead_s: Seconds that this took.
        why: Reason why less was linked than wanted; "" if all was.
    """

    def __init__(self, decoder: Decoder, tokens: Tensor, cancelled: Callable[[], bool]) -> None:
        """Begin with nothing but tokens that the model has.

        Args:
            decoder: The model's layers.
            tokens: Token ids, [batch, tokens].
            cancelled: Tells, before each layer, whether nobody waits for the cache any more.
        """
        self._decoder = decoder
        self.cancelled = cancelled
        self.tokens = tokens
        self._first, self._end = 0, tokens.shape[1] - 1
        self._ids = tokens[:, : self._end]
        self._hidden: Tensor | None = None
        self._row_counts: list[int] = []
        self._waited_s = 0.0
        self._projected: LinkedLayer | None = None
        self.ahead_layers = 0
        self.ahead_s = 0.0
        self.why = ""
        self.kept = [decoder.layer(self._end, len(tokens)) for _ in range(decoder.layers)]

    @property
    def is_complete(self) -> bool:
        """True if all layers were computed ahead."""
        return self.ahead_layers == self._decoder.layers

    @torch.no_grad()
    def compute_ahead(self, end: int, enough: Callable[[], bool]) -> None:
        """Compute all rows of the layers below `end`, until `enough` tells before one of them that no more is wanted.

        Raises:
            CancelledLinkError: Nobody waits for the cache any more.
        """
        if self._end == 0 or self.ahead_layers >= end or enough():
            return
        begin_s = time.monotonic()
        self._projected = None
        hidden, rows = self._rows()
        while self.ahead_layers < end and not enough():
            hidden = self._layer(self.ahead_layers, hidden, rows)
            self._decoder.await_device()
            self.ahead_layers += 1
        self._hidden = hidden
        self.ahead_s += time.monotonic() - begin_s

    @torch.no_grad()
    def fork(self, again: int = 0) -> Linking:
        """Return a linking that goes on from the layers computed ahead. Neither changes the other.

        Keys and values of the first layer that was not computed ahead are computed once for all forks.

        Args:
            again: Number of first prompts that it has once more, behind all of them.
        """
        chosen = torch.tensor([*range(len(self.tokens)), *range(again)], device=self.tokens.device)
        fork = Linking(self._decoder, self.tokens[chosen], self.cancelled)
        for layer, computed in list(zip(fork.kept, self.kept, strict=True))[: self.ahead_layers]:
            layer.keys, layer.values = computed.keys[chosen], computed.values[chosen]
        fork._hidden = None if self._hidden is None else self._hidden[chosen]
        fork._row_counts = list(self._row_counts)
        fork.ahead_layers, fork.ahead_s = self.ahead_layers, self.ahead_s
        if not self.is_complete and self._end > 0:
            if self._projected is None:
                self._projected = self._decoder.layer(self._end, len(self.tokens))
                self._decoder.project(self.ahead_layers, *self._rows(), self._projected)
            fork._projected = LinkedLayer(self._projected.keys[chosen], self._projected.values[chosen])
        return fork

    @torch.no_grad()
    def run(self, pieces: Sequence[Piece], strategy: Strategy, prefix: DynamicCache | None, switch_layer: int) -> None:
        """Fill all layers that were not computed ahead. The arguments are those of `Linker.link`, checked."""
        self._strategy = strategy
        self._take(prefix)
        parts = [_Part(piece, max(piece.start, self._first), min(piece.end, self._end)) for piece in pieces]
        self._parts = [part for part in parts if part.begin < part.end and (part.piece.exact or strategy.kind is not Kind.EXACT)]
        # With keys and values of all rows at the last layer there is nothing left to load
        last = self._decoder.layers - 1
        self._switch = switch_layer if self._parts and switch_layer < last else self._decoder.layers
        if self._ids.shape[1] == 0:
            return
        hidden, rows = self._rows()
        self._turns = rows.turns
        hidden = self._compute(self.ahead_layers, self._switch, hidden, rows)
        if self._switch < self._decoder.layers:
            try:
                self._link(hidden, rows)
            except _LateError as late:
                self.why = str(late)
                self._compute_from_switch(hidden, rows)

    def _take(self, prefix: DynamicCache | None) -> None:
        """Take the prefix, above the layers that have been computed, and go on with the rows behind it."""
        first = 0 if prefix is None or self.is_complete else min(prefix.get_seq_length(), self._end)
        if prefix is None or first == 0:
            return
        for layer, (keys, values, *_) in list(zip(self.kept, prefix, strict=True))[self.ahead_layers :]:
            layer.keys[:, :, :first] = keys[:, :, :first]
            layer.values[:, :, :first] = values[:, :, :first]
        self._first, self._projected = first, None
        self._ids = self._ids[:, first:]
        self._hidden = None if self._hidden is None else self._hidden[:, first:]

    def _rows(self) -> tuple[Tensor, Rows]:
        """Return what the next layer gets, and the rows of it."""
        positions = torch.arange(self._first, self._end, device=self._decoder.device).expand(len(self._ids), -1)
        hidden = self._decoder.embed(self._ids) if self._hidden is None else self._hidden
        return hidden, self._decoder.rows(positions, hidden)

    def report(self, total_s: float) -> LinkReport:
        """Return what was done in so many seconds."""
        linked = sum(part.end - part.begin for part in self._parts) if self._switch < self._decoder.layers else 0
        again = [rows - (self._ids.shape[1] - linked) for rows in self._row_counts[self._switch :]]
        inexact = [part.begin for part in self._parts if linked and not part.piece.exact]
        return LinkReport(
            strategy=self._strategy,
            switch_layer=self._switch,
            ahead_layers=self.ahead_layers,
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
        if self.cancelled():
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
        if self._projected is not None and switch == self.ahead_layers:
            kept.rows = rows.positions
            kept.update(self._projected.keys, self._projected.values)
        else:
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
