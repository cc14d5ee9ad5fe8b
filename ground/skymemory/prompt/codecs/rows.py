"""Blocks as matrices for quantisation libraries: the values of a row share a scale."""

import torch

from skymemory.prompt.codecs.base import CodecError


def rows_of(block: torch.Tensor, part: int) -> torch.Tensor:
    """Return keys (`part` 0) or values (1) of a block [layers, 2, kv_heads, tokens, head_dim] as a float32 matrix.

    Returns:
        For keys a matrix [layers * kv_heads * head_dim, tokens], whose rows are channels; for values a matrix
        [layers * kv_heads * tokens, head_dim], whose rows are tokens.
    """
    values = block[:, part].float()
    if part == 0:
        values = values.transpose(-1, -2)
    return values.reshape(-1, values.shape[-1])


def block_of(keys: torch.Tensor, values: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return the block of this shape and dtype whose `rows_of` are `keys` and `values`."""
    layers, _, heads, tokens, dim = shape
    block = torch.empty(shape, dtype=dtype)
    block[:, 0] = keys.view(layers, heads, dim, tokens).transpose(-1, -2)
    block[:, 1] = values.view(layers, heads, tokens, dim)
    return block


def row_counts(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the number of rows of one layer: of keys, and of values."""
    _, _, heads, tokens, dim = shape
    return heads * dim, heads * tokens


def layer_bytes(codec: str, shape: tuple[int, ...], factors: int, factor: torch.dtype) -> int:
    """Return the bytes of one layer: 8-bit integers, then the factors of each row.

    Args:
        codec: Name of the codec, for the message.
        shape: Shape of the block: [layers, 2, kv_heads, tokens, head_dim].
        factors: Number of factors (scale, zero) of a row.
        factor: Dtype of a factor.

    Raises:
        CodecError: The factors would not be aligned behind the integers.
    """
    _, _, heads, tokens, dim = shape
    integers = 2 * heads * tokens * dim
    if integers % factor.itemsize:
        raise CodecError(f"a layer has {integers} values; {codec} wants a multiple of {factor.itemsize}")
    return integers + factors * factor.itemsize * sum(row_counts(shape))
