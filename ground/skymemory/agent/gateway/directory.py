"""`Directory`: the values that this agent put or saw. Satellites have no list of names, so SCAN walks this one.

It is bounded: the oldest entries go first. A value of another host is here once it was asked for; one that satellites evicted
stays until it is asked for.

No step takes long, however many names there are: names lie in pages by the serials in which they came, and values whose time has
come are dropped some at a time.
"""

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Final, NamedTuple

ENTRIES_MAX: Final = 1 << 20
NAMES_BYTES_MAX: Final = 256 << 20
"""Bytes of all names together: each may be long."""
EXPIRED_AT_ONCE: Final = 1000
"""Values that are dropped in one step when their time has come: a few milliseconds."""
_PAGE_BITS: Final = 9
_STALE_MAX: Final = 1024
"""Times that count no more, before as many as there are others are sorted out."""
_SORTED_AT_ONCE: Final = 3


class Known(NamedTuple):
    """Knowledge of one value."""

    length: int
    """Length in bytes."""
    is_exact: bool
    """False: the length may be one less; only the block's was seen."""
    expires_unix_ms: int
    """Time when it expires; 0: never."""
    serial: int
    version: int = 0
    """Version of the value that was seen."""


class _Names:
    """Names of one database, in the order in which they came."""

    def __init__(self) -> None:
        self.known: dict[bytes, Known] = {}
        self.expiring = 0
        """Names whose values expire."""
        self.ends_ms = 0
        """Sum of the times when they do, in milliseconds since 1970."""
        self._pages: dict[int, dict[int, bytes]] = {}
        """Names by serial, in pages by the upper bits of the serial. Both are in ascending order."""

    def put(self, name: bytes, known: Known) -> None:
        """Note a name, with the serial that it had before, or with one above all others."""
        before = self.known.get(name)
        if before is None:
            self._pages.setdefault(known.serial >> _PAGE_BITS, {})[known.serial] = name
        self._count_end(before, -1)
        self._count_end(known, 1)
        self.known[name] = known

    def forget(self, name: bytes) -> Known | None:
        """Take a name away."""
        known = self.known.pop(name, None)
        if known is not None:
            self._count_end(known, -1)
            page = self._pages[known.serial >> _PAGE_BITS]
            del page[known.serial]
            if not page:
                del self._pages[known.serial >> _PAGE_BITS]
        return known

    def oldest(self) -> tuple[int, bytes] | None:
        """Return serial and name of the one that came first."""
        for page in self._pages.values():
            return next(iter(page.items()))
        return None

    def name_of(self, serial: int) -> bytes | None:
        """Return the name with this serial; None: it is gone."""
        return self._pages.get(serial >> _PAGE_BITS, {}).get(serial)

    def before(self, serial: int) -> Iterator[tuple[int, bytes]]:
        """Yield serials and names below a serial (0: all), the newest first."""
        for number in reversed(self._pages):
            if serial and number > serial >> _PAGE_BITS:
                continue
            page = self._pages[number]
            yield from ((one, page[one]) for one in reversed(page) if not serial or one < serial)

    def _count_end(self, known: Known | None, sign: int) -> None:
        if known is not None and known.expires_unix_ms:
            self.expiring += sign
            self.ends_ms += sign * known.expires_unix_ms


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
        # Heaps of (when, database, serial). Some count no more: the value has another end, or is gone. If they are too many, the
        # heap becomes the former one, of which each change moves some to the new one
        self._ends: list[tuple[int, int, int]] = []
        self._former_ends: list[tuple[int, int, int]] = []

    def get(self, database: int, name: bytes, now_unix_ms: int) -> Known | None:
        """Return the knowledge of a value; None: there is none, or the value has expired."""
        names = self._databases.get(database)
        known = None if names is None else names.known.get(name)
        if known is not None and 0 < known.expires_unix_ms <= now_unix_ms:
            self.remove(database, name)
            self.expired += 1
            return None
        return known

    def put(
        self, database: int, name: bytes, length: int, expires_unix_ms: int, version: int = 0, *, is_exact: bool = True
    ) -> None:
        """Note that a value is there."""
        names = self._databases.get(database)
        if names is None:
            names = self._databases[database] = _Names()
        known = names.known.get(name)
        if known is None:
            self._serial += 1
            self._count += 1
            self._bytes += len(name)
        serial = self._serial if known is None else known.serial
        names.put(name, Known(length, is_exact, expires_unix_ms, serial, version))
        if expires_unix_ms and (known is None or known.expires_unix_ms != expires_unix_ms):
            heappush(self._ends, (expires_unix_ms, database, serial))
            self._sort_out()
        while self._count > self._entries_max or self._bytes > self._bytes_max:
            self._drop_oldest()

    def remove(self, database: int, name: bytes) -> None:
        """Note that a value is not there, as far as is known."""
        names = self._databases.get(database)
        if names is None or names.forget(name) is None:
            return
        self._count -= 1
        self._bytes -= len(name)

    def expire(self, now_unix_ms: int, most: int = EXPIRED_AT_ONCE) -> bool:
        """Drop values whose time has come, at most so many; return whether there are more."""
        for ends in (self._former_ends, self._ends):
            while ends and ends[0][0] <= now_unix_ms:
                if most <= 0:
                    return True
                most -= 1
                _, database, serial = heappop(ends)
                if (name := self._databases[database].name_of(serial)) is not None:
                    self.get(database, name, now_unix_ms)
        return False

    def count(self, database: int, now_unix_ms: int) -> int:
        """Return the number of values that are there; like Redis' it may have some in it that have just expired."""
        self.expire(now_unix_ms)
        names = self._databases.get(database)
        return 0 if names is None else len(names.known)

    def counts(self, now_unix_ms: int) -> dict[int, tuple[int, int, int]]:
        """Return for each database that has some the number of values, how many of them expire, and in how many ms on average."""
        self.expire(now_unix_ms)
        return {
            number: (
                len(names.known),
                names.expiring,
                max(0, names.ends_ms // names.expiring - now_unix_ms) if names.expiring else 0,
            )
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
        """Return the next cursor (0: that was all) and up to `count` names from a cursor on (0: the first call).

        They are of at most `bytes_max` bytes, or one. The newest come first, so names that come meanwhile are not told: a scan
        ends, whatever is put, and tells no name twice. A name that is there from the first call to the last is told.
        """
        self.expire(now_unix_ms)
        names = self._databases.get(database)
        if names is None:
            return 0, []
        found: list[bytes] = []
        looked, last = 0, 0
        for serial, name in names.before(cursor):
            bytes_max -= len(name)
            if looked == count or (bytes_max < 0 and found):
                return last, found
            looked, last = looked + 1, serial
            if not 0 < names.known[name].expires_unix_ms <= now_unix_ms:
                found.append(name)
        return 0, found

    def _sort_out(self) -> None:
        """Let times that count no more not become too many, a few at each change."""
        if not self._former_ends and len(self._ends) > 2 * self._count + _STALE_MAX:
            self._former_ends, self._ends = self._ends, []
        for _ in range(min(_SORTED_AT_ONCE, len(self._former_ends))):
            end = expires_unix_ms, database, serial = heappop(self._former_ends)
            names = self._databases[database]
            name = names.name_of(serial)
            if name is not None and names.known[name].expires_unix_ms == expires_unix_ms:
                heappush(self._ends, end)

    def _drop_oldest(self) -> None:
        """Forget the oldest name of all databases."""
        found = [(*oldest, number) for number, names in self._databases.items() if (oldest := names.oldest()) is not None]
        _, name, database = min(found)
        self.remove(database, name)
