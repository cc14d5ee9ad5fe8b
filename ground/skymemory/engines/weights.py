"""Digest of the files that decide what a model computes: part of the keys of engines that load models themselves."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import blake3

from skymemory.common.bounded_folder import bound_folder, used_now
from skymemory.common.state_folder import default_folder, make_folders

_log = logging.getLogger(__name__)

_WEIGHTS = {".safetensors", ".bin", ".pt", ".pth", ".gguf"}
_CODE = {".py"}
"""Endings of a model's own code, which decides as its weights do."""
_VOLATILE = {"_name_or_path", "transformers_version"}
"""Entries of a model's configuration that say where it lies and who wrote it."""
_READ_THREADS = 4
_KEPT_MAX = 4096
"""Most files whose digests are kept: large models have some hundred. Those that were not asked for longest go."""
_KEPT_BYTES_MAX = 1 << 20
_TICK_NS = 2_000_000_000
"""Largest step of file times on any file system, in nanoseconds: two changes within it may have the same time."""


class WeightsError(ValueError):
    """The model's weights cannot be identified; the message says why."""


def weight_files(model: str, revision: str | None, download_dir: str | None) -> list[Path]:
    """Return the files of a model that decide what it computes, sorted.

    The configuration is not among them: take it as the engine has read it.

    Args:
        model: A folder, a file, or a name on the Hugging Face hub whose files were loaded already.

    Raises:
        WeightsError: There are none on this machine.
    """
    place = Path(model)
    if place.is_file():
        return [place]
    if not place.is_dir():
        place = _snapshot(model, revision, download_dir)
    files = sorted(path for path in place.iterdir() if path.suffix in _WEIGHTS | _CODE and path.is_file())
    if not any(path.suffix in _WEIGHTS for path in files):
        raise WeightsError(
            f"{place} holds no weights ({', '.join(sorted(_WEIGHTS))}), so it cannot be known which model's "
            "tensors these are; supported are models in files of this machine"
        )
    return files


def adapter_files(adapter: str) -> list[Path]:
    """Return the files of a LoRA adapter, and its configuration, which says by how much the weights count.

    Raises:
        WeightsError: There are none on this machine.
    """
    files = weight_files(adapter, None, None)
    if Path(adapter).is_file():
        return files
    return sorted([*files, *(path for path in files[0].parent.glob("*.json") if path.is_file())])


def _snapshot(model: str, revision: str | None, download_dir: str | None) -> Path:
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(model, revision=revision, cache_dir=download_dir, local_files_only=True))
    except Exception as error:
        raise WeightsError(
            f"model {model} is neither a file or folder of this machine nor in its Hugging Face cache "
            f"({type(error).__name__}); supported are models in files of this machine"
        ) from error


def config_text(hf_config: Any) -> str:
    """Return a model's configuration as an engine has read it, with all overrides.

    Those of rotary embeddings are nowhere else.
    """
    config = {name: value for name, value in hf_config.to_dict().items() if name not in _VOLATILE}
    return json.dumps(config, sort_keys=True, default=str)


def files_digest(files: Iterable[Path]) -> bytes:
    """Return the BLAKE3 digest of names and contents, 32 bytes.

    A file is read once, and again when its size or time has changed. A file that changed a moment ago may do so unseen, and is
    read the next time as well.

    Raises:
        OSError: A file cannot be read.
    """
    hasher = blake3.blake3()
    for path in files:
        name = path.name.encode()
        hasher.update(len(name).to_bytes(8) + name + _file_digest(path))
    return hasher.digest()


def _file_digest(path: Path) -> bytes:
    real = path.resolve()
    stat, now_ns = real.stat(), time.time_ns()
    mark = blake3.blake3(repr((str(real), stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)).encode()).hexdigest()
    kept = default_folder() / "weights" / mark
    try:
        digest = bytes.fromhex(kept.read_text(encoding="ascii"))
        if len(digest) == blake3.blake3.digest_size:
            used_now(kept)
            return digest
    except (OSError, ValueError):
        pass
    digest = blake3.blake3(max_threads=_READ_THREADS).update_mmap(real).digest()
    if now_ns - stat.st_mtime_ns <= _TICK_NS:
        return digest
    try:
        make_folders(kept.parent)
        draft = kept.with_suffix(f".{os.getpid()}")
        draft.write_text(digest.hex(), encoding="ascii")
        draft.replace(kept)
        bound_folder(kept.parent, _KEPT_MAX, _KEPT_BYTES_MAX)
    except OSError as error:
        _log.warning("digest of %s cannot be kept in %s (%s): it is read again by the next engine", real, kept.parent, error)
    return digest
