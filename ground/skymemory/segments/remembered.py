"""Manifests that this program has seen, for a sky that falls silent."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Final

from skymemory.segments.manifest import Manifest

MANIFESTS_MAX: Final = 64
"""Most manifests that are remembered."""
TOKENS_MAX: Final = 1 << 20
"""Most token ids of these manifests together, but for the last one. They take 36 bytes each."""


class RememberedManifests:
    """The manifests that were seen last, by id. Thread-safe."""

    def __init__(self, manifests_max: int = MANIFESTS_MAX, tokens_max: int = TOKENS_MAX) -> None:
        """Remember none yet.

        Args:
            manifests_max: Most manifests.
            tokens_max: Most token ids of all of them. The manifest that came last stays, however long it is.
        """
        self._manifests_max = manifests_max
        self._tokens_max = tokens_max
        self._manifests: OrderedDict[str, Manifest] = OrderedDict()
        self._tokens = 0
        self._lock = Lock()

    def add(self, manifest: Manifest) -> None:
        """Remember a manifest in place of an older one of the same id. What was seen longest ago is forgotten for it."""
        with self._lock:
            self._drop(manifest.id)
            self._manifests[manifest.id] = manifest
            self._tokens += len(manifest.tokens)
            while len(self._manifests) > self._manifests_max or (self._tokens > self._tokens_max and len(self._manifests) > 1):
                self._drop(next(iter(self._manifests)))

    def get(self, segment: str) -> Manifest | None:
        """Return the manifest of an id; None if it is not remembered."""
        with self._lock:
            return self._manifests.get(segment)

    def forget(self, segment: str) -> None:
        """Forget the manifest of an id."""
        with self._lock:
            self._drop(segment)

    def _drop(self, segment: str) -> None:
        dropped = self._manifests.pop(segment, None)
        self._tokens -= 0 if dropped is None else len(dropped.tokens)
