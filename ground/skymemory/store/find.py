"""Lookups on the satellites: which blocks are there, how long a cached beginning is, which blocks are whole (paper, section 3.8).

Failures in the sky do not raise: a missing answer is a result of its own. The core decides who is asked next, and what counts as
found, missed or unanswered (`sky_lookup.h`, `sky_word.h`).
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock

from skymemory.link.ask import is_ahead, is_other
from skymemory.link.block_entry import BlockEntry
from skymemory.link.structures import Word
from skymemory.sky.entry_satellites import Route
from skymemory.store.decisions import LookupStep, LookupSteps, is_aside
from skymemory.store.parts import Operation, StoreParts
from skymemory.store.results import CancelledLookupError, ChainResult, FindResult, Status


class Lookups(Operation):
    """Lookups on the satellites of a constellation. Thread-safe: one at a time, so that each profits from those before it."""

    def __init__(self, parts: StoreParts) -> None:
        super().__init__(parts)
        self._timing = parts.control.timing
        self._incomplete: dict[bytes, float] = {}  # blocks that lack a share, and until when they count as missing
        self._turn = Lock()
        self._lock = Lock()

    def set_incomplete(self, key: bytes) -> None:
        """Report a block as missing for a while, though some of its shares are there."""
        now_s = self._timing.clock()
        with self._lock:
            self._incomplete = {one: until_s for one, until_s in self._incomplete.items() if until_s > now_s}
            self._incomplete[key] = now_s + self._timing.lost_s

    def set_whole(self, key: bytes) -> None:
        """Note that a block was stored, so that it no longer counts as missing."""
        with self._lock:
            self._incomplete.pop(key, None)

    def ask(self, keys: Sequence[bytes], cancelled: Callable[[], bool] = lambda: False) -> list[FindResult]:
        """Ask for blocks with HAS, all at once. A result is UNANSWERED if no satellite answers over any way that there is.

        Args:
            keys: Keys of the blocks.
            cancelled: Tells, when its turn has come, whether nobody waits for the answers any more.

        Raises:
            CancelledLookupError: Nobody waits for the answers any more. Nothing was sent.
        """
        if not keys:  # a get of known blocks waits for nobody's look-up
            return []
        found: dict[bytes, BlockEntry] = {}
        with self._turn:
            if cancelled():
                raise CancelledLookupError
            some = LookupSteps(keys, is_over=self._late_search.over() is not None)
            tried: list[list[list[Route]]] = []
            while (step := some.next()) is not LookupStep.END:
                if step is LookupStep.ASK:
                    routes = self._routes.lookup_routes(keys)
                    tried += [] if routes in tried else [routes]
                    passes = self._passes(routes)
                    if some.begin(1 + tried.index(routes), len(passes)):
                        self._ask_each(passes, some, found)
                elif step is LookupStep.LOOK:
                    self._routes.look({route.satellite for one in tried[-1] for route in one})
                elif step is LookupStep.SEARCH:
                    self._ask_all([list(self._late_search.look().routes)] * len(keys), some, found)
                else:
                    self._ask_all(self._routes.lookup_routes(keys), some, found)
        told = [FindResult(key, None, some.status(index, self._is_incomplete(key))) for index, key in enumerate(keys)]
        if unanswered := len({one.key for one in told if one.status is Status.UNANSWERED}):
            self._count(unanswered=unanswered)
        return [replace(one, entry=found[one.key]) if one.status is Status.DONE else one for one in told]

    def resolve(self, entries: Sequence[BlockEntry | bytes]) -> tuple[list[BlockEntry | None], set[bytes]]:
        """Return what is known of each block, None if nothing, and the keys of which nobody said anything."""
        known = [self._index.get(entry) if isinstance(entry, bytes) else self._index.current(entry) for entry in entries]
        unknown = [entry for entry, found in zip(entries, known, strict=True) if found is None and isinstance(entry, bytes)]
        told = self.ask(unknown)
        answers = iter(told)
        found = [next(answers).entry if entry is None else entry for entry in known]
        return found, {one.key for one in told if one.status is Status.UNANSWERED}

    def _passes(self, routes: Sequence[Sequence[Route]]) -> list[Sequence[Sequence[Route]]]:
        """Return for each pass the routes for each key that are asked at once: one for each key, or all if blocks have parity."""
        most = max(map(len, routes), default=0)
        if most and self._where.constellation.cache.parity:
            return [routes]
        return [[one[at : at + 1] for one in routes] for at in range(most)]

    def _ask_each(self, passes: Sequence[Sequence[Sequence[Route]]], some: LookupSteps, found: dict[bytes, BlockEntry]) -> None:
        """Ask over these routes, one pass after the other, until the core says that no other is needed."""
        for routes in passes:
            left = [(index, key) for index, key in some.wanted() if routes[index]]
            answers, silent = self._find(left, routes)
            for (index, key), entry in zip(left, answers, strict=True):
                some.take(index, Word.BLOCK if entry is not None else Word.NOTHING if key in silent else Word.ABSENT)
            found |= {entry.key: entry for entry in answers if entry is not None}
            if not some.asked():
                break

    def _ask_all(self, routes: Sequence[Sequence[Route]], some: LookupSteps, found: dict[bytes, BlockEntry]) -> None:
        """Ask over the routes for each key, all at once, for the keys that are still wanted."""
        left = [(index, key) for index, key in some.wanted() if routes[index]]
        if left:
            answers, _ = self._find(left, routes)
            found |= {entry.key: entry for entry in answers if entry is not None}
            for index, key in left:
                some.take(index, Word.BLOCK if key in found else Word.ABSENT)
        some.asked()

    def _find(
        self, left: Sequence[tuple[int, bytes]], routes: Sequence[Sequence[Route]]
    ) -> tuple[list[BlockEntry | None], set[bytes]]:
        """Ask for some keys, each over its own routes (`ControlPlane.find_each`)."""
        self._count(questions=len(left))
        asked = list(dict.fromkeys(route for index, _ in left for route in routes[index]))
        return self._control.find_each([(key, routes[index]) for index, key in left], self._tenant, self._patience_s(asked))

    def replaced(self, entries: Sequence[BlockEntry]) -> dict[bytes, BlockEntry]:
        """Return the blocks by which another host has replaced these, so that only the old blocks lack a share."""
        told = self.ask([entry.key for entry in entries])
        return {
            one.key: one.entry
            for old, one in zip(entries, told, strict=True)
            if one.entry is not None and is_other(one.entry, old)
        }

    def newest(self, keys: Sequence[bytes]) -> dict[bytes, BlockEntry]:
        """Return the newest versions of blocks that satellites know.

        A lookup believes the first satellite that knows a block, and this may hold an older version: all servers are asked here.
        """
        first = self._routes.lookup_routes(keys)
        routes = list(dict.fromkeys((*(route for one in first for route in one), *self._routes.to_servers())))
        if not keys or not routes:
            return {}
        self._count(questions=len(keys))
        return self._control.find_latest(routes, keys, self._tenant, self._patience_s(routes))

    def prefetched_ahead(self, keys: Sequence[bytes]) -> dict[bytes, BlockEntry]:
        """Return the blocks that another host has prefetched for a future row. They are not to be purged.

        Only the current servers are asked. If none of them holds a share for the future row, a purge reaches none either.
        """
        if not keys or self._where.playing is None:
            return {}
        now_s, routes = time.time(), self._routes.to_servers()
        found = self._control.find_latest(routes, keys, self._tenant, self._control.patience_s(routes))
        row, rows = self._where.row(now_s), self._where.rows
        return {key: entry for key, entry in found.items() if is_ahead(entry, row, rows(now_s, entry.epoch))}

    def aside(self, keys: Sequence[bytes]) -> set[bytes]:
        """Return the keys of blocks of which a stand-in may hold some. These are not to be purged.

        Stand-ins without a schedule, and all in the layout `hop`, keep what they took when the lost satellite is back.
        """
        if not keys:
            return set()
        spares = self._where.spares(1, max(1, self._routes.row()))
        routes = self._routes.to(spares)
        found, silent = self._control.find(routes, keys, self._tenant, self._control.hurry_s(routes))
        denied = {key for key, entry in zip(keys, found, strict=True) if entry is None} - silent
        return {key for key in keys if is_aside(len(spares), len(routes) if key in denied else 0)}

    def longest(self, keys: Sequence[bytes], cancelled: Callable[[], bool] = lambda: False) -> ChainResult:
        """Find the longest beginning of a chain that is on the satellites.

        The first block is asked for first, as most chains that miss do so there. A binary search follows: if a block is there, so
        are its predecessors, unless one was evicted (paper, Get steps 3 to 6). These are asked for at the end.

        Args:
            keys: Keys of the chain, the first one first.
            cancelled: Tells, before each question, whether nobody waits for the result any more.

        Raises:
            CancelledLookupError: Nobody waits for the result any more.
        """
        asked: dict[int, BlockEntry | None] = {}
        low, high = 0, len(keys)  # blocks before `low` exist, those from `high` on do not
        while low < high:
            middle = (low + high) // 2 if asked else 0
            (answer,) = self.ask([keys[middle]], cancelled)
            if answer.status is Status.UNANSWERED:  # another question would take as long
                return ChainResult([], [answer.key])
            asked[middle] = answer.entry
            if answer.entry is None:
                high = middle
            else:
                low = middle + 1
        rest = [index for index in range(low) if index not in asked]
        told = self.ask([keys[index] for index in rest], cancelled)
        asked |= zip(rest, (one.entry for one in told), strict=True)
        found: list[BlockEntry] = []
        for index in range(low):
            entry = asked.get(index)
            if entry is None:
                break
            found.append(entry)
        return ChainResult(found, [one.key for one in told if one.status is Status.UNANSWERED])

    def whole(self, entries: Sequence[BlockEntry]) -> list[bool | None]:
        """Return for each block whether all its chunks are held, or None if a satellite on which that depends is silent."""
        with self._turn:
            late = self._late_search.look()
            ways = {epoch: self._late_search.ways(epoch, late) for epoch in {entry.epoch for entry in entries}}
            blocks = [(entry, way.places) for entry in entries if (way := ways[entry.epoch]) is not None]
            if len(blocks) < len(entries):
                return [None] * len(entries)
            routes = list(dict.fromkeys(route for _, places in blocks for place in places for route in place))
            held = self._control.hold_all(blocks, self._tenant, self._patience_s(routes))
            self._count(questions=len(entries), unanswered=held.count(None))
            if None in held:
                self._routes.look({route.satellite for route in routes})
            return held

    def _patience_s(self, routes: Sequence[Route]) -> float:
        return min(
            self._where.constellation.cache.deadline_ms / 1000, max(self._timing.lookup_s, self._control.patience_s(routes))
        )

    def _is_incomplete(self, key: bytes) -> bool:
        with self._lock:
            return self._incomplete.get(key, 0.0) > self._timing.clock()
