"""Rows: the positions of a prompt that a layer computes."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor


def take(values: Tensor, indices: Tensor) -> Tensor:
    """Return values at indices along the second dimension.

    Args:
        values: Tensor [1 or batch, rows, ...].
        indices: Indices of rows, [batch, wanted].
    """
    if len(indices) == 1:
        return values.index_select(1, indices[0])
    wide = indices.view(*indices.shape, *[1] * (values.dim() - 2)).expand(-1, -1, *values.shape[2:])
    return values.expand(len(indices), *values.shape[1:]).gather(1, wide)


def row_mask(positions: Tensor, visible: int, dtype: torch.dtype) -> Tensor:
    """Return the additive mask that lets each row see all positions up to its own, [batch, 1, rows, visible].

    A mask of booleans would be wrong for eager attention, which adds it.

    Args:
        positions: Positions of the rows, [batch, rows].
        visible: Number of positions, counted from 0.
        dtype: Floating-point type of the model.
    """
    hidden = torch.arange(visible, device=positions.device) > positions[:, None, :, None]
    return torch.zeros(hidden.shape, dtype=dtype, device=positions.device).masked_fill_(hidden, torch.finfo(dtype).min)


class Rows:
    """Rows of one prompt, or of a batch of prompts that have as many.

    Attributes:
        positions: Positions in ascending order, [batch, rows].
        turns: The model's cos and sin of the positions, each [1 or batch, rows, channels].
    """

    def __init__(self, positions: Tensor, turns: tuple[Tensor, Tensor]) -> None:
        self.positions = positions
        self.turns = turns
        self._mask: Tensor | None = None

    def __len__(self) -> int:
        return self.positions.shape[1]

    def at(self, indices: Tensor) -> Rows:
        """Return some of these rows, by ascending indices [batch, wanted]."""
        cos, sin = self.turns
        return Rows(take(self.positions, indices), (take(cos, indices), take(sin, indices)))

    def parts(self, most: int) -> Iterator[slice]:
        """Yield slices of at most so many rows."""
        for begin in range(0, len(self), most):
            yield slice(begin, min(begin + most, len(self)))

    def visible(self, part: slice) -> int:
        """Return how many positions the rows of a part see at most."""
        return int(self.positions[:, part.stop - 1].max()) + 1

    def mask(self, part: slice, visible: int, dtype: torch.dtype) -> Tensor:
        """Return the mask of a part. That of all rows is kept for the next layer."""
        if part.stop - part.start < len(self):
            return row_mask(self.positions[:, part], visible, dtype)
        if self._mask is None:
            self._mask = row_mask(self.positions, visible, dtype)
        return self._mask
