"""Capacity of a constellation: the blocks and tokens of a model that it holds, and the stores that a number of tokens needs."""

import math
from dataclasses import dataclass
from typing import Any, Final

from skymemory.common.defaults import MOST_STORE_MIB
from skymemory.sky.constellation import Constellation
from skymemory.sky.file_sections import UINT32_MAX
from skymemory.sky.placement.layouts import SERVERS_MAX
from skymemory.sky.placement.structures import STRIPE_ROW_MAX

_HEAD_BYTES: Final = 64
"""Bytes of a chunk's entry, which lies in its slot."""
_ALIGNMENT: Final = 64
"""Slots are so many bytes long, or a multiple of that."""
_SLOT_ENTRY_BYTES: Final = 24
"""Bytes of a slot's own entry."""
_BLOCK_ENTRY_BYTES: Final = 144
"""Bytes of a block's entry, which shares a slot with others."""
_ENTRIES_MOST: Final = 64
"""Most entries of blocks in a slot."""
_ROW_BYTES: Final = 8
"""Bytes of the index for each KiB of a store, which is rounded up to a power of two."""
_SPARE_SLOTS: Final = 2
"""Spare slots of a store, in which repairs rebuild chunks: they hold none."""
_BYTES: Final = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1, "fp8": 1}
_MIB: Final = 1 << 20
CODECS: Final = ("raw", "int8", "int4", "int4g16", "int4g32")
_GROUPS: Final = {"int4g16": 16, "int4g32": 32}
"""Channels of a group, by codec."""


class ShapeError(ValueError):
    """Error: the configuration of a model does not tell the size of its blocks. The message says why."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Shape of a model's keys and values, which decides how many bytes a token has."""

    layers: int
    kv_heads: int
    head_dim: int
    dtype: str
    latent: int = 0
    """Numbers of a token in a layer with multi-head latent attention (MLA), keys and values together; 0 without MLA."""
    window: int | None = None
    """Tokens of a sliding window in some or all layers. It does not count here: vLLM keeps all tokens for our connector."""

    @property
    def values_per_token(self) -> int:
        """Numbers of a token in all layers, keys and values together."""
        return self.layers * (self.latent or 2 * self.kv_heads * self.head_dim)

    def token_bytes(self, block_tokens: int, codec: str = "raw") -> float:
        """Return the bytes of a token, including its part of the scales of its block.

        Raises:
            ShapeError: The codec does not support such a model.
        """
        if codec == "raw":
            return float(self.values_per_token * _BYTES[self.dtype])
        if self.latent:
            raise ShapeError(f"{codec} needs keys and values of heads, and this model has latent attention (MLA); allowed is raw")
        if group := _GROUPS.get(codec):
            if self.head_dim % group:
                raise ShapeError(f"{codec} needs heads of a multiple of {group} channels, and this model's have {self.head_dim}")
            # Each group has a scale and a lowest value of 16 bits
            return self.values_per_token / 2 + 4 * self.values_per_token / group
        # Each channel of a block's keys and each token's values have a scale of 16 bits, and with int4 a lowest value as well
        factors = self.layers * self.kv_heads * (self.head_dim / block_tokens + 1) * 2
        return self.values_per_token + factors if codec == "int8" else self.values_per_token / 2 + 2 * factors


def model_shape(config: dict[str, Any], dtype: str | None = None) -> ModelShape:
    """Read the shape of a model's keys and values from its `config.json`.

    Args:
        config: The content of `config.json`.
        dtype: The dtype of the cache, if it is not the model's own (`--kv-cache-dtype`).

    Raises:
        ShapeError: The configuration does not tell the shape, or the model has layers without keys and values of tokens.
    """
    text = next((config[name] for name in ("text_config", "llm_config", "language_config") if name in config), config)
    kinds = text.get("layer_types") or text.get("layers_block_type") or []
    recurrent = sorted({str(kind) for kind in kinds if "attention" not in str(kind) or "linear" in str(kind)})
    told = [name for name in ("mamba_d_state", "ssm_cfg", "attn_layer_period", "hybrid_override_pattern") if name in text]
    if recurrent or told:
        raise ShapeError(f"the model has recurrent layers ({', '.join(recurrent or told)}); such models cannot be cached")
    if text.get("is_encoder_decoder"):
        raise ShapeError("the model has an encoder; only decoders can be cached")
    layers = _number(text, "num_hidden_layers", "n_layer", "num_layers", "n_layers")
    dtype = dtype or text.get("dtype") or text.get("torch_dtype") or config.get("dtype") or config.get("torch_dtype")
    if dtype is None:
        raise ShapeError("the configuration names no dtype; give one with --dtype")
    if dtype not in _BYTES:
        raise ShapeError(f"dtype is {dtype!r}; allowed are {', '.join(_BYTES)}")
    window = text.get("sliding_window") if text.get("use_sliding_window", True) else None
    if rank := text.get("kv_lora_rank"):
        return ModelShape(layers, 1, 0, dtype, rank + int(text.get("qk_rope_head_dim") or 0), window)
    heads = _number(text, "num_attention_heads", "n_head", "num_heads", "n_heads")
    kv_heads = text.get("num_key_value_heads") or text.get("num_kv_heads") or (1 if text.get("multi_query") else heads)
    head_dim = text.get("head_dim") or _number(text, "hidden_size", "n_embd", "d_model") // heads
    if not all(isinstance(one, int) and one > 0 for one in (kv_heads, head_dim)):
        raise ShapeError(f"key-value heads are {kv_heads!r} and the head's size {head_dim!r}; needed is one number of each")
    return ModelShape(layers, kv_heads, head_dim, dtype, window=window)


