"""Versions of values: which of two values under one name is the newer one.

The version of a value is a number of 64 bits in its seal. A host chooses it when it puts the value: the largest of

    the time by its clock, in microseconds since 1970
    the version of this value that it put or saw last, plus one
    the version that it chose last, for whatever value, plus one

So a host's own puts rise even if its clock is set back, and what it puts over a value that it has read is newer than that one.

Satellites keep the version with the value. A newer one takes its place. A put of an older one is refused with the version that
is held, and the host puts its value again with one above that. So of two puts of one name, one after the other, the later one
counts, whatever the hosts' clocks say, and also if a host was started again and has forgotten all versions. Of two puts at the
same time either may count, and one of the two hosts may be told `old_version`. Two that choose the same version are told apart by
their contents: the second one to come is refused (`bad_key`), and puts again.

A satellite may say any version, so what it says counts for one put alone. Only a version that was stored, or that came in a
value's seal, is remembered, and if it is far ahead of the clock it does not lift the versions of other values. Behind the largest
version there is none: such a value has to be purged first, as `KeyValue.delete` does.

A host remembers the versions of the values that it used last. If a value comes that is older than the one it knows, somebody has
put back what was replaced: it is a miss. A handover that is late brings nothing back, because satellites refuse what is older. A
deletion has a version, too (`skymemory.store.deletions`). A host that knows no version of a value takes any.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Final

from skymemory.wire.envelope import VALUE_VERSION_MAX

VALUES_MAX: Final = 1 << 16
"""Values whose versions are remembered."""
_AHEAD_US: Final = 86_400_000_000
"""A version that is ahead of the clock by more does not lift the versions of other values."""


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
            now_us = self._clock()
            above = self._known.get(key, 0) + 1
            self._last = max(now_us, self._last + 1, above if above <= now_us + _AHEAD_US else 0)
            return min(max(self._last, above), VALUE_VERSION_MAX)

    def choose_above(self, key: bytes, held: int) -> int | None:
        """Return a version above the one that a satellite says it holds; None if there is none.

        A forged word of a satellite must not lift the versions of other values.
        """
        chosen = self.choose(key)
        if chosen > held:
            return chosen
        return held + 1 if held < VALUE_VERSION_MAX else None

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

    def _remember(self, key: bytes, version: int) -> None:
        self._known[key] = version
        self._known.move_to_end(key)
        if len(self._known) > self._values_max:
            self._known.popitem(last=False)
