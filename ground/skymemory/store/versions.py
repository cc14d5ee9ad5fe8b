"""Versions of values: which of two values under one name is the newer one.

The version of a value is a number of 64 bits in its seal. A host chooses it when it puts the value: the largest of

    the time by its clock, in microseconds since 1970
    the version of this value that it put or saw last, plus one
    the version that it chose last, for whatever value, plus one

So a host's own puts rise even if its clock is set back, and what it puts over a value that it has read is newer than that one. If
two hosts put the same name, and neither has read the other's value, the one whose clock is ahead counts as the newer if the puts
are less apart than the clocks. So clocks should agree, as NTP makes them do, to less than the time between two hosts' puts of one
name.

A host remembers the versions of the values that it used last. If a value comes that is older than the one it knows, somebody has
put back what was replaced: it is a miss. It is not purged, as it may be the newer one of a host whose clock is behind. A deletion
counts as one above the version that was known. A host that knows no version of a value takes any; so does a program that was
started again.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Final

VALUES_MAX: Final = 1 << 16
"""Values whose versions are remembered."""


def now_unix_us() -> int:
    """Return the time by this host's clock in microseconds since 1970."""
    return time.time_ns() // 1000


class Versions:
    """Versions of the values that this host used last, by key. Thread-safe."""

    def __init__(self, clock: Callable[[], int] = now_unix_us, values_max: int = VALUES_MAX) -> None:
        """Begin without any.

        Args:
            clock: Returns microseconds since 1970.
            values_max: Values that are remembered, at least 1. The one unused for the longest time goes first.
        """
        self._clock = clock
        self._values_max = values_max
        self._last = 0
        self._known: OrderedDict[bytes, int] = OrderedDict()
        self._lock = Lock()

    def choose(self, key: bytes) -> int:
        """Return a version for a new value."""
        with self._lock:
            self._last = max(self._clock(), self._known.get(key, 0) + 1, self._last + 1)
            return self._last

    def stored(self, key: bytes, version: int) -> None:
        """Remember that a value was put."""
        with self._lock:
            self._remember(key, max(version, self._known.get(key, 0)))

    def seen(self, key: bytes, version: int) -> bool:
        """Remember a value that came, and return True; return False if it is older than the one that is known."""
        with self._lock:
            if version < self._known.get(key, 0):
                return False
            self._remember(key, version)
            return True

    def deleted(self, key: bytes) -> None:
        """Remember that a value was deleted: what was put before is older."""
        with self._lock:
            if key in self._known:
                self._remember(key, self._known[key] + 1)

    def _remember(self, key: bytes, version: int) -> None:
        self._known[key] = version
        self._known.move_to_end(key)
        if len(self._known) > self._values_max:
            self._known.popitem(last=False)
