"""Counts and times of one process, until vLLM takes them."""

from __future__ import annotations

from threading import Lock
from typing import Any

_TIMES_MAX = 1000
"""of one kind between two takings; what is more is not kept"""


class Tally:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._data: dict[str, Any] = {}

    def count(self, name: str, amount: int = 1) -> None:
        """Add to a count."""
        if amount:
            with self._lock:
                self._data[name] = self._data.get(name, 0) + amount

    def time(self, name: str, duration_s: float) -> None:
        """Keep a duration, in seconds."""
        with self._lock:
            times = self._data.setdefault(f"{name}_seconds", [])
            if len(times) < _TIMES_MAX:
                times.append(duration_s)

    def take(self) -> dict[str, Any]:
        """All since it was last taken: numbers, and lists of seconds under names that end in `_seconds`."""
        with self._lock:
            data, self._data = self._data, {}
            return data
