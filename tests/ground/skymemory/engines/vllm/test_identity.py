"""What goes into keys."""

from types import SimpleNamespace
from typing import Any

import pytest

from skymemory.engines.framing import BlockFormat
from skymemory.engines.vllm import identity

FORMAT = BlockFormat(128, 3, 1000, "float32", "LBHNC")


def config(**changed: Any) -> tuple[SimpleNamespace, SimpleNamespace]:
    """vLLM's, as far as it is looked at."""
    values = {
        "layers": 3,
        "max_model_len": 1024,
        "load_format": "auto",
        "seed": 0,
        "quantization": None,
        "dtype": "torch.float32",
        "cache_dtype": "auto",
        "block_size": 128,
        "hash": "sha256",
        "tp": 1,
        "kv_layout": "LBHNC",
        "path": "/here",
        "rope": None,
        **changed,
    }
    to_dict = {"num_hidden_layers": values["layers"], "_name_or_path": values["path"], "rope_parameters": values["rope"]}
    model = SimpleNamespace(hf_config=SimpleNamespace(to_dict=lambda: to_dict), **values)
    cache = SimpleNamespace(prefix_caching_hash_algo=values["hash"], **values)
    vllm = SimpleNamespace(
        model_config=model,
        cache_config=cache,
        load_config=SimpleNamespace(load_format=values["load_format"]),
        parallel_config=SimpleNamespace(tensor_parallel_size=values["tp"]),
    )
    return vllm, SimpleNamespace(kv_cache_layout=values["kv_layout"])


def root(secret: bytes = b"", weights: bytes = bytes(32), workers: tuple[Any, ...] = (), **changed: Any) -> bytes:
    return identity.root_key(FORMAT, identity.facts(*config(**changed), "0.32.0", workers), weights, secret)


def test_what_decides_the_bytes_decides_the_root() -> None:
    roots = {
        root(),
        root(secret=b"tenant"),
        root(weights=bytes(31) + b"1"),
        root(workers=(["layer", "float32"],)),
        root(layers=4),
        root(dtype="torch.bfloat16"),
        root(cache_dtype="fp8"),
        root(block_size=64),
        root(hash="sha256_cbor"),
        root(tp=2),
        root(kv_layout="LBNHC"),
        root(quantization="awq"),
        root(rope={"rope_type": "yarn"}),
    }
    assert len(roots) == 13


def test_what_does_not_leaves_it() -> None:
    assert root(path="/there") == root()
    assert root(max_model_len=2048) == root()
    assert root(seed=1) == root()


def test_what_does_so_in_some_models_only() -> None:
    long = {"long_factor": [1.0], "short_factor": [1.0]}
    assert root(rope=long, max_model_len=2048) != root(rope=long)
    assert root(load_format="dummy", seed=1) != root(load_format="dummy")


def test_the_seed_of_vllms_hashes_is_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = root()
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    assert root() != before


def test_parts_of_a_block_have_keys_of_their_own() -> None:
    key = bytes(32)
    assert len({key, identity.shard_key(key, 0), identity.shard_key(key, 1), identity.derived_root(key, b"x")}) == 4
