"""4-bit integers with 16-bit scales, one for each group of neighbouring channels of a token.

The error of a value depends on the few channels of its group alone. So a channel that is large for all tokens, as some of keys
are, spoils only its own group, and a block of one token loses no more than a block of many.
"""

from typing import ClassVar

import torch

from skymemory.prompt.codecs.base import Codec, CodecError, view_bytes

_FACTOR = torch.float16
_STEPS = 15


class GroupedCodec(Codec):
    """Asymmetric 4-bit integers, two in a byte: x = low + q * scale, q from 0 to 15, where a group shares `low` and the scale.

    The error of a value is at most scale / 2, plus 2^-11 of the largest value in range, because `low` and the scale are rounded
    to 16 bits.
    """

    group: ClassVar[int]
    """Channels of a group, an even number."""

    def layer_bytes(self, shape: tuple[int, ...], dtype: torch.dtype) -> int:
        _, two, heads, tokens, dim = shape
        if dim % self.group:
            raise CodecError(f"head_dim is {dim}; {self.name} needs a multiple of {self.group}")
        values = two * heads * tokens * dim
        return values // 2 + 2 * _FACTOR.itemsize * values // self.group

    def encode(self, block: torch.Tensor, out: torch.Tensor) -> None:
        half = block.shape[-1] // 2
        # A layer at a time, because its values stay in the processor's caches
        for layer, packed, low, scale in zip(block, *self._parts(out, tuple(block.shape)), strict=True):
            values = self._grouped(layer.float())
            low.copy_(values.amin(-1, keepdim=True))
            scale.copy_((values.amax(-1, keepdim=True) - low).clamp_(min=0).div_(_STEPS))
            if not bool(torch.isfinite(low).all() and torch.isfinite(scale).all()):
                raise CodecError("a key or value is not finite, or too large for a 16-bit scale")
            inverse = torch.where(scale == 0, 0.0, scale.float().reciprocal())
            integers = (values - low).mul_(inverse).round_().clamp_(0, _STEPS).to(torch.uint8).flatten(-2)
            # A byte holds one channel of each half of the head. So both halves stay contiguous
            torch.bitwise_or(integers[..., :half], integers[..., half:] << 4, out=packed)

    def decode(self, data: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        block = torch.empty(shape, dtype=dtype)
        for layer, packed, low, scale in zip(block, *self._parts(data, shape), strict=True):
            values = self._grouped(torch.cat((packed & 15, packed >> 4), dim=-1)) * scale.float()
            self._grouped(layer).copy_(values.add_(low.float()))
        return block

    def _grouped(self, values: torch.Tensor) -> torch.Tensor:
        """Return a view of contiguous values [..., head_dim] as [..., groups, channels of a group]."""
        return values.view(*values.shape[:-1], -1, self.group)

    def _parts(self, data: torch.Tensor, shape: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return views of the packed integers, the lowest values and the scales, which follow each other in a layer."""
        _, two, heads, tokens, dim = shape
        integer_bytes = two * heads * tokens * dim // 2
        factors = (two, heads, tokens, dim // self.group, 1)
        factor_bytes = 2 * integer_bytes // self.group * _FACTOR.itemsize
        return (
            view_bytes(data, 0, (two, heads, tokens, dim // 2), torch.uint8),
            view_bytes(data, integer_bytes, factors, _FACTOR),
            view_bytes(data, integer_bytes + factor_bytes, factors, _FACTOR),
        )


class Int4Group16Codec(GroupedCodec):
    """Groups of 16 channels: 6 bits a value."""

    name = "int4g16"
    group = 16


class Int4Group32Codec(GroupedCodec):
    """Groups of 32 channels: 5 bits a value."""

    name = "int4g32"
    group = 32
