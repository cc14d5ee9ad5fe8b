"""The interface of the codecs, and the lookup of a codec by name.

A block's tensors are one tensor of shape [layers, 2, kv_heads, tokens, head_dim]; on the second axis keys come first,
then values. The bytes of each layer are one run of `layer_bytes`, and the layers follow each other. So a reader can decode the
first layers of a block before the last ones have arrived.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    import torch

_CODECS = {
    "raw": ("skymemory.prompt.codecs.raw", "RawCodec"),
    "int8": ("skymemory.prompt.codecs.integer", "Int8Codec"),
    "int4": ("skymemory.prompt.codecs.integer", "Int4Codec"),
    "int4g16": ("skymemory.prompt.codecs.grouped", "Int4Group16Codec"),
    "int4g32": ("skymemory.prompt.codecs.grouped", "Int4Group32Codec"),
    "quanto": ("skymemory.prompt.codecs.quanto", "QuantoCodec"),
    "hqq": ("skymemory.prompt.codecs.hqq", "HqqCodec"),
}


class CodecError(ValueError):
    """The codec cannot take the tensors or bytes: their shape or size is wrong, or a value is not finite. The block is a miss."""


class Codec(ABC):
    """A codec from tensors of a block to bytes and back. Codecs have no state, so several threads may use one."""

    name: ClassVar[str]
    """Name of the codec in block headers, in `constellation.toml` and on the command line; a part of every key."""

    @abstractmethod
    def layer_bytes(self, shape: tuple[int, ...], dtype: torch.dtype) -> int:
        """Return the bytes of one layer of a block of `shape` [layers, 2, kv_heads, tokens, head_dim] and `dtype`.

        Raises:
            CodecError: The codec cannot take this shape or dtype; the message says why.
        """

    @abstractmethod
    def encode(self, block: torch.Tensor, out: torch.Tensor) -> None:
        """Write the bytes of a block.

        Args:
            block: Contiguous CPU tensor [layers, 2, kv_heads, tokens, head_dim], floating point.
            out: A uint8 CPU tensor [layers, layer_bytes], contiguous, aligned for every dtype.

        Raises:
            CodecError: A value is not finite, or too large for the codec's scales.
        """

    @abstractmethod
    def decode(self, data: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return the tensors of a block, or of its first layers.

        Args:
            data: A uint8 CPU tensor [layers, layer_bytes], contiguous, aligned for every dtype.
            shape: Shape of the result: [layers, 2, kv_heads, tokens, head_dim], with the layers of `data`.
            dtype: Dtype of the tensor before encoding.

        Returns:
            A tensor of `shape` and `dtype`, which may share memory with `data`.
        """


def codec_names() -> tuple[str, ...]:
    """Return the names that `get_codec` takes."""
    return tuple(_CODECS)


def get_codec(name: str) -> Codec:
    """Return the codec of this name.

    Raises:
        ValueError: No codec has this name.
        ImportError: The codec needs a package that is not installed; the message says which and how to install it.
    """
    if name not in _CODECS:
        raise ValueError(f"codec is {name!r}; allowed are {', '.join(_CODECS)}")
    module, attribute = _CODECS[name]
    codec = getattr(importlib.import_module(module), attribute)()
    assert isinstance(codec, Codec)
    return codec


def view_bytes(data: torch.Tensor, start: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return a writable view of the part of each layer's bytes that holds a tensor of `shape` and `dtype`.

    Args:
        data: A uint8 tensor [layers, layer_bytes].
        start: First byte of the part in a layer.
        shape: Shape of the part of one layer, without the axis of layers.
        dtype: Dtype of the part.

    Returns:
        A tensor [layers, *shape] of `dtype` in the memory of `data`.
    """
    size = dtype.itemsize
    for extent in shape:
        size *= extent
    return data[:, start : start + size].view(dtype).view(data.shape[0], *shape)
