"""LoRA adapters: digests of their files, and whether these are still what the engine has computed with."""

from __future__ import annotations

import logging
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

from skymemory.engines.weights import WeightsError, adapter_files, files_digest

_log = logging.getLogger(__name__)


class ChangedError(WeightsError):
    """An adapter's files are others than before under the same name and path."""


class Adapters:
    """Digests of adapters. Called by one thread, and reads in another one."""

    def __init__(self, pool: Executor) -> None:
        """
        Args:
            pool: of one thread.
        """
        self._pool = pool
        self._known: dict[tuple[str, str], tuple[Any, bytes]] = {}
        """by name and path: files as they were first seen, and their digest; empty: nothing of it is cached any more"""

    def digest(self, adapter: Any) -> Future[bytes]:
        """Of an adapter's weights and configuration, to be asked for again wherever more of it is computed.

        vLLM takes blocks of its own cache by an adapter's name and path. Where the files change under these, its blocks are
        of both, and nobody can tell which: then nothing is found or stored for it as long as the engine runs. So the future
        fails, as it does where there are no files.
        """
        return self._pool.submit(self._digest, adapter.lora_name, adapter.lora_path)

    def _digest(self, name: str, path: str) -> bytes:
        seen, digest = self._known.get((name, path), (None, None))
        if digest == b"":
            raise ChangedError
        try:
            files = adapter_files(path)
            now = _stats(files)
            if digest is not None and now == seen:
                return digest
            new = files_digest(files)
        except (OSError, WeightsError) as error:
            _log.warning("blocks of adapter %s are not cached: %s", name, error)
            raise
        if digest is not None and new != digest:
            self._known[name, path] = (None, b"")
            _log.warning(
                "blocks of adapter %s are not cached until this engine is started again: files in %s were changed; load a "
                "changed adapter from a path of its own",
                name,
                path,
            )
            raise ChangedError
        self._known[name, path] = (now, new)
        return new


def _stats(files: list[Path]) -> list[tuple[str, int, int, int]]:
    found = [(str(file), file.stat()) for file in files]
    return [(name, stat.st_ino, stat.st_size, stat.st_mtime_ns) for name, stat in found]
