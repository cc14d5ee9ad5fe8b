"""Rotary embedding of keys, outside the model: to a position and back.

Models differ in which channels form a pair (channel i and i + half, or neighbours), in how cos and sin are laid out, in how many
channels turn, and in whether they compute in float32. `find_rotation` finds the form whose results are those of the model. Cos
and sin are always the model's own, so scales (YaRN) and frequencies (llama3) need no case of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Rotation:
    """One form of the rotary embedding.

    Attributes:
        turns: False if the layer leaves keys as they are.
        neighbours: Neighbouring channels are a pair, and not channel i and i + half.
        repeated: Only the first half of the columns of cos and sin counts, repeated as the pairs are.
        in_float32: Keys are turned in float32, and not in their own dtype.
    """

    turns: bool = True
    neighbours: bool = False
    repeated: bool = False
    in_float32: bool = False

    def rotate(self, keys: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Return keys turned to their positions.

        Args:
            keys: Keys before rotation, [batch, kv_heads, tokens, head_dim].
            cos: The model's own cos of the positions, [1 or batch, tokens, channels].
            sin: The model's own sin of the positions, like `cos`.
        """
        if not self.turns:
            return keys
        cos, sin = self._columns(cos), self._columns(sin)
        turning, rest = keys[..., : cos.shape[-1]], keys[..., cos.shape[-1] :]
        if self.in_float32:
            turning = turning.float()
        turned = (turning * cos + self._partners(turning) * sin).to(keys.dtype)
        return torch.cat((turned, rest), -1) if rest.shape[-1] else turned

    def unrotate(self, keys: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Return keys as they were before rotation, computed in float32.

        Rounding makes them differ a little from keys that are caught before they are turned. The arguments are those of `rotate`.
        """
        if not self.turns:
            return keys
        cos, sin = self._columns(cos).float(), self._columns(sin).float()
        turned, rest = keys[..., : cos.shape[-1]].float(), keys[..., cos.shape[-1] :]
        # Scales, such as YaRN's, are in both cos and sin
        turning = ((turned * cos - self._partners(turned) * sin) / (cos * cos + sin * sin)).to(keys.dtype)
        return torch.cat((turning, rest), -1) if rest.shape[-1] else turning

    def _columns(self, values: Tensor) -> Tensor:
        values = values[:, None]  # the same for all heads
        if not self.repeated:
            return values
        first = values[..., : values.shape[-1] // 2]
        return first.repeat_interleave(2, -1) if self.neighbours else torch.cat((first, first), -1)

    def _partners(self, keys: Tensor) -> Tensor:
        if self.neighbours:
            return torch.stack((-keys[..., 1::2], keys[..., ::2]), -1).flatten(-2)
        half = keys.shape[-1] // 2
        return torch.cat((-keys[..., half:], keys[..., :half]), -1)


def find_rotation(before: Tensor, after: Tensor, cos: Tensor, sin: Tensor) -> tuple[Rotation, float]:
    """Find the form that turns keys as a layer of the model does.

    Args:
        before: Keys before rotation, [batch, kv_heads, tokens, head_dim].
        after: The same keys as the model turned them. Positions 0 tell nothing.
        cos: The model's cos of the positions, [1 or batch, tokens, channels].
        sin: The model's sin of the positions, like `cos`.

    Returns:
        The form that comes nearest, and its largest error.
    """
    errors = [
        (float((form.rotate(before, cos, sin).float() - after.float()).abs().max()), index, form)
        for index, form in enumerate(_forms(before.shape[-1], cos.shape[-1]))
    ]
    error, _, found = min(errors)
    return found, error


def _forms(head_dim: int, columns: int) -> Iterator[Rotation]:
    yield Rotation(turns=False)
    if columns > head_dim or columns % 2:
        return
    for in_float32 in (False, True):
        for neighbours in (False, True):
            for repeated in (False, True):
                yield Rotation(neighbours=neighbours, repeated=repeated, in_float32=in_float32)
