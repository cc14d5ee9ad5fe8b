"""`Directory`: the values that this agent put or saw. Satellites have no list of names, so SCAN walks this one.

It is bounded: the oldest entries go first. A value of another host is here once it was asked for; one that satellites evicted
stays until it is asked for.
"""

from bisect import bisect_left
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

ENTRIES_MAX: Final = 1 << 20
NAMES_BYTES_MAX: Final = 256 << 20
"""Bytes of all names together: each may be long."""
_DEAD_MAX: Final = 1024
"""Places of forgotten names, before as many as there are others are closed up."""


@dataclass(slots=True)
class Known:
    """Knowledge of one value."""

    length: int
    """Length in bytes."""
    is_exact: bool
    """False: the length may be one less; only the block's was seen."""
    expires_unix_ms: int
    """Time when it expires; 0: never."""
    serial: int


class _Names:
    """Names of one database, in the order in which they came."""

    def __init__(self) -> None:
        self.known: dict[bytes, Known] = {}
        self.serials: list[int] = []
        self.names: list[bytes] = []
        self.expiring = 0
        """Names whose values expire."""
        self.ends_ms = 0
        """Sum of the times when they do, in milliseconds since 1970."""
        self._first = 0  # no name before this place is there

    def oldest(self) -> tuple[int, bytes] | None:
        """Return serial and name of the one that came first."""
        for at in range(self._first, len(self.names)):
            known = self.known.get(self.names[at])
            if known is not None and known.serial == self.serials[at]:
                self._first = at
                return known.serial, self.names[at]
        return None

    def forget(self, name: bytes) -> Known | None:
        """Take a name away; its place is kept for a while, but not its bytes."""
        known = self.known.pop(name, None)
        if known is not None:
            self.note_end(known, 0)
            self.names[bisect_left(self.serials, known.serial)] = b""
            self._close_up()
        return known

    def note_end(self, known: Known, expires_unix_ms: int) -> None:
        """Note that a value expires at another time, or never (0)."""
        before = known.expires_unix_ms
        self.expiring += (expires_unix_ms > 0) - (before > 0)
        self.ends_ms += expires_unix_ms - before
        known.expires_unix_ms = expires_unix_ms

    def name_of(self, serial: int) -> bytes | None:
        """Return the name with this serial; None: it is gone."""
        at = bisect_left(self.serials, serial)
        if at == len(self.serials) or self.serials[at] != serial:
            return None
        known = self.known.get(self.names[at])
        return self.names[at] if known is not None and known.serial == serial else None

    def _close_up(self) -> None:
        """Forget the places of names that are gone."""
        if len(self.names) < 2 * len(self.known) + _DEAD_MAX:
            return
        places = [(one.serial, name) for name, one in self.known.items()]
        places.sort()
        self.serials = [serial for serial, _ in places]
        self.names = [name for _, name in places]
        self._first = 0


