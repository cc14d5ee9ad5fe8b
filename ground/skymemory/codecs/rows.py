"""Blocks as the rows that quantisation libraries want: a row is what shares a scale."""

import torch

from skymemory.codecs.base import CodecError


def rows_of(block: torch.Tensor, part: int) -> torch.Tensor:
    """Keys (`part` 0) or values (1) of a block [layers, 2, kv_heads, tokens, head_dim] as a float32 matrix.

    Returns:
        Keys: [layers * kv_heads * head_dim, tokens], a row is a channel. Values: [layers * kv_heads * tokens,
        head_dim], a row is a token.
    """
    values = block[:, part].float()
    if part == 0:
        values = values.transpose(-1, -2)
    return values.reshape(-1, values.shape[-1])


def block_of(keys: torch.Tensor, values: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """The inverse of `rows_of` for both parts; `shape` is the block's."""
    layers, _, heads, tokens, dim = shape
    block = torch.empty(shape, dtype=dtype)
    block[:, 0] = keys.view(layers, heads, dim, tokens).transpose(-1, -2)
    block[:, 1] = values.view(layers, heads, tokens, dim)
    return block


def row_counts(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows of one layer, of keys and of values."""
    _, _, heads, tokens, dim = shape
    return heads * dim, heads * tokens


def layer_bytes(codec: str, shape: tuple[int, ...], factors: int, factor: torch.dtype) -> int:
    """Bytes of one layer of 8-bit integers, then so many factors (scales, zeros) a row.

    Raises:
        CodecError: the factors would not be aligned behind the integers.
    """
    _, _, heads, tokens, dim = shape
    integers = 2 * heads * tokens * dim
    if integers % factor.itemsize:
        raise CodecError(f"a layer has {integers} values; {codec} wants a multiple of {factor.itemsize}")
    return integers + factors * factor.itemsize * sum(row_counts(shape))
