"""8-bit integers by HQQ (half-quadratic quantisation), through its tensor functions.

This module does without HQQ's cache classes, which call CUDA and requantise the whole cache. The solver (`optimize`) is off: it
would take most of the time, and at 8 bits it changes no token measurably (design, "Traps already found").
"""

import torch

from skymemory.common.extras import how_to_install
from skymemory.prompt.codecs.base import Codec, CodecError, view_bytes
from skymemory.prompt.codecs.rows import block_of, layer_bytes, row_counts, rows_of

try:
    from hqq.core.quantize import Quantizer
except ImportError as error:
    raise ImportError("codec 'hqq': " + how_to_install("hqq", "model")) from error

_BITS = 8
_FACTOR = torch.float32


class HqqCodec(Codec):
    """Asymmetric 8-bit integers: x = (q - zero) * scale with q from 0 to 255. Keys have a scale per channel, values per token.

    The error of a value is at most scale / 2, or 1e-4 where a row's range is so small that HQQ does not divide by it.
    """

    name = "hqq"

    def layer_bytes(self, shape: tuple[int, ...], dtype: torch.dtype) -> int:
        return layer_bytes(self.name, shape, 2, _FACTOR)

    def encode(self, block: torch.Tensor, out: torch.Tensor) -> None:
        for part, (integers, scales, zeros) in enumerate(self._parts(out, tuple(block.shape))):
            rows = rows_of(block, part)
            if not bool(torch.isfinite(rows).all()):
                raise CodecError("a key or value is not finite")
            quantised, meta = Quantizer.quantize(
                rows, nbits=_BITS, group_size=rows.shape[1], axis=1, optimize=False, compute_dtype=_FACTOR, device="cpu"
            )
            integers.copy_(quantised.view_as(integers))
            scales.copy_(meta["scale"].view_as(scales))
            zeros.copy_(meta["zero"].view_as(zeros))

    def decode(self, data: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        parts = []
        for integers, scales, zeros in self._parts(data, shape):
            quantised = integers.reshape(-1, integers.shape[-1])
            meta = {
                "nbits": _BITS,
                "group_size": quantised.shape[1],
                "shape": quantised.shape,
                "scale": scales.reshape(-1, 1),
                "zero": zeros.reshape(-1, 1),
                "axis": 1,
                "packing": Quantizer.bit_to_packing[_BITS],
                "unpack_view_dtype": torch.uint8,
                "view_as_float": False,
                "compute_dtype": _FACTOR,
            }
            parts.append(Quantizer.dequantize(quantised, meta))
        return block_of(parts[0], parts[1], shape, dtype)

    def _parts(self, data: torch.Tensor, shape: tuple[int, ...]) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        """Return views of integers, scales and zeros, of keys and of values. In a layer all integers precede all factors."""
        _, _, heads, tokens, dim = shape
        values = heads * tokens * dim
        parts = []
        factors_at = 2 * values
        for part, (rows, row) in enumerate(zip(row_counts(shape), (tokens, dim), strict=True)):
            scales_at, zeros_at = factors_at, factors_at + _FACTOR.itemsize * rows
            factors_at = zeros_at + _FACTOR.itemsize * rows
            parts.append(
                (
                    view_bytes(data, part * values, (rows, row), torch.uint8),
                    view_bytes(data, scales_at, (rows, 1), _FACTOR),
                    view_bytes(data, zeros_at, (rows, 1), _FACTOR),
                )
            )
        return parts
