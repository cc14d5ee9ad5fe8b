"""What satellites say of blocks: which are there, how long a cached beginning is, which are whole (paper, section 3.8).

Nothing here raises for what happens in the sky: no answer is told as such.
"""

import time
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Final

from skymemory.block_entry import BlockEntry
from skymemory.handovers import Handovers
from skymemory.link.control import ControlPlane
from skymemory.placement.whereabouts import Whereabouts
from skymemory.placement.window import Route
from skymemory.reach import LOST_S, Reach
from skymemory.results import ChainResult, FindResult, Status

_QUESTION_S: Final = 1.0
"""how long a lookup waits at least for its answer, unless the deadline of blocks is shorter"""


class Lookup:
    """Questions to the satellites of a constellation. Thread-safe: one at a time, so who waits knows then what was learned."""

    def __init__(
        self,
        where: Whereabouts,
        reach: Reach,
        handovers: Handovers,
        control: ControlPlane,
        tenant: int,
        count: Callable[..., None],
    ) -> None:
        """`count`: takes counts by the names of `StoreStatistics`."""
        self._where = where
        self._reach = reach
        self._handovers = handovers
        self._control = control
        self._tenant = tenant
        self._count = count
        self._incomplete: dict[bytes, float] = {}  # blocks that miss a share; until when
        self._turn = Lock()
        self._lock = Lock()

    def set_incomplete(self, key: bytes) -> None:
        """Take a block for missing for a while, though there is something of it."""
        now_s = time.monotonic()
        with self._lock:
            self._incomplete = {one: until_s for one, until_s in self._incomplete.items() if until_s > now_s}
            self._incomplete[key] = now_s + LOST_S

    def set_whole(self, key: bytes) -> None:
        """A block was stored."""
        with self._lock:
            self._incomplete.pop(key, None)

    def ask(self, keys: Sequence[bytes]) -> list[FindResult]:
        """HAS for blocks, all at once. UNANSWERED: nobody said so, after another way was tried if there is one."""
        found: dict[bytes, BlockEntry] = {}
        left = set(keys)
        with self._turn:
            over = self._handovers.over()
            tried: list[Route] = []
            for _ in range(2 if keys else 0):
                routes = self._reach.lookup_routes()
                if not routes or routes == tried:
                    break
                left = self._asked(routes, [key for key in keys if key in left], found)
                if not left:
                    break
                self._reach.look({route.satellite for route in routes})
                tried = routes
            if over is None:
                self._search([key for key in keys if key not in found and key not in left], found)
        if left:
            self._count(unanswered=len(left))
        return [self._told(key, found.get(key), key in left) for key in keys]

    def _search(self, keys: Sequence[bytes], found: dict[bytes, BlockEntry]) -> None:
        """Ask satellites that have yet to hand something over, and those that it goes to, for blocks that others did not know."""
        if not keys:
            return
        late = self._handovers.look()
        for routes in (list(late.routes), self._reach.lookup_routes()):  # in this order: a chunk may move between the questions
            left = [key for key in keys if key not in found]
            if left and routes:
                found |= self._control.find_latest(routes, left, self._tenant, self._patience_s(routes))
                self._count(questions=len(left))

    def _told(self, key: bytes, entry: BlockEntry | None, is_unanswered: bool) -> FindResult:
        if is_unanswered:
            return FindResult(key, None, Status.UNANSWERED)
        if entry is None or self._is_incomplete(key):
            return FindResult(key, None, Status.MISS)
        return FindResult(key, entry, Status.DONE)

    def replaced(self, entries: Sequence[BlockEntry]) -> dict[bytes, BlockEntry]:
        """Return blocks that another host has put in place of these: what missed its share is the old one."""
        told = self.ask([entry.key for entry in entries])
        return {
            one.entry.key: one.entry
            for old, one in zip(entries, told, strict=True)
            if one.entry is not None and (one.entry.block_len, one.entry.chunk_len) != (old.block_len, old.chunk_len)
        }

    def laid_ahead(self, keys: Sequence[bytes]) -> dict[bytes, BlockEntry]:
        """Return blocks that another host has laid for a row to come, as satellites say that are servers now and then.

        They are not to be purged; and who has no such server loses nothing, for his purge meets none of the block either.
        """
        if not keys or self._where.playing is None:
            return {}
        now_s, routes = time.time(), self._reach.routes()
        found = self._control.find_latest(routes, keys, self._tenant, self._control.patience_s(routes))
        row, rows = self._where.row(now_s), self._where.rows
        return {key: entry for key, entry in found.items() if entry.epoch > row and entry.epoch in rows(now_s, entry.epoch)}

    def longest(self, keys: Sequence[bytes]) -> ChainResult:
        """Find the longest beginning of a chain that satellites know.

        The first block is asked for first, as the end of a prompt is mostly new, and then by binary search: a block that is there
        has its predecessors there too, unless one was evicted (Get steps 3 to 6).
        """
        asked: dict[int, BlockEntry | None] = {}
        low, high = 0, len(keys)  # blocks before `low` are there, from `high` on they are not
        while low < high:
            middle = (low + high) // 2 if asked else 0
            (answer,) = self.ask([keys[middle]])
            if answer.status is Status.UNANSWERED:  # another question would wait as long
                return ChainResult([], [answer.key])
            asked[middle] = answer.entry
            if answer.entry is None:
                high = middle
            else:
                low = middle + 1
        rest = [index for index in range(low) if index not in asked]
        told = self.ask([keys[index] for index in rest])
        asked |= zip(rest, (one.entry for one in told), strict=True)
        found: list[BlockEntry] = []
        for index in range(low):
            entry = asked.get(index)
            if entry is None:
                break
            found.append(entry)
        return ChainResult(found, [one.key for one in told if one.status is Status.UNANSWERED])

    def whole(self, entries: Sequence[BlockEntry]) -> list[bool | None]:
        """Is every chunk of these blocks held? None: that depends on a satellite that does not answer, or none can be asked."""
        with self._turn:
            late = self._handovers.look()
            ways = {epoch: self._handovers.ways(epoch, late) for epoch in {entry.epoch for entry in entries}}
            blocks = [(entry, way.places) for entry in entries if (way := ways[entry.epoch]) is not None]
            if len(blocks) < len(entries):
                return [None] * len(entries)
            routes = list(dict.fromkeys(route for _, places in blocks for place in places for route in place))
            held = self._control.hold_all(blocks, self._tenant, self._patience_s(routes))
            self._count(questions=len(entries), unanswered=held.count(None))
            if None in held:
                self._reach.look({route.satellite for route in routes})
            return held

    def _patience_s(self, routes: Sequence[Route]) -> float:
        return min(self._where.constellation.cache.deadline_ms / 1000, max(_QUESTION_S, self._control.patience_s(routes)))

    def _asked(self, routes: Sequence[Route], keys: Sequence[bytes], found: dict[bytes, BlockEntry]) -> set[bytes]:
        """Ask over these routes, and add what is found.

        Returns:
            Keys of which somebody said nothing, and nobody that the block is there.
        """
        unanswered: set[bytes] = set()
        for route in routes:
            left = [key for key in keys if key not in found]
            if not left:
                break
            answers, silent = self._control.find(route, left, self._tenant, self._patience_s([route]))
            self._count(questions=len(left))
            found |= {entry.key: entry for entry in answers if entry is not None}
            unanswered |= silent
            if len(silent) == len(left):  # another one would be waited for as long
                return silent
        return unanswered - found.keys()

    def _is_incomplete(self, key: bytes) -> bool:
        with self._lock:
            return self._incomplete.get(key, 0.0) > time.monotonic()
