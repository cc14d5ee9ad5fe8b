"""Blocks as bytes: a header that describes itself, then the key-value tensors, layer by layer.

A block is sealed (`skymemory.wire.envelope`). The envelope's header is JSON text: a `BlockHeader`, padded with spaces so that the
payload starts at a multiple of 64 bytes. The body is the payload: the codec's bytes of each layer in turn.

A block holds the model's attention keys as transformers caches them: after the rotary embedding for positions `first_position`
and up. The parameters in `rope` allow a reader to undo the rotation, or to turn the keys to another position.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

import torch

from skymemory.prompt.codecs import Codec, CodecError
from skymemory.wire.envelope import ENVELOPE_BYTES, HEADER_BYTES_MAX, BlockError, Kind, seal_in_place, unseal
from skymemory.wire.key_derivation import SealKeys

LAYOUT = "layer,k|v,kv_head,token,head_dim;k after rope"
"""Order of the tensors in a block. It is a part of every key, so that a lookup never finds blocks of another order."""

_ALIGNMENT_BYTES = 64
_LIMIT = 1 << 20
"""Largest extent of an axis that a header may claim."""

_DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


@dataclass(frozen=True, slots=True)
class BlockHeader:
    """The fields of a block's header."""

    codec: str
    """Name of the codec that made the payload."""
    dtype: str
    """Dtype of the tensors before encoding: float32, float16 or bfloat16."""
    shape: tuple[int, int, int, int, int]
    """Shape of the tensors: [layers, 2 (keys, values), kv_heads, tokens, head_dim]."""
    block_index: int
    """Index of the block in its prompt or segment, from 0."""
    first_position: int
    """Position of the block's first token in the prompt or segment, from 0."""
    rope: dict[str, Any] | None
    """Parameters of the rotary embedding that was applied to the keys; None if none was."""


def dtype_name(dtype: torch.dtype) -> str:
    """Return the name that a header gives to a dtype.

    Raises:
        CodecError: Key-value tensors of this dtype are not supported.
    """
    for name, candidate in _DTYPES.items():
        if candidate == dtype:
            return name
    raise CodecError(f"key-value tensors are {dtype}; supported are {', '.join(_DTYPES)}")


def pack_block(
    tensors: torch.Tensor,
    *,
    key: bytes,
    keys: SealKeys,
    codec: Codec,
    block_index: int,
    first_position: int,
    rope: dict[str, Any] | None = None,
    kind: Kind = Kind.PROMPT,
) -> bytearray:
    """Return the bytes of a block.

    Args:
        tensors: Contiguous CPU tensor [layers, 2, kv_heads, tokens, head_dim].
        key: The block's key, 32 bytes.
        keys: Keys of the seal (`skymemory.wire.key_derivation`).
        codec: The codec that encodes the tensors.
        block_index: Index of the block in its prompt or segment, from 0.
        first_position: Position of the block's first token in the prompt or segment, from 0.
        rope: Parameters of the rotary embedding, JSON values only.
        kind: Kind of the content, PROMPT or SEGMENT.

    Raises:
        CodecError: The codec cannot take the tensors.
    """
    shape = tuple(tensors.shape)
    if len(shape) != 5 or shape[1] != 2 or 0 in shape:
        raise CodecError(f"tensors have shape {list(shape)}; wanted is [layers, 2, kv_heads, tokens, head_dim] without a zero")
    layer_bytes = codec.layer_bytes(shape, tensors.dtype)
    header = BlockHeader(
        codec=codec.name,
        dtype=dtype_name(tensors.dtype),
        shape=shape,
        block_index=block_index,
        first_position=first_position,
        rope=rope,
    )
    text = json.dumps(asdict(header), separators=(",", ":"), allow_nan=False).encode()
    text = text.ljust(len(text) + -(ENVELOPE_BYTES + len(text)) % _ALIGNMENT_BYTES)
    start = ENVELOPE_BYTES + len(text)
    data = bytearray(start + shape[0] * layer_bytes)
    payload = torch.frombuffer(data, dtype=torch.uint8, offset=start).view(shape[0], layer_bytes)
    codec.encode(tensors, payload)
    seal_in_place(kind, key, memoryview(data), text, keys=keys)
    return data


def block_bytes_max(shape: tuple[int, ...], dtype: torch.dtype, codec: Codec) -> int:
    """Return an upper bound for the bytes of a block of this shape, whatever its header contains.

    Raises:
        CodecError: The codec cannot take this shape or dtype.
    """
    return ENVELOPE_BYTES + HEADER_BYTES_MAX + shape[0] * codec.layer_bytes(shape, dtype)


def unpack_block(
    data: bytearray, *, key: bytes, keys: SealKeys, codec: Codec, kind: Kind = Kind.PROMPT
) -> tuple[BlockHeader, torch.Tensor]:
    """Open a block in place, once, and decode its tensors.

    Args:
        data: The block's bytes, as `pack_block` made them.
        key: The key under which the block was fetched, 32 bytes.
        keys: Keys of the seal (`skymemory.wire.key_derivation`).
        codec: The codec that made the block.
        kind: Kind of the content.

    Returns:
        The header, and a CPU tensor [layers, 2, kv_heads, tokens, head_dim] that may share memory with `data`.

    Raises:
        BlockError: The bytes are not the block of this key; the message says what is wrong.
    """
    text, body, _ = unseal(kind, key, data, keys=keys)
    try:
        fields = json.loads(bytes(text))
        fields["shape"] = tuple(int(extent) for extent in fields["shape"])
        header = BlockHeader(**fields)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise BlockError(f"the header cannot be read: {error}") from error
    shape = header.shape
    if len(shape) != 5 or shape[1] != 2 or not all(0 < extent <= _LIMIT for extent in shape):
        raise BlockError(f"the header's shape {list(shape)} is not one of a block")
    if header.codec != codec.name:
        raise BlockError(f"the block is of codec {header.codec!r}, not {codec.name!r}")
    try:
        dtype = _DTYPES[header.dtype]
        layer_bytes = codec.layer_bytes(shape, dtype)
    except (ValueError, TypeError, KeyError) as error:
        raise BlockError(f"the block cannot be decoded: {error}") from error
    if len(body) != shape[0] * layer_bytes:
        raise BlockError(f"the payload has {len(body)} bytes; {codec.name} makes {shape[0]} x {layer_bytes} of {list(shape)}")
    return header, codec.decode(torch.frombuffer(body, dtype=torch.uint8).view(shape[0], layer_bytes), shape, dtype)
