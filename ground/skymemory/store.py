"""`SkyStore`: keyed blocks of bytes, cut into chunks, on the satellites of a constellation (paper, sections 3.1 to 3.10).

    block -> chunks of `cache.chunk_bytes` -> servers (chunk id mod n) -> satellites (layout) -> entry satellites (window)

Where the sky follows a schedule, so does the store: blocks go to where servers are now, and are fetched from where they may be.

Nothing that happens in the sky raises: a lost packet is asked for again, a lost satellite is a miss. What raises is a
wrong argument.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from threading import Lock
from types import TracebackType
from typing import Final, Self

from skymemory.attempts import Verdict, verdict_of
from skymemory.block_entry import BlockEntry
from skymemory.clearing import Clearing
from skymemory.config import Constellation
from skymemory.handovers import Handovers
from skymemory.index.radix import RadixIndex
from skymemory.link.control import ControlPlane, Purged
from skymemory.link.native import Buffer, Transfer
from skymemory.lookup import Lookup
from skymemory.placement.structures import SCHEDULE_STAYS
from skymemory.placement.torus import Satellite
from skymemory.placement.whereabouts import Playing, Source, Whereabouts
from skymemory.prefetch import lay
from skymemory.presence import Presence
from skymemory.progress import Progress
from skymemory.reach import Reach
from skymemory.results import ChainResult, FindResult, GetResult, PrefetchResult, PutResult, Status, StoreStatistics
from skymemory.retrieval import Retrieval
from skymemory.sizing import capacity_bytes
from skymemory.touch import Touch
from skymemory.transfers import Moved, Transfers
from skymemory.wire.packets import KEY_BYTES

__all__ = ["ChainResult", "FindResult", "GetResult", "PrefetchResult", "PutResult", "SkyStore", "Status", "StoreStatistics"]

BLOCK_BYTES_MAX: Final = 1 << 26
"""the largest block that is fetched unless the caller says otherwise: a block's length is a satellite's word, and memory is
taken by it"""
PREFETCH_S: Final = 60.0
"""how long blocks are on their way to where they will be needed, at most"""


class SkyStore:
    """Blocks of 1 byte to 4 GiB - 1 under keys of 32 bytes. Thread-safe; a context manager.

    Blocks carry no checksum of their own here: each chunk has a CRC-32C on its way and in memory. `KeyValue` puts a digest
    around general values, the KV manager's blocks hold theirs.

    A local index remembers what was put and found, so that a known block is fetched without a question. A satellite that
    does not answer is replaced in the layout for a while, so that blocks can be put again at once; what it held is missed.
    While no satellite answers, calls end at once and bring nothing (`silent`), see `skymemory.reach`.
    """

    def __init__(
        self,
        constellation: Constellation,
        tenant: int | None = None,
        playing: Playing | Source | None = None,
        watch: Callable[[Moved], None] | None = None,
    ) -> None:
        """Open sockets; nothing is sent.

        Args:
            tenant: name space of the keys; by default the constellation's.
            playing: the schedule that the constellation follows, or what tells of it and is asked again by every call; without
                one the window stays around `cache.centre`.
            watch: is told of each call that moved blocks, in the thread that made it; others wait meanwhile.

        Raises:
            ValueError: a schedule for another constellation.
            OSError: no socket to be had.
        """
        self.constellation = constellation
        self.index = RadixIndex()
        self._tenant = constellation.cache.tenant if tenant is None else tenant
        self._where = Whereabouts(constellation, playing)
        self._counts: Counter[str] = Counter()  # by the names of `StoreStatistics`
        self._lock = Lock()
        self._closed = False
        with ExitStack() as opened:
            self._control = opened.enter_context(ControlPlane(constellation))
            self._reach = Reach(self._where, self._control)
            self._handovers = Handovers(self._where, self._reach, self._control)
            self._touch = opened.enter_context(closing(Touch(constellation, self.index, self._reach, self._tenant)))
            self._transfers = Transfers(constellation, self._reach, self._handovers, self._as_laid, self._add, watch)
            opened.pop_all()
        self._lookup = Lookup(self._where, self._reach, self._handovers, self._control, self._tenant, self._add)
        self._presence = Presence(self.index, self._reach, self._handovers, self._control, self._tenant, self._add)
        self._clearing = Clearing(self.index, self._reach, self._handovers, self._control, self._tenant, self._add)
        self._retrieval = Retrieval(
            self.index, self._reach, self._handovers, self._lookup, self._clearing, self._transfers, self._tenant
        )

    @classmethod
    def running(cls) -> "SkyStore | None":
        """A store on the constellation that `skymem up` started on this machine, None if none is up. It follows what is played
        to that.

        Raises:
            StateError: the record of it cannot be read.
            OSError: no socket to be had.
        """
        from skymemory.testbed.state import State  # for this only; the testbed knows the store

        up = (state := State()).running()
        return None if up is None else cls(up.constellation, playing=state.sky(up.constellation).playing)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End what runs and close the sockets; safe to call twice. Blocks stay where they are."""
        self._closed = True
        self._transfers.close()
        self._touch.close()
        self._control.close()

    @property
    def control(self) -> ControlPlane:
        """The store's control plane, for status and commands."""
        return self._control

    @property
    def whereabouts(self) -> Whereabouts:
        """Where its servers are, and which schedule they follow."""
        return self._where

    @property
    def capacity_bytes(self) -> int:
        """The longest block that its servers' stores surely hold, when all other blocks make room for it."""
        return capacity_bytes(self.constellation)

    @property
    def follows(self) -> bool:
        """True if the window follows a schedule."""
        return self._where.playing is not None

    @property
    def silent(self) -> bool:
        """True from when no satellite answered until one does: blocks are then neither looked for nor stored."""
        return self._reach.silent

    def probe(self, control: ControlPlane) -> dict[Satellite, float]:
        """Ask the servers, the ways in and a few others whether they are there, silence or not; an answer ends the silence.

        Args:
            control: whose socket asks; another one than the store's keeps no lookup waiting.

        Returns:
            Round trip times in seconds of those that answer.

        Raises:
            ValueError: a closed store.
        """
        self._begin()
        answered = self._reach.probe(control)
        self._control.expect(answered)
        return answered

    @property
    def lost(self) -> frozenset[Satellite]:
        """Satellites that do not answer while others do."""
        return self._reach.lost

    # ---- blocks -----------------------------------------------------------------------------------------------------

    def put(self, items: Sequence[tuple[bytes, Buffer]], progress: Progress | None = None) -> list[PutResult]:
        """Store blocks, all at once. A block that is there already is not stored twice. For new blocks old ones make room.

        Args:
            items: pairs of key (32 bytes) and block; the block's memory is read in place and must not change meanwhile.
            progress: called now and then.

        Returns:
            For each item its result, in order.

        Raises:
            ValueError: a key of another length, an empty block or one larger than the sky (`capacity_bytes`), a closed store.
        """
        most = self.capacity_bytes
        for key, data in items:
            _check_key(key)
            if not 1 <= memoryview(data).nbytes <= most:  # it would evict all else and then not fit
                stores = f"{self.constellation.cache.servers} servers of {self.constellation.satellite.store_mib} MiB"
                raise ValueError(f"block of {memoryview(data).nbytes:,} bytes; allowed are 1 to {most:,} ({stores})")
        self._begin()
        start_s = time.perf_counter()
        transfers = [Transfer(self._entry(key, memoryview(data).nbytes), self._tenant, data) for key, data in items]
        self._transfers.put(transfers, progress)
        results = [self._put_result(transfer) for transfer in transfers]
        stored = [result.entry for result in results if result.entry is not None]
        self.index.add(stored)
        self.index.moved(entry.key for entry in stored)
        for entry in stored:
            self._lookup.set_whole(entry.key)
        self._add(
            puts=len(stored),
            put_failures=len(results) - len(stored),
            expired=sum(result.status is Status.EXPIRED for result in results),
            put_s=time.perf_counter() - start_s,
        )
        return results

    def get(
        self,
        entries: Sequence[BlockEntry | bytes],
        progress: Progress | None = None,
        *,
        into: Sequence[memoryview | None] | None = None,
        block_bytes_max: int = BLOCK_BYTES_MAX,
        aside: bool = False,
    ) -> list[GetResult]:
        """Fetch blocks, all at once.

        A block that does not come whole within `cache.deadline_ms` is a miss. If a satellite was found lost meanwhile, or back
        though another stands in for it, it is asked for once more, with as much time: whoever sees the same losses finds the
        same places, and so blocks that other hosts put there. Of a block of which a satellite says that it no longer has its
        share the rest is purged (paper, section 3.9): as soon as one chunk is gone the others are of no use. With
        `cache.lazy_purge = false` it is not asked for again for a while, and the rest is left to the satellites. Silence
        purges nothing: it may be this host's, and others have the block.

        Args:
            entries: what `put`, `find` or `find_longest` told about blocks; or keys, which are looked up first.
            progress: called now and then.
            into: for each entry the caller's memory to which its block goes, writable; None: memory is taken for it. A block of
                another length is a miss, and nothing of it is written; of one that does not come whole parts may be.
            block_bytes_max: longer blocks are misses; their memory is not taken.
            aside: over a socket of its own: gets without it do not wait for this one, whatever it brings.

        Returns:
            For each entry its result, in order.

        Raises:
            ValueError: a key of another length, not as many buffers as entries, a closed store.
        """
        keys = [entry if isinstance(entry, bytes) else entry.key for entry in entries]
        for key in keys:
            _check_key(key)
        room = [None] * len(keys) if into is None else into
        if len(room) != len(keys):
            raise ValueError(f"{len(room)} buffers for {len(keys)} blocks; each needs one, or none is given")
        self._begin()
        start_s = time.perf_counter()
        known, unanswered = self._resolve(entries)
        words = [Status.UNANSWERED if key in unanswered else Status.MISS for key in keys]
        results = [GetResult(key, None, status, 0.0, known=False) for key, status in zip(keys, words, strict=True)]
        wanted = {index: entry for index, entry in enumerate(known) if entry is not None}
        self._retrieval.fetch(results, wanted, room, block_bytes_max, progress, aside=aside)
        if len(wanted) < len(keys) and (reason := self._no_routes()):
            results = [one if index in wanted else replace(one, status=reason) for index, one in enumerate(results)]
        self.index.moved(result.key for result in results if result.ok)
        hits = sum(result.ok for result in results)
        self._add(
            hits=hits,
            misses=len(results) - hits,
            expired=sum(result.status is Status.EXPIRED for result in results),
            get_s=time.perf_counter() - start_s,
        )
        return results

    # ---- lookups ----------------------------------------------------------------------------------------------------

    def find(self, key: bytes) -> BlockEntry | None:
        """What is known of a block: from the local index, else from the satellites (`find_longest`).

        Raises:
            ValueError: a key of another length, a closed store.
        """
        return self.find_each([key])[0]

    def find_each(self, keys: Sequence[bytes]) -> list[BlockEntry | None]:
        """What is known of blocks, as `find`, all at once.

        Raises:
            ValueError: a key of another length, a closed store.
        """
        return [one.entry for one in self.look_up(keys)]

    def look_up(self, keys: Sequence[bytes], *, fresh: bool = False) -> list[FindResult]:
        """As `find_each`, and says whether what is not found is not there or nobody answered.

        Args:
            fresh: the index is not believed, which knows nothing of what other hosts purged and satellites evicted: satellites
                are asked, and of blocks of several chunks for all of them.

        Raises:
            ValueError: a key of another length, a closed store.
        """
        for key in keys:
            _check_key(key)
        self._begin()
        known = [None if fresh else self.index.get(key) for key in keys]
        unknown = [key for key, entry in zip(keys, known, strict=True) if entry is None]
        told = self._lookup.ask(unknown)
        found = {one.key: self._as_laid(one.entry) for one in told if one.entry is not None}
        found |= {entry.key: entry for entry in known if entry is not None}
        unanswered = {one.key for one in told if one.status is Status.UNANSWERED}
        if fresh:
            several = [entry for entry in found.values() if entry.chunk_total > 1]
            for entry, whole in zip(several, self._lookup.whole(several) if several else (), strict=True):
                if not whole:
                    del found[entry.key]
                if whole is None:
                    unanswered.add(entry.key)
            for key in set(keys) - found.keys() - unanswered:
                self.index.remove(key)
        self.index.add(found.values())  # so that who wants it need not ask again
        missed = {key: Status.UNANSWERED if key in unanswered else Status.MISS for key in keys}
        return [FindResult(key, found.get(key), Status.DONE if key in found else missed[key]) for key in keys]

    def find_longest(self, keys: Sequence[bytes], *, block_bytes_max: int = BLOCK_BYTES_MAX) -> list[BlockEntry]:
        """Return the entries that `look_up_longest` finds.

        Raises:
            ValueError: a key of another length, a closed store.
        """
        return self.look_up_longest(keys, block_bytes_max=block_bytes_max).entries

    def look_up_longest(self, keys: Sequence[bytes], *, block_bytes_max: int = BLOCK_BYTES_MAX) -> ChainResult:
        """Find the longest cached beginning of a chain of block keys, and say of which keys nobody answered.

        As far as the local index knows the chain, its answer counts. For the blocks behind, the nearest server is asked
        (`Lookup.longest`).

        Args:
            keys: of a prompt's blocks, the first one first.
            block_bytes_max: a longer block ends the chain.

        Returns:
            Entries of the first blocks, without a gap. If nobody answers, what the index knows, and the keys that were asked
            for.

        Raises:
            ValueError: a key of another length, a closed store.
        """
        for key in keys:
            _check_key(key)
        self._begin()
        known = self.index.longest_prefix(keys)
        told = self._lookup.longest(keys[len(known) :])
        found = known + told.entries
        fits = [entry.block_len <= block_bytes_max for entry in found]
        found = found[: fits.index(False)] if False in fits else found
        if len(found) > len(known):
            self.index.insert(found)
        return ChainResult(found, told.unanswered)

    def confirm(self, entries: Sequence[BlockEntry]) -> list[BlockEntry]:
        """Ask all servers for their shares of blocks, all at once: those that are whole.

        An entry of the index says that a block was there once. What is found to be gone is forgotten; what depends on a
        server that does not answer now is not confirmed, and stays known.

        Returns:
            The entries whose every chunk is held, in order.

        Raises:
            ValueError: a closed store.
        """
        self._begin()
        held = self._lookup.whole([self._as_laid(entry) for entry in entries])
        for entry, whole in zip(entries, held, strict=True):
            if whole is False:
                self.index.remove(entry.key)
        return [entry for entry, whole in zip(entries, held, strict=True) if whole]

    def still_there(self, chains: Sequence[Sequence[BlockEntry]]) -> list[list[BlockEntry]]:
        """Of chains that were found, what is still there, as far as a few quick questions tell (`Presence.check`).

        Nobody waits for a satellite that is silent: then what was found counts. What is gone is forgotten, and its rest purged
        as by `get`.

        Returns:
            Of each chain its beginning.

        Raises:
            ValueError: a closed store.
        """
        self._begin()
        there, denied = self._presence.check(chains)
        self._touch.crowded |= bool(denied)
        useless = [key for key, one in denied.items() if verdict_of(one) is Verdict.PURGE]
        routes = self._presence.awake(self._clearing.routes(useless)) if useless else []
        elsewhere = self._lookup.laid_ahead(useless)
        is_blind = bool(useless) and self._handovers.is_schedule_unknown(routes)
        for key in useless:
            denied[key].is_other, denied[key].is_blind = key in elsewhere, is_blind
        verdicts = {key: verdict_of(one) for key, one in denied.items()}
        self._retrieval.carry_out(verdicts, elsewhere, routes, self._control.hurry_s(routes))
        return there

    def touch(self, keys: Sequence[bytes]) -> int:
        """Have satellites evict the end of a chain of blocks before its beginning, without which the end is of no use.

        They evict first what was not moved for the longest time, and a chain is stored and fetched from its beginning on. So
        one chunk of each block is fetched from each server, the last block first. Nothing is done while the sky is far from
        full, nor for a chain that was touched lately.

        Args:
            keys: of a chain, its first block first. Those after one that is not in the index are left out.

        Returns:
            Blocks that were touched.

        Raises:
            ValueError: a key of another length, a closed store.
        """
        for key in keys:
            _check_key(key)
        self._begin()
        touched = self._touch.chain(keys)
        self._add(touches=touched)
        return touched

    def purge(self, keys: Sequence[bytes]) -> Purged:
        """Forget blocks, here and on the satellites; once more if one was silent and is taken for lost.

        Raises:
            ValueError: a key of another length, a closed store.
        """
        for key in keys:
            _check_key(key)
        self._begin()
        return self._clearing.purge(keys)

    def make_way(self, keys: Sequence[bytes]) -> list[Purged]:
        """Forget blocks so that others can be put under their keys.

        As `purge`, for each block; but the first server is asked alone, who has a share of every block, and the others only for
        blocks that have chunks elsewhere. What is left of a block without its first share is found by the `put` (`bad_key`).

        Raises:
            ValueError: a key of another length, a closed store.
        """
        for key in keys:
            _check_key(key)
        self._begin()
        return self._clearing.make_way(keys)

    def prefetch(self, keys: Sequence[bytes], at_s: float, *, deadline_s: float = PREFETCH_S) -> list[PrefetchResult]:
        """Lay blocks for a time to come: their shares go to where the servers will be then (paper, end of section 3.7).

        Each goes once, not through every step of the window on the way, and waits there; it can be fetched meanwhile, over
        inter-satellite links. This host knows where; others find the blocks again when that time has come.

        Args:
            keys: of blocks; those that are not in the local index are looked up.
            at_s: Unix time.
            deadline_s: when what has not arrived counts as `expired`. It may still arrive.

        Returns:
            For each key its result, in order.

        Raises:
            ValueError: a key of another length, a time that is past, a closed store.
        """
        for key in keys:
            _check_key(key)
        self._begin()
        if not at_s >= time.time():
            raise ValueError(f"{at_s:.0f} is past; allowed are Unix times from now on")
        row = self._where.row(at_s)
        known, unanswered = self._resolve(keys)
        reason = self._no_routes()
        found = list({entry.key: entry for entry in known if entry is not None}.values())
        if reason is not None or row == self._where.row(time.time()):
            held = self._lookup.whole(found) if found and reason is None else []
            words = {None: Status.UNANSWERED, True: Status.DONE, False: Status.MISS}
            statuses = {entry.key: words[whole] for entry, whole in zip(found, held, strict=False)}
            moved: dict[bytes, int] = {}
        else:
            # From here on shares may be there: whatever comes of it, they are looked for there as well
            self.index.add([replace(entry, epoch=row) for entry in found])
            laid = lay(found, row, self._reach, self._handovers, self._control, self._tenant, deadline_s)
            statuses = {one.entry.key: one.status for one in laid}
            moved = {one.entry.key: one.moved for one in laid}
        results = []
        for key in keys:
            status = statuses.get(key, reason or (Status.UNANSWERED if key in unanswered else Status.MISS))
            results.append(PrefetchResult(key, status, row, moved.get(key, 0)))
        self._add(prefetches=sum(result.ok for result in results))
        return results

    def stats(self) -> StoreStatistics:
        """Counts as they are now."""
        with self._lock:
            counted = StoreStatistics(**self._counts)
        return replace(counted, retries=counted.retries + self._control.retries, satellites_lost=self._reach.losses)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._closed:
            raise ValueError("the store was closed")
        self._where.refresh()

    def _entry(self, key: bytes, block_len: int) -> BlockEntry:
        chunk_len = min(self.constellation.cache.chunk_bytes, block_len)
        stays = self.constellation.cache.host == "satellite"  # the satellites may follow a schedule of the ground's
        return BlockEntry(key, block_len, chunk_len, -(-block_len // chunk_len), SCHEDULE_STAYS if stays else 0, time.time())

    def _no_routes(self) -> Status | None:
        """Return why nothing can be moved now; None: it can."""
        if self._reach.silent:
            return Status.UNANSWERED
        return None if self._reach.routes() else Status.NO_SATELLITE

    def _put_result(self, transfer: Transfer) -> PutResult:
        status = self._retrieval.end_of(transfer.status)
        entry = transfer.entry if status is Status.DONE else None
        return PutResult(transfer.entry.key, status, entry, transfer.duration_s)

    # questions

    def _resolve(self, entries: Sequence[BlockEntry | bytes]) -> tuple[list[BlockEntry | None], set[bytes]]:
        """What is known of blocks, None if nothing; and the keys of which nobody said anything."""
        known = [self.index.get(entry) if isinstance(entry, bytes) else self._as_laid(entry) for entry in entries]
        unknown = [entry for entry, found in zip(entries, known, strict=True) if found is None and isinstance(entry, bytes)]
        told = self._lookup.ask(unknown)
        answers = iter(told)
        found = [next(answers).entry if entry is None else entry for entry in known]
        return found, {one.key for one in told if one.status is Status.UNANSWERED}

    def _as_laid(self, entry: BlockEntry) -> BlockEntry:
        """The entry, with the row that this host has laid its block for since somebody was told of it."""
        known = self.index.get(entry.key)
        return entry if known is None or known.epoch in (0, entry.epoch) else replace(entry, epoch=known.epoch)

    def _add(self, **counts: float) -> None:
        with self._lock:
            self._counts.update(counts)


def _check_key(key: bytes) -> None:
    if len(key) != KEY_BYTES:
        raise ValueError(f"key of {len(key)} bytes; {KEY_BYTES} are allowed")
