"""Plain 8- and 4-bit integers with 16-bit scales: keys per channel, values per token.

Some channels of keys are large for all tokens. A scale per (head, channel) keeps the other channels exact. Values have no such
channels, so that they have a scale per (head, token). The literature on quantised KV caches found both.
"""

import torch

from skymemory.prompt.codecs.base import Codec, CodecError, view_bytes

_SCALE = torch.float16
_AXES = (2, 3)
"""Axis of [layers, heads, tokens, head_dim] that shares a scale: tokens for keys (index 0), head_dim for values (index 1)."""


def _scale_shape(part: int, heads: int, tokens: int, dim: int) -> tuple[int, int, int]:
    return (heads, 1, dim) if part == 0 else (heads, tokens, 1)


def _to_scale(values: torch.Tensor) -> torch.Tensor:
    scales = values.to(_SCALE)
    if not bool(torch.isfinite(scales).all()):
        raise CodecError("a key or value is not finite, or too large for a 16-bit scale")
    return scales


class Int8Codec(Codec):
    """Symmetric 8-bit integers: x = q * scale, q from -127 to 127.

    The error of a value is at most scale / 2, plus 2^-11 of the largest value with that scale, because the scale is rounded to
    16 bits.
    """

    name = "int8"

    def layer_bytes(self, shape: tuple[int, ...], dtype: torch.dtype) -> int:
        _, _, heads, tokens, dim = shape
        return 2 * heads * tokens * dim + _SCALE.itemsize * heads * (dim + tokens)

    def encode(self, block: torch.Tensor, out: torch.Tensor) -> None:
        _, _, heads, tokens, dim = block.shape
        for part, axis in enumerate(_AXES):  # integers of a layer precede its scales, so that all are aligned
            values = block[:, part].float()
            scales = _to_scale(values.abs().amax(axis, keepdim=True).div_(127))
            inverse = torch.where(scales == 0, 0.0, scales.float().reciprocal())
            quantised = (values * inverse).round_().clamp_(-127, 127)
            view_bytes(out, part * heads * tokens * dim, (heads, tokens, dim), torch.int8).copy_(quantised)
            shape = _scale_shape(part, heads, tokens, dim)
            start = 2 * heads * tokens * dim + part * _SCALE.itemsize * heads * dim
            view_bytes(out, start, shape, _SCALE).copy_(scales)

    def decode(self, data: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        _, _, heads, tokens, dim = shape
        block = torch.empty(shape, dtype=dtype)
        for part in range(2):
            quantised = view_bytes(data, part * heads * tokens * dim, (heads, tokens, dim), torch.int8)
            start = 2 * heads * tokens * dim + part * _SCALE.itemsize * heads * dim
            scales = view_bytes(data, start, _scale_shape(part, heads, tokens, dim), _SCALE)
            block[:, part] = quantised * scales.float()
        return block


class Int4Codec(Codec):
    """Asymmetric 4-bit integers, two in a byte: x = low + q * scale, q from 0 to 15.

    The error of a value is at most scale / 2, plus 2^-11 of the largest value in range, because `low` and the scale are rounded
    to 16 bits.
    """

    name = "int4"

    def layer_bytes(self, shape: tuple[int, ...], dtype: torch.dtype) -> int:
        _, _, heads, tokens, dim = shape
        if dim % 2:
            raise CodecError(f"head_dim is {dim}; int4 packs two channels in a byte and needs an even number")
        return heads * tokens * dim + 2 * _SCALE.itemsize * heads * (dim + tokens)

    def encode(self, block: torch.Tensor, out: torch.Tensor) -> None:
        _, _, heads, tokens, dim = block.shape
        start = heads * tokens * dim
        for part, axis in enumerate(_AXES):
            values = block[:, part].float()
            low = _to_scale(values.amin(axis, keepdim=True))
            scales = _to_scale((values.amax(axis, keepdim=True) - low.float()).clamp_(min=0).div_(15))
            inverse = torch.where(scales == 0, 0.0, scales.float().reciprocal())
            quantised = ((values - low) * inverse).round_().clamp_(0, 15).to(torch.uint8)
            # A byte holds one channel of each half of the head. So both halves stay contiguous
            packed = quantised[..., : dim // 2] | (quantised[..., dim // 2 :] << 4)
            half = heads * tokens * dim // 2
            view_bytes(out, part * half, (heads, tokens, dim // 2), torch.uint8).copy_(packed)
            for factor in (low, scales):
                shape = _scale_shape(part, heads, tokens, dim)
                view_bytes(out, start, shape, _SCALE).copy_(factor)
                start += _SCALE.itemsize * factor[0].numel()

    def decode(self, data: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        _, _, heads, tokens, dim = shape
        block = torch.empty(shape, dtype=dtype)
        start = heads * tokens * dim
        for part in range(2):
            half = heads * tokens * dim // 2
            packed = view_bytes(data, part * half, (heads, tokens, dim // 2), torch.uint8)
            factors = []
            for _ in range(2):
                factor = view_bytes(data, start, _scale_shape(part, heads, tokens, dim), _SCALE).float()
                start += _SCALE.itemsize * factor[0].numel()
                factors.append(factor)
            quantised = torch.cat((packed & 15, packed >> 4), dim=-1)
            block[:, part] = quantised * factors[1] + factors[0]
        return block
