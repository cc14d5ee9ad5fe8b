"""Counts and times of one process, until vLLM takes them."""

from __future__ import annotations

from threading import Lock
from typing import Any

_TIMES_MAX = 1000
"""Most times of one kind that are kept between two calls of `take`."""


class Tally:
    """Counts and times, by name. Thread-safe."""

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
        """Return all data since the last call: numbers, and lists of seconds under names that end in `_seconds`."""
        with self._lock:
            data, self._data = self._data, {}
            return data
