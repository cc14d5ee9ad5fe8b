"""`IncompleteBlocks`: blocks that lack a share, and that count as missing for a while though satellites hold some of them."""

import time
from threading import Lock


class IncompleteBlocks:
    """Keys of such blocks. Thread-safe."""

    def __init__(self, duration_s: float) -> None:
        """Begin without any.

        Args:
            duration_s: Seconds for which a block counts as missing.
        """
        self._duration_s = duration_s
        self._until_s: dict[bytes, float] = {}
        self._lock = Lock()

    def add(self, key: bytes) -> None:
        """Let a block count as missing for a while."""
        now_s = time.monotonic()
        with self._lock:
            self._until_s = {one: until_s for one, until_s in self._until_s.items() if until_s > now_s}
            self._until_s[key] = now_s + self._duration_s

    def remove(self, key: bytes) -> None:
        """Note that a block was stored."""
        with self._lock:
            self._until_s.pop(key, None)

    def __contains__(self, key: bytes) -> bool:
        """Return True if a block counts as missing."""
        return self._until_s.get(key, 0.0) > time.monotonic()

    def __bool__(self) -> bool:
        """Return True if any block may count as missing."""
        return bool(self._until_s)
