"""`StoreSteps`: what the calls of a store do, without I/O (`skymemory.store.runner.Steps`).

`SkyStore` does the steps in the thread of its caller, `AsyncStore` in an event loop.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Final

from skymemory.common.whole_file import Buffer
from skymemory.link.block_entry import BlockEntry
from skymemory.link.control import Purged
from skymemory.store.block_store import BLOCK_BYTES_MAX, check_keys
from skymemory.store.find import Lookups
from skymemory.store.get import Gets
from skymemory.store.parts import StoreParts
from skymemory.store.prefetch import Prefetches
from skymemory.store.purge import Purges
from skymemory.store.put import Puts
from skymemory.store.put_again import PutsAgain
from skymemory.store.results import ChainResult, FindResult, GetResult, PrefetchResult, PutResult, Status
from skymemory.store.runner import Steps
from skymemory.store.sizing import capacity_bytes, stores_words
from skymemory.store.still_there import Checks
from skymemory.store.touch import Touches

PREFETCH_S: Final = 60.0
"""Seconds that a prefetch may take by default."""


class StoreSteps:
    """Steps of one store, for one tenant. Thread-safe. `SkyStore` says what each call does, returns and raises."""

    def __init__(self, parts: StoreParts, puts_again: PutsAgain, touches: Touches) -> None:
        self._parts = parts
        self._index = parts.index
        self._where = parts.where
        self._lookups = Lookups(parts)
        self._checks = Checks(parts)
        self._purges = Purges(parts)
        self._puts = Puts(parts)
        self._prefetches = Prefetches(parts)
        self._puts_again = puts_again
        self._touches = touches
        self.gets = Gets(parts, self._lookups)
        """Gets of the store, which can be streamed, too."""
        self.capacity_bytes = capacity_bytes(parts.where.constellation)
        """Bytes of the longest block that the servers surely hold."""

    def put(self, items: Sequence[tuple[bytes, Buffer]]) -> Steps[list[PutResult]]:
        """Store blocks."""
        most = self.capacity_bytes
        check_keys([key for key, _ in items])
        for _, data in items:
            if not 1 <= memoryview(data).nbytes <= most:  # a larger block would evict all others and then not fit
                stores = stores_words(self._where.constellation)
                raise ValueError(f"block of {memoryview(data).nbytes:,} bytes; allowed are 1 to {most:,} ({stores})")
        return (yield from self._puts.put(items))

    def get(
        self,
        entries: Sequence[BlockEntry | bytes],
        into: Sequence[memoryview | None] | None = None,
        block_bytes_max: int = BLOCK_BYTES_MAX,
    ) -> Steps[list[GetResult]]:
        """Fetch blocks."""
        return (yield from self.gets.get(entries, checked_room(entries, into), block_bytes_max))

    def find(self, keys: Sequence[bytes], *, fresh: bool = False) -> Steps[list[FindResult]]:
        """Return what is known of blocks."""
        check_keys(keys)
        known = [None if fresh else self._index.get(key) for key in keys]
        unknown = [key for key, entry in zip(keys, known, strict=True) if entry is None]
        told = yield from self._lookups.ask(unknown, fresh=fresh)
        found = {one.key: self._index.current(one.entry) for one in told if one.entry is not None}
        found |= {entry.key: entry for entry in known if entry is not None}
        unanswered = {one.key for one in told if one.status is Status.UNANSWERED}
        if fresh:
            several = [entry for entry in found.values() if entry.chunk_total > 1]
            whole = yield from self._lookups.whole(several)
            for entry, is_whole in zip(several, whole, strict=True):
                if not is_whole:
                    del found[entry.key]
                if is_whole is None:
                    unanswered.add(entry.key)
            for key in set(keys) - found.keys() - unanswered:
                self._index.remove(key)
        self._index.add(found[one.key] for one in told if one.key in found)  # nobody needs to ask for these again
        missed = {key: Status.UNANSWERED if key in unanswered else Status.MISS for key in keys}
        return [FindResult(key, found.get(key), Status.DONE if key in found else missed[key]) for key in keys]

    def find_longest(
        self, keys: Sequence[bytes], *, fresh: bool = False, block_bytes_max: int = BLOCK_BYTES_MAX
    ) -> Steps[ChainResult]:
        """Find the longest cached beginning of a chain of blocks."""
        check_keys(keys)
        known = self._index.longest_prefix(keys)
        told = yield from self._lookups.longest(keys[len(known) :], block_bytes_max)
        found = known + told.entries
        fits = [entry.block_len <= block_bytes_max for entry in found]
        found = found[: fits.index(False)] if False in fits else found
        if len(found) > len(known):
            self._index.insert(found)
        return ChainResult((yield from self._whole_beginning(found)) if fresh else found, told.unanswered)

    def still_there(self, chains: Sequence[Sequence[BlockEntry]]) -> Steps[list[list[BlockEntry]]]:
        """Ask a few quick questions whether chains that were found are still there."""
        if self._parts.runner.reach().is_silent:
            return [list(chain) for chain in chains]
        checked = yield from self._checks.check(chains)
        if checked.others:
            chains = yield from self._with_replaced(chains, sorted(checked.others))
            checked = yield from self._checks.check(chains)
        self._touches.crowded |= bool(checked.gone)
        self.gets.give_up(checked.gone.values())
        return checked.there

    def touch(self, keys: Sequence[bytes]) -> Steps[int]:
        """Have satellites evict the end of a chain of blocks before its beginning."""
        check_keys(keys)
        touched = yield from self._touches.chain(keys)
        self._parts.count(touches=touched)
        return touched

    def purge(self, keys: Sequence[bytes]) -> Steps[Purged]:
        """Forget blocks, here and on the satellites."""
        check_keys(keys)
        self._puts_again.forget(keys)
        return (yield from self._purges.purge(keys))

    def forget(self, results: Sequence[GetResult]) -> None:
        """Begin to purge blocks that were fetched and are of no use."""
        entries = [result.entry for result in results if result.entry is not None]
        self._puts_again.forget(entry.key for entry in entries)
        self._purges.forget(entries)

    def make_way(self, keys: Sequence[bytes]) -> Steps[list[Purged]]:
        """Forget blocks so that others can be put under their keys."""
        check_keys(keys)
        self._puts_again.forget(keys)
        return (yield from self._purges.make_way(keys))

    def prefetch(self, keys: Sequence[bytes], at_s: float, *, deadline_s: float = PREFETCH_S) -> Steps[list[PrefetchResult]]:
        """Move blocks to where their servers will be at a time to come."""
        check_keys(keys)
        if not at_s >= time.time():
            raise ValueError(f"the time {at_s:.0f} is past; allowed are Unix times from now on")
        now, row = self._where.row(time.time()), self._where.row(at_s)
        known, why = yield from self._lookups.resolve(keys)
        found = list({entry.key: entry for entry in known if entry is not None}.values())
        if row == now:
            words = {None: Status.UNANSWERED, True: Status.DONE, False: Status.MISS}
            whole = yield from self._lookups.whole(found)
            statuses = {entry.key: words[one] for entry, one in zip(found, whole, strict=True)}
            moved: dict[bytes, int] = {}
        else:
            # From here on shares may be at their future places, even if the prefetch fails, so gets must look there too
            self._index.add([replace(entry, epoch=row) for entry in found])
            told = yield from self._prefetches.to_row(found, row, deadline_s)
            statuses = {entry.key: one.status for entry, one in zip(found, told, strict=True)}
            moved = {entry.key: self._prefetches.moved(entry, now, row) for entry in found}
        results = [PrefetchResult(key, statuses.get(key, why.get(key, Status.MISS)), row, moved.get(key, 0)) for key in keys]
        self._parts.count(prefetches=sum(result.ok for result in results))
        return results

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _with_replaced(self, chains: Sequence[Sequence[BlockEntry]], others: Sequence[bytes]) -> Steps[list[list[BlockEntry]]]:
        """Return chains with the blocks by which other hosts replaced those of keys `others`, and take these into the index."""
        known = {entry.key: entry for chain in chains for entry in chain}
        told = yield from self._lookups.ask(others, fresh=True)
        newest = {one.key: one.entry for one in told if one.entry is not None}
        # A satellite that holds a version from before it was cut off tells nothing of the block that was found. Whoever looked
        # the chain up has no use for a block of another length.
        replaced = {
            key: entry
            for key, entry in newest.items()
            if entry.version >= known[key].version and entry.block_len == known[key].block_len
        }
        self._index.add(replaced.values())
        return [[replaced.get(entry.key, entry) for entry in chain] for chain in chains]

    def _whole_beginning(self, chain: list[BlockEntry]) -> Steps[list[BlockEntry]]:
        """Return the beginning of a chain of which all servers hold their shares. While the sky is silent, believe the chain."""
        if not chain or (yield from self._whole(chain[-1:])) or self._parts.runner.reach().is_silent:
            return chain
        whole = {entry.key for entry in (yield from self._whole(chain))}
        return list(takewhile(lambda entry: entry.key in whole, chain))

    def _whole(self, entries: Sequence[BlockEntry]) -> Steps[list[BlockEntry]]:
        """Return the blocks of which all servers hold their shares, and forget those that are gone.

        A block that depends on a server that does not answer now is neither returned nor forgotten.
        """
        held = yield from self._lookups.whole([self._index.current(entry) for entry in entries])
        for entry, whole in zip(entries, held, strict=True):
            if whole is False:
                self._index.remove(entry.key)
        return [entry for entry, whole in zip(entries, held, strict=True) if whole]


def checked_room(entries: Sequence[BlockEntry | bytes], into: Sequence[memoryview | None] | None) -> Sequence[memoryview | None]:
    """Return memory, or None, for each block.

    Raises:
        ValueError: A key has another length, or there are not as many buffers as entries.
    """
    check_keys([entry if isinstance(entry, bytes) else entry.key for entry in entries])
    room = [None] * len(entries) if into is None else into
    if len(room) != len(entries):
        raise ValueError(f"{len(room)} buffers for {len(entries)} blocks; allowed is one buffer for each block, or None for all")
    return room