def _number(config: dict[str, Any], *names: str) -> int:
    found = next((config[name] for name in names if config.get(name) is not None), None)
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise ShapeError(f"the configuration has {names[0]} = {found!r}; needed is a whole number from 1")
    return found


def store_slots(sky: Constellation) -> int:
    """Return the number of chunks that a satellite's store surely holds, each of the largest size and of another block."""
    return _chunks_in(sky, sky.satellite.store_mib)


def _slots_in(sky: Constellation, store_mib: int) -> tuple[int, int]:
    """Return the slots of a store, at least, and how many entries of blocks one of them has room for."""
    slot_bytes = -(-(sky.slot_bytes + _HEAD_BYTES) // _ALIGNMENT) * _ALIGNMENT
    index_bytes = _ROW_BYTES * (1 << (1024 * store_mib - 1).bit_length())
    room = store_mib * _MIB - _ALIGNMENT - _SPARE_SLOTS * sky.slot_bytes - index_bytes
    slots = room // (max(slot_bytes, _BLOCK_ENTRY_BYTES) + _SLOT_ENTRY_BYTES)
    return slots, min(_ENTRIES_MOST, max(1, slot_bytes // _BLOCK_ENTRY_BYTES))


def _chunks_in(sky: Constellation, store_mib: int) -> int:
    slots, entries = _slots_in(sky, store_mib)
    return max(0, slots * entries // (entries + 1))


def capacity_bytes(sky: Constellation) -> int:
    """Return the bytes of the longest block that the servers surely hold, if all other blocks make room for it."""
    data = sky.cache.servers - sky.cache.parity
    slots, _ = _slots_in(sky, sky.satellite.store_mib)
    return min(data * (slots - 1) * sky.cache.chunk_bytes, UINT32_MAX)  # one slot for the block's entry


def stores_words(sky: Constellation) -> str:
    """Return words that explain `capacity_bytes`: `12 servers of 16 MiB, 2 of them for parity`."""
    parity = f", {sky.cache.parity} of them for parity" if sky.cache.parity else ""
    return f"{sky.cache.servers} servers of {sky.satellite.store_mib} MiB{parity}"


def blocks_held(sky: Constellation, block_bytes: int, other_chunks: int = 0) -> int:
    """Return how many blocks of one length the servers surely hold beside `other_chunks` chunks on each of them."""
    return (store_slots(sky) - other_chunks) // _share(sky, block_bytes)


def store_mib_for(sky: Constellation, block_bytes: int, blocks: int) -> int:
    """Return the MiB of each satellite's store (`satellite.store_mib`) that a number of blocks needs."""
    chunks = blocks * _share(sky, block_bytes)
    store_mib = max(1, math.ceil(chunks * sky.slot_bytes / _MIB))
    while _chunks_in(sky, store_mib) < chunks:
        store_mib += 1
    return store_mib


def servers_for(sky: Constellation, block_bytes: int, blocks: int) -> int | None:
    """Return the least number of servers that hold a number of blocks, or None if too few are allowed.

    The servers' stores may be as large as is allowed. The number is at least `cache.servers`.
    """
    most = min(sky.planes * sky.slots, STRIPE_ROW_MAX if sky.cache.parity else SERVERS_MAX)
    for servers in range(sky.cache.servers, most + 1):
        more = sky.replace(cache={"servers": servers})
        if store_mib_for(more, block_bytes, blocks) <= MOST_STORE_MIB:
            return servers
    return None


def _share(sky: Constellation, block_bytes: int) -> int:
    """Return the most chunks of a block that one server has."""
    chunks = -(-block_bytes // sky.cache.chunk_bytes)
    return -(-chunks // (sky.cache.servers - sky.cache.parity))
