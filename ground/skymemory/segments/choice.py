"""The choice of the rows of linked segments that are computed again."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor

from skymemory.segments.pieces import Piece
from skymemory.segments.rows import take
from skymemory.segments.strategy import Kind, Strategy

_COMPUTED, _OPEN, _LOADED = range(3)
_LARGEST: Final = torch.finfo(torch.float32).max


class Choice:
    """The choice for one prompt, or for a batch whose pieces stand at the same places.

    A row is either always computed (text, beginnings of segments), or open, or always loaded.
    """

    def __init__(
        self, strategy: Strategy, tokens: Tensor, linked: Sequence[tuple[int, int, Piece]], first: int, layers: range
    ) -> None:
        """Sort the rows.

        Args:
            strategy: The strategy.
            tokens: Token ids of all rows, [batch, rows].
            linked: Linked pieces, each with the first and last row (exclusive) that it gives, counted from 0.
            first: Position of row 0.
            layers: Layers that compute more than keys and values of chosen rows; the first is the switch layer.
        """
        self._strategy = strategy
        self._layers = layers
        self._tokens = tokens
        roles = torch.full((1, tokens.shape[1]), _COMPUTED)
        for begin, end, piece in linked:
            ranked = strategy.kind in {Kind.BLEND, Kind.RANDOM} and not piece.exact
            roles[:, begin:end] = _OPEN if ranked else _LOADED
            if strategy.kind is Kind.LEGO and piece.segment_start > 0:
                roles[:, begin : max(begin, min(end, piece.segment_start + strategy.amount - first))] = _COMPUTED
        self._computed = int((roles == _COMPUTED).sum())
        self._open = int((roles == _OPEN).sum())
        self._roles = roles.to(tokens.device).expand(len(tokens), -1)

    def rows(self, layer: int, deviation: Tensor | None) -> Tensor:
        """Return which of the rows that are left go on at a layer: ascending numbers [batch, chosen].

        Args:
            layer: Number of the layer.
            deviation: Deviation of the keys of these rows; None unless the strategy is a blend.
        """
        share = 0.0
        if deviation is None:
            deviation = torch.zeros(self._roles.shape)
        if self._strategy.kind is Kind.RANDOM:
            deviation, share = self._drawn(), self._strategy.amount / 100
        elif self._strategy.kind is Kind.BLEND:
            share = self._strategy.share(layer, self._layers.start, self._layers.stop - 1)
        chosen = self._computed + round(share * self._open)
        # A row of garbage deviates most, but text comes first
        scores = deviation.to(self._roles.device).nan_to_num(_LARGEST, _LARGEST)
        scores = scores.masked_fill(self._roles == _COMPUTED, torch.inf).masked_fill(self._roles == _LOADED, -torch.inf)
        indices = scores.topk(chosen, 1).indices.sort(1).values
        self._roles = take(self._roles, indices)
        return indices

    def _drawn(self) -> Tensor:
        """Return random numbers for all rows; the same prompt gets the same ones, also in a batch."""
        seeds = [zlib.crc32(row.tobytes()) for row in self._tokens.cpu().numpy()]
        return torch.stack([torch.rand(self._tokens.shape[1], generator=torch.Generator().manual_seed(seed)) for seed in seeds])
