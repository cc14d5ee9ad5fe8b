"""8-bit integers by optimum-quanto, through its tensor functions.

This module does without quanto's cache classes, which requantise the whole cache each time their residual fills (design, "Traps
already found").
"""

import torch

from skymemory.common.extras import how_to_install
from skymemory.prompt.codecs.base import Codec, CodecError, view_bytes
from skymemory.prompt.codecs.rows import block_of, layer_bytes, row_counts, rows_of

try:
    from optimum.quanto import AbsmaxOptimizer, WeightQBytesTensor, qint8, quantize_weight
except ImportError as error:
    raise ImportError("codec 'quanto': " + how_to_install("optimum-quanto", "model")) from error

_SCALE = torch.float32


class QuantoCodec(Codec):
    """Symmetric `qint8` with absmax scales: per channel for keys, per token for values. A value's error is at most scale / 2."""

    name = "quanto"

    def layer_bytes(self, shape: tuple[int, ...], dtype: torch.dtype) -> int:
        return layer_bytes(self.name, shape, 1, _SCALE)

    def encode(self, block: torch.Tensor, out: torch.Tensor) -> None:
        integers, scales = self._parts(out, tuple(block.shape))
        optimizer = AbsmaxOptimizer()
        for part in range(2):
            rows = rows_of(block, part)
            scale = optimizer(rows, qint8, axis=0)
            if not bool(torch.isfinite(scale).all()):
                raise CodecError("a key or value is not finite")
            scale = torch.where(scale == 0, 1.0, scale)  # quanto divides by the scale, which is 0 for a row of zeros
            names, _ = (quantised := quantize_weight(rows, qint8, 0, scale, optimized=False)).__tensor_flatten__()
            data, factor = (getattr(quantised, name) for name in names)
            integers[part].copy_(data.view_as(integers[part]))
            scales[part].copy_(factor.view_as(scales[part]))

    def decode(self, data: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        integers, scales = self._parts(data, shape)
        parts = []
        for quantised, scale in zip(integers, scales, strict=True):
            rows = quantised.reshape(-1, quantised.shape[-1])
            tensor = WeightQBytesTensor(qint8, 0, rows.size(), rows.stride(), rows, scale.reshape(-1, 1), None)
            parts.append(tensor.dequantize())
        return block_of(parts[0], parts[1], shape, dtype)

    def _parts(self, data: torch.Tensor, shape: tuple[int, ...]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Return views of integers and of scales, of keys and of values each. In a layer all integers precede all scales."""
        _, _, heads, tokens, dim = shape
        values = heads * tokens * dim
        key_rows, value_rows = row_counts(shape)
        integers = [
            view_bytes(data, 0, (key_rows, tokens), torch.int8),
            view_bytes(data, values, (value_rows, dim), torch.int8),
        ]
        scales = [
            view_bytes(data, 2 * values, (key_rows, 1), _SCALE),
            view_bytes(data, 2 * values + _SCALE.itemsize * key_rows, (value_rows, 1), _SCALE),
        ]
        return integers, scales
