"""Keys of vLLM's blocks (`skymemory.wire.key_derivation`).

    root  = of the format, all else that decides the bytes of a block but the tokens, and the tenant secret
    key   = of vLLM's hash of the block, under the root's key of names
    shard = of the worker's part of all heads, under key: what the satellites see

vLLM's hash (`request.block_hashes`, SHA-256) is a chain over the tokens, `cache_salt`, images and the like, and name and path
of an adapter. It starts at a constant, or at PYTHONHASHSEED if that is set, so processes agree. This module adds what it does
not cover: the model's weights and those of the adapter, and how vLLM lays out the tensors.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from skymemory.engines.framing import BlockFormat
from skymemory.engines.weights import config_text
from skymemory.wire.key_derivation import block_key


def facts(vllm_config: Any, kv_cache_config: Any, version: str, workers: Sequence[Any]) -> dict[str, Any]:
    """Return all that decides the bytes of a block but weights and tokens, as JSON takes it.

    Args:
        version: Version of vLLM: kernels change.
        workers: Layout that each worker reports of its tensors, by rank.
    """
    model, cache = vllm_config.model_config, vllm_config.cache_config
    text = config_text(model.hf_config)
    return {
        "engine": ["vllm", version],
        "config": text,
        # The length that the engine is started with selects one of two sets of factors.
        "length": model.max_model_len if "long_factor" in text else None,
        "load_format": str(vllm_config.load_config.load_format),
        "seed": model.seed if str(vllm_config.load_config.load_format) == "dummy" else None,
        "quantization": str(model.quantization),
        "dtype": str(model.dtype),
        "kv_cache_dtype": str(cache.cache_dtype),
        "block_tokens": cache.block_size,
        "layout": kv_cache_config.kv_cache_layout,
        "hash": [cache.prefix_caching_hash_algo, os.environ.get("PYTHONHASHSEED")],
        "parallel": [vllm_config.parallel_config.tensor_parallel_size, getattr(kv_cache_config, "kv_tp_replicas", 1)],
        "workers": list(workers),
    }


def root_key(block_format: BlockFormat, known: dict[str, Any], weights: bytes, secret: bytes) -> bytes:
    """Return the start of all keys, 32 bytes. It is as secret as the tenant secret."""
    return block_format.root(secret, "vllm", json.dumps(known, sort_keys=True), weights)


def derived_root(root: bytes, digest: bytes) -> bytes:
    """Return a root of names below another one, for an adapter's weights or a salt."""
    return block_key(root, b"derived", digest)


def shard_key(key: bytes, shard: int) -> bytes:
    """Return the key in the sky of the part of a block that one worker holds, 32 bytes."""
    return block_key(key, shard.to_bytes(4))
