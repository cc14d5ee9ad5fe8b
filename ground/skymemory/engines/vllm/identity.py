"""Keys of vLLM's blocks (`skymemory.engines.framing` makes them):

    root  = of the format, all else that decides the bytes of a block but the tokens, and the tenant secret
    key   = of vLLM's hash of the block, under root
    shard = of the worker's part of all heads, under key: what the satellites see

vLLM's hash (`request.block_hashes`, SHA-256) is a chain over the tokens, `cache_salt`, images and the like, and name and
path of an adapter. It starts at a constant, or at PYTHONHASHSEED where that is set, so processes agree. What it does
not cover is here: the model's weights and those of the adapter, and how vLLM lays out the tensors.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import blake3

from skymemory.engines import framing
from skymemory.engines.framing import BlockFormat
from skymemory.engines.vllm.settings import UnsupportedError
from skymemory.state_folder import default_folder

_log = logging.getLogger(__name__)

_WEIGHTS = {".safetensors", ".bin", ".pt", ".pth", ".gguf"}
_CODE = {".py"}
"""a model's own code decides as its weights do"""
_VOLATILE = {"_name_or_path", "transformers_version"}
"""of the model's configuration: where it lies and who wrote it"""
_READ_THREADS = 4


def weight_files(model: str, revision: str | None, download_dir: str | None) -> list[Path]:
    """Files of a model (or an adapter) that decide what it computes, sorted.

    Args:
        model: a folder, a file, or a name on the Hugging Face hub whose files were loaded already.

    Raises:
        UnsupportedError: there are none on this machine.
    """
    place = Path(model)
    if place.is_file():
        return [place]
    if not place.is_dir():
        place = _snapshot(model, revision, download_dir)
    files = sorted(path for path in place.iterdir() if path.suffix in _WEIGHTS | _CODE and path.is_file())
    if not any(path.suffix in _WEIGHTS for path in files):
        raise UnsupportedError(
            f"SkyMemoryConnector: {place} holds no weights ({', '.join(sorted(_WEIGHTS))}), so it cannot be known which model's "
            "tensors these are; supported are models in files of this machine"
        )
    return files


def _snapshot(model: str, revision: str | None, download_dir: str | None) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(model, revision=revision, cache_dir=download_dir, local_files_only=True))
    except Exception as error:
        raise UnsupportedError(
            f"SkyMemoryConnector: --model {model} is neither a file or folder of this machine nor in its Hugging Face cache "
            f"({type(error).__name__}); supported are models in files of this machine"
        ) from error


def files_digest(files: Iterable[Path]) -> bytes:
    """BLAKE3 over names and contents, 32 bytes. A file is read once, and again when its size or time has changed.

    Raises:
        OSError: a file cannot be read.
    """
    hasher = blake3.blake3()
    for path in files:
        name = path.name.encode()
        hasher.update(len(name).to_bytes(8) + name + _file_digest(path))
    return hasher.digest()


def _file_digest(path: Path) -> bytes:
    real = path.resolve()
    stat = real.stat()
    mark = blake3.blake3(repr((str(real), stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)).encode()).hexdigest()
    kept = default_folder() / "weights" / mark
    try:
        digest = bytes.fromhex(kept.read_text(encoding="ascii"))
        if len(digest) == blake3.blake3.digest_size:
            return digest
    except (OSError, ValueError):
        pass
    digest = blake3.blake3(max_threads=_READ_THREADS).update_mmap(real).digest()
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        draft = kept.with_suffix(f".{os.getpid()}")
        draft.write_text(digest.hex(), encoding="ascii")
        draft.replace(kept)
    except OSError as error:
        _log.warning("digest of %s cannot be kept in %s (%s): it is read again by the next engine", real, kept.parent, error)
    return digest


def facts(vllm_config: Any, kv_cache_config: Any, version: str, workers: Sequence[Any]) -> dict[str, Any]:
    """All that decides the bytes of a block but weights and tokens, as JSON takes it.

    Args:
        version: of vLLM: kernels change.
        workers: what each worker says of its tensors, by rank.
    """
    model, cache = vllm_config.model_config, vllm_config.cache_config
    config = {name: value for name, value in model.hf_config.to_dict().items() if name not in _VOLATILE}
    text = json.dumps(config, sort_keys=True, default=str)
    return {
        "engine": ["vllm", version],
        "config": text,
        # Of two sets of factors one is taken by the length that the engine is started with
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
    """The start of all keys, 32 bytes; as secret as the tenant secret."""
    return framing.root(block_format, ("vllm", json.dumps(known, sort_keys=True), weights, secret))


def derived_root(root: bytes, digest: bytes) -> bytes:
    """As `root_key`, with an adapter's weights or a salt."""
    return framing.block_key(root, b"derived" + digest)


def shard_key(key: bytes, shard: int) -> bytes:
    """Key in the sky of the part of a block that one worker holds, 32 bytes."""
    return framing.block_key(key, shard.to_bytes(4))
