"""Blocks of the paged cache as a codec's integers, and back: smaller in the sky, but not exact to the last bit."""

from __future__ import annotations

import torch

from skymemory.engines.vllm.pages import Pages
from skymemory.prompt.codecs import get_codec


class CodingError(ValueError):
    """The cache has a layout that a codec cannot take; the message says why."""


class Coder:
    """Converts blocks between the bytes of `Pages` and those of a codec. Thread-safe."""

    def __init__(self, codec: str, pages: Pages, *, has_halves: bool | None = None) -> None:
        """Prepare for a layout.

        Args:
            has_halves: True if all keys of a head come before all its values, as kernels for CPUs keep them; False if those of a
                token are beside each other, as other kernels keep them. By default the device of the pages decides.

        Raises:
            CodingError: The layers differ, or are not keys and values of heads in floating point.
        """
        shapes = pages.shapes
        if len(set(shapes)) != 1 or len(shapes[0]) != 3 or not pages.element.is_floating_point or pages.element.itemsize < 2:
            raise CodingError(
                f"codec {codec} needs layers of equal shape [heads, tokens, values] in 16 or 32 bits; they are "
                f"{', '.join(map(str, dict.fromkeys(shapes)))} in {pages.dtype}"
            )
        heads, tokens, content = shapes[0]
        if content % 2:
            raise CodingError(f"codec {codec} needs keys and values of equal size; a token has {content} values")
        self.name = codec
        self._codec = get_codec(codec)
        self._dtype = pages.element
        self._raw = (len(shapes), heads, tokens, content)
        self._shape = (len(shapes), 2, heads, tokens, content // 2)
        self._has_halves = pages.device.type == "cpu" if has_halves is None else has_halves
        self.layer_bytes = self._codec.layer_bytes(self._shape, self._dtype)
        self.payload_bytes = pages.payload_bytes

    def encode(self, payload: torch.Tensor, out: torch.Tensor) -> None:
        """Write the coded bytes of a block.

        Args:
            payload: Bytes of all layers of the block.
            out: Room for `layer_bytes` of each layer.

        Raises:
            CodecError: A value is not finite, or too large.
        """
        layers, heads, tokens, content = self._raw
        values = payload.view(self._dtype)
        if self._has_halves:
            block = values.view(layers, heads, 2, tokens, content // 2).transpose(1, 2)
        else:
            block = values.view(layers, heads, tokens, 2, content // 2).permute(0, 3, 1, 2, 4)
        self._codec.encode(block.contiguous(), out.view(layers, self.layer_bytes))

    def decode(self, data: torch.Tensor) -> torch.Tensor:
        """Return the bytes of all layers of a block."""
        layers, heads, tokens, content = self._raw
        block = self._codec.decode(data.view(layers, self.layer_bytes), self._shape, self._dtype)
        values = block.transpose(1, 2) if self._has_halves else block.permute(0, 2, 3, 1, 4)
        return values.reshape(layers, heads, tokens, content).view(torch.uint8).view(-1)
