"""The codec that stores tensors as they are: decoding gives every bit back."""

import torch

from skymemory.prompt.codecs.base import Codec, view_bytes


class RawCodec(Codec):
    """A codec that copies bytes in the machine's order, which is little-endian on all machines that run torch."""

    name = "raw"

    def layer_bytes(self, shape: tuple[int, ...], dtype: torch.dtype) -> int:
        _, two, heads, tokens, dim = shape
        return two * heads * tokens * dim * dtype.itemsize

    def encode(self, block: torch.Tensor, out: torch.Tensor) -> None:
        view_bytes(out, 0, tuple(block.shape[1:]), block.dtype).copy_(block)

    def decode(self, data: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        return view_bytes(data, 0, shape[1:], dtype)
