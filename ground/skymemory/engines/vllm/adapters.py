"""LoRA adapters: digests of their files, and a check that the engine still computes with these."""

from __future__ import annotations

import contextlib
import functools
import logging
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

from skymemory.engines.weights import WeightsError, adapter_files, files_digest

_log = logging.getLogger(__name__)

_Stats = list[tuple[str, int, int, int]]
"""Names, inodes, bytes and times of files."""


class ChangedError(WeightsError):
    """An adapter's files have changed under the same name and path."""


class Adapters:
    """Digests of adapters. One thread calls it, and another one reads the weights."""

    def __init__(self, pool: Executor) -> None:
        """Prepare.

        Args:
            pool: Executor of one thread.
        """
        self._pool = pool
        self._known: dict[tuple[str, str], tuple[_Stats, bytes | None]] = {}
        """Files as they were first seen, and their digest, by name and path. None: not read yet; empty: no longer cached."""

    def look(self, adapter: Any) -> None:
        """Remember the state of an adapter's files, before the engine reads them."""
        key = (adapter.lora_name, adapter.lora_path)
        if key not in self._known:
            with contextlib.suppress(OSError, WeightsError):  # the engine fetches the files, or says what is wrong
                self._known[key] = (_stats(adapter_files(adapter.lora_path)), None)

    def digest(self, adapter: Any) -> Future[bytes]:
        """Return the digest of an adapter's weights and configuration. Ask again wherever more of it is computed.

        vLLM finds blocks of its own cache by an adapter's name and path. If the files change under these, its blocks are of
        both versions, and nobody can tell which. Then nothing is found or stored for the adapter while the engine runs: the
        future fails, as it does if there are no files.
        """
        self.look(adapter)
        return self._pool.submit(self._digest, adapter.lora_name, adapter.lora_path)

    def _digest(self, name: str, path: str) -> bytes:
        if self._known.get((name, path), ([], None))[1] == b"":
            raise ChangedError
        try:
            files = adapter_files(path)
            now = _stats(files)
            seen, digest = self._known.setdefault((name, path), (now, None))
            if digest is not None and now == seen:
                return digest
            new = files_digest(files)
            # If the digest was not read when the engine read the files, only their times tell a change.
            same = new == digest if digest is not None else seen == now == _stats(files)
        except (OSError, WeightsError) as error:
            _log.warning("blocks of adapter %s are not cached: %s", name, error)
            raise
        if not same:
            self._known[name, path] = ([], b"")
            _log.warning(
                "blocks of adapter %s are not cached until this engine is started again: files in %s were changed; load a "
                "changed adapter from a path of its own",
                name,
                path,
            )
            raise ChangedError
        self._known[name, path] = (now, new)
        return new


def watch_loads(core: Any, adapters: Adapters) -> None:
    """Make `Adapters` look at an adapter that is loaded ahead of its requests: vLLM tells no connector of that.

    Args:
        core: VLLM's class `EngineCore`, whose `add_lora` is replaced.
    """
    load = core.add_lora

    @functools.wraps(load)
    def look_and_load(self: Any, lora_request: Any) -> Any:
        adapters.look(lora_request)
        loaded = load(self, lora_request)
        with contextlib.suppress(RuntimeError):  # the engine of this process may have ended
            adapters.digest(lora_request)
        return loaded

    core.add_lora = look_and_load


def _stats(files: list[Path]) -> _Stats:
    found = [(str(file), file.stat()) for file in files]
    return [(name, stat.st_ino, stat.st_size, stat.st_mtime_ns) for name, stat in found]