class Directory:
    """Names of all databases. Used from one thread."""

    def __init__(self, entries_max: int = ENTRIES_MAX, bytes_max: int = NAMES_BYTES_MAX) -> None:
        """Make an empty one.

        Args:
            entries_max: Number of names, about 0.4 kB each besides their bytes.
            bytes_max: Bytes of all names together.
        """
        self._entries_max = entries_max
        self._bytes_max = bytes_max
        self._bytes = 0
        self._databases: dict[int, _Names] = {}
        self._count = 0
        self._serial = 0
        self.expired = 0
        """Values that expired since the beginning."""
        self._ends: list[tuple[int, int, int]] = []  # heap of (when, database, serial); some are long past

    def get(self, database: int, name: bytes, now_unix_ms: int) -> Known | None:
        """Return the knowledge of a value; None: there is none, or the value has expired."""
        names = self._databases.get(database)
        known = None if names is None else names.known.get(name)
        if known is not None and 0 < known.expires_unix_ms <= now_unix_ms:
            self.remove(database, name)
            self.expired += 1
            return None
        return known

    def put(self, database: int, name: bytes, length: int, expires_unix_ms: int, *, is_exact: bool = True) -> None:
        """Note that a value is there."""
        names = self._databases.get(database)
        if names is None:
            names = self._databases[database] = _Names()
        known = names.known.get(name)
        if known is not None:
            known.length, known.is_exact = length, is_exact
            names.note_end(known, expires_unix_ms)
        else:
            self._serial += 1
            known = names.known[name] = Known(length, is_exact, 0, self._serial)
            names.note_end(known, expires_unix_ms)
            names.serials.append(self._serial)
            names.names.append(name)
            self._count += 1
            self._bytes += len(name)
            while self._count > self._entries_max or self._bytes > self._bytes_max:
                self._drop_oldest()
        known = names.known.get(name)
        if expires_unix_ms and known is not None:
            heappush(self._ends, (expires_unix_ms, database, known.serial))
            if len(self._ends) > 2 * self._count + _DEAD_MAX:
                self._rebuild_ends()

    def remove(self, database: int, name: bytes) -> None:
        """Note that a value is not there, as far as is known."""
        names = self._databases.get(database)
        if names is None or names.forget(name) is None:
            return
        self._count -= 1
        self._bytes -= len(name)

    def count(self, database: int, now_unix_ms: int) -> int:
        """Return the number of values that are there."""
        self._expire(now_unix_ms)
        names = self._databases.get(database)
        return 0 if names is None else len(names.known)

    def counts(self, now_unix_ms: int) -> dict[int, tuple[int, int, int]]:
        """Return for each database that has some the number of values, how many of them expire, and in how many ms on average."""
        self._expire(now_unix_ms)
        return {
            number: (len(names.known), names.expiring, names.ends_ms // names.expiring - now_unix_ms if names.expiring else 0)
            for number, names in sorted(self._databases.items())
            if names.known
        }

    @property
    def databases(self) -> list[int]:
        """Numbers of all databases that have had names."""
        return list(self._databases)

    def scan(
        self, database: int, cursor: int, count: int, now_unix_ms: int, bytes_max: int = NAMES_BYTES_MAX
    ) -> tuple[int, list[bytes]]:
        """Return the next cursor (0: that was all) and about `count` names from a cursor on (0: the first call).

        They are of at most `bytes_max` bytes, or one. The newest come first, so names that come meanwhile are not told: a scan
        ends, whatever is put, and tells no name twice. A name that is there from the first call to the last is told.
        """
        self._expire(now_unix_ms)
        names = self._databases.get(database)
        if names is None:
            return 0, []
        end = bisect_left(names.serials, cursor) if cursor else len(names.serials)
        first = max(0, end - count)
        found: list[bytes] = []
        for at in range(end - 1, first - 1, -1):
            bytes_max -= len(names.names[at])
            if bytes_max < 0 and found:
                first = at + 1
                break
            known = names.known.get(names.names[at])
            if known is not None and known.serial == names.serials[at]:
                found.append(names.names[at])
        return (0 if first == 0 else names.serials[first]), found

    def _expire(self, now_unix_ms: int) -> None:
        while self._ends and self._ends[0][0] <= now_unix_ms:
            _, database, serial = heappop(self._ends)
            if (name := self._databases[database].name_of(serial)) is not None:
                self.get(database, name, now_unix_ms)

    def _rebuild_ends(self) -> None:
        self._ends = sorted(
            (one.expires_unix_ms, number, one.serial)
            for number, names in self._databases.items()
            for one in names.known.values()
            if one.expires_unix_ms
        )

    def _drop_oldest(self) -> None:
        """Forget the oldest name of all databases."""
        found = [(*oldest, number) for number, names in self._databases.items() if (oldest := names.oldest()) is not None]
        _, name, database = min(found)
        self.remove(database, name)
