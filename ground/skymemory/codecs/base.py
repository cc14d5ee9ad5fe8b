"""The interface of the codecs, and how one is found by its name.

A block's tensors are one tensor of shape [layers, 2, kv_heads, tokens, head_dim]; on the second axis keys come first,
then values. The bytes are layer-major: the bytes of a layer are one run, layers follow each other, and each takes
`layer_bytes`. So the first layers of a block can be decoded before the last ones have arrived.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import torch

_CODECS = {
    "raw": ("skymemory.codecs.raw", "RawCodec"),
    "int8": ("skymemory.codecs.integer", "Int8Codec"),
    "int4": ("skymemory.codecs.integer", "Int4Codec"),
    "quanto": ("skymemory.codecs.quanto", "QuantoCodec"),
    "hqq": ("skymemory.codecs.hqq", "HqqCodec"),
}


class CodecError(ValueError):
    """The tensors or the bytes cannot be coded: wrong shape or size, or a value that is not finite. The block is a
    miss."""


class Codec(ABC):
    """Tensors of a block to bytes and back. Codecs have no state: one may be used from several threads."""

    name: ClassVar[str]
    """as in the block's header, in `constellation.toml` and on the command line; part of every key"""

    @abstractmethod
    def layer_bytes(self, shape: tuple[int, ...], dtype: torch.dtype) -> int:
        """Bytes of one layer of a block of `shape` [layers, 2, kv_heads, tokens, head_dim] and `dtype`.

        Raises:
            CodecError: the codec cannot take this shape or dtype; the message says why.
        """

    @abstractmethod
    def encode(self, block: torch.Tensor, out: torch.Tensor) -> None:
        """Write the bytes of a block.

        Args:
            block: contiguous CPU tensor [layers, 2, kv_heads, tokens, head_dim], floating point.
            out: uint8 CPU tensor [layers, layer_bytes], contiguous, aligned for every dtype.

        Raises:
            CodecError: a value is not finite, or too large for the codec's scales.
        """

    @abstractmethod
    def decode(self, data: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """The tensors of a block, or of its first layers.

        Args:
            data: uint8 CPU tensor [layers, layer_bytes], contiguous, aligned for every dtype.
            shape: [layers, 2, kv_heads, tokens, head_dim], with the layers of `data`.
            dtype: of the tensor that was encoded.

        Returns:
            Tensor of `shape` and `dtype`; may share memory with `data`.
        """


def codec_names() -> tuple[str, ...]:
    """Names that `get_codec` takes."""
    return tuple(_CODECS)


def get_codec(name: str) -> Codec:
    """The codec of that name.

    Raises:
        ValueError: no codec has this name.
        ImportError: the codec needs a package that is not installed; the message says which and how to install it.
    """
    if name not in _CODECS:
        raise ValueError(f"codec is {name!r}; allowed are {', '.join(_CODECS)}")
    module, attribute = _CODECS[name]
    codec = getattr(importlib.import_module(module), attribute)()
    assert isinstance(codec, Codec)
    return codec


def view_bytes(data: torch.Tensor, start: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """The part of each layer's bytes that holds a tensor of `shape` and `dtype`, as a view that can be read and
    written.

    Args:
        data: uint8 [layers, layer_bytes].
        start: first byte of the part in a layer.
        shape: of one layer's part, without the layers.

    Returns:
        Tensor [layers, *shape] of `dtype` in the memory of `data`.
    """
    size = dtype.itemsize
    for extent in shape:
        size *= extent
    return data[:, start : start + size].view(dtype).view(data.shape[0], *shape)
