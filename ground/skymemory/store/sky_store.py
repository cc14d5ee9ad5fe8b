"""`SkyStore`: keyed blocks of bytes, cut into chunks, on the satellites of a constellation (paper, sections 3.1 to 3.10).

    block -> chunks of `cache.chunk_bytes` -> servers (`sky_spread.h`) -> satellites (layout) -> entry satellites (window)

If the constellation follows a schedule, blocks are stored at the current places of the servers, and fetched from all places that
they may have.

Failures in the sky do not raise: a lost packet is asked for again, and a lost satellite is a miss. Wrong arguments raise.
"""

import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from copy import copy
from dataclasses import replace
from threading import Event, Lock
from typing import TypeVar

from skymemory.common.progress import Progress
from skymemory.common.whole_file import Buffer
from skymemory.link.block_entry import BlockEntry
from skymemory.link.control import ControlPlane, Purged
from skymemory.link.timing import Timing
from skymemory.sky import entry_satellites
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.sky.file_sections import Cache
from skymemory.sky.tenant_secret import secret_of
from skymemory.sky.whereabouts import Playing, Source, Whereabouts
from skymemory.store.block_store import BLOCK_BYTES_MAX, BlockStore
from skymemory.store.incomplete import IncompleteBlocks
from skymemory.store.openings import Openings
from skymemory.store.parts import StoreParts
from skymemory.store.put_again import PutsAgain
from skymemory.store.radix import RadixIndex
from skymemory.store.results import ChainResult, FindResult, GetResult, PrefetchResult, PutResult, StoreStatistics
from skymemory.store.runner import Moved, Runner
from skymemory.store.steps import PREFETCH_S, StoreSteps, checked_room
from skymemory.store.tidying import Tidying
from skymemory.store.touch import Touches
from skymemory.wire.address import Satellite

_T = TypeVar("_T")


class SkyStore(BlockStore):
    """Blocks on the satellites of one constellation.

    Blocks carry no checksum of their own here: each chunk has a CRC-32C on its way and in memory. `KeyValue`
    seals general values, and the KV manager its blocks.

    A local index remembers what was put and found, so a known block is fetched without a question. If a satellite does not
    answer, another one stands in for it for a while, so blocks can be put again at once; what it held is missed. While no
    satellite answers, calls end at once and bring nothing (`silent`).
    """

    def __init__(
        self,
        constellation: Constellation,
        tenant: int | None = None,
        playing: Playing | Source | None = None,
        watch: Callable[[Moved], None] | None = None,
        timing: Timing | None = None,
        tenant_secret: bytes | None = None,
    ) -> None:
        """Open sockets. Nothing is sent.

        Args:
            constellation: The satellites, and the settings of the cache.
            tenant: Name space of the keys; the constellation's by default.
            playing: The schedule that the constellation follows, or an object that tells of it and is asked again by every
                call. Without it the window stays around `cache.centre`.
            watch: Called after each call that moved blocks, in the thread that made it; by several threads at once.
            timing: Times after which satellites are asked again, and for which the store waits for them.
            tenant_secret: The secret of what is stored; this user's default for the constellation by default
                (`skymemory.sky.tenant_secret`), which is looked for when it is needed first.

        Raises:
            ValueError: The schedule is of another constellation.
            OSError: The system has no socket left.
        """
        self.constellation = constellation
        self.index = RadixIndex()
        self._tenant = constellation.cache.tenant if tenant is None else tenant
        self._tenant_secret = tenant_secret
        self._where = Whereabouts(constellation, playing)
        self._counts: Counter[str] = Counter()  # by the names of `StoreStatistics`
        self._lock = Lock()
        self._closed = Event()  # views share it
        self._views: dict[int, SkyStore] = {}
        self._control = ControlPlane(constellation, timing)
        self._runner = Runner(self._where, self._control, self._add, watch)
        incomplete = IncompleteBlocks(self._control.timing.lost_s)
        tidying = Tidying(self._runner)
        self._parts = StoreParts(
            self._where, self.index, incomplete, self._control, self._runner, tidying, self._tenant, self._add
        )
        self._touches = Touches(self._parts)
        self._puts_again = PutsAgain(self._parts)
        self._use(self._parts)

    def _use(self, parts: StoreParts) -> None:
        self._steps = StoreSteps(parts, self._puts_again, self._touches)
        self._openings = Openings(parts, self._puts_again)

    @property
    def runner(self) -> Runner:
        """The runner of the store's operations, for other faces of the store (`AsyncStore`)."""
        return self._runner

    @property
    def steps(self) -> StoreSteps:
        """Steps of the store's calls, without I/O."""
        return self._steps

    def set_tenant(self, tenant: int) -> None:
        """Name another tenant from now on. For `of_tenant`, whose views nobody has used yet."""
        self._tenant = tenant
        self._use(replace(self._parts, tenant=tenant))

    def of_tenant(self, tenant: int) -> "SkyStore":
        """Return a view on the blocks of another tenant, over the same links and with the same index.

        No two tenants may use the same key. The view ends with this store, and must not be closed by itself. It is for values:
        `touch` is this store's.
        """
        if tenant == self._tenant:
            return self
        with self._lock:
            view = self._views.get(tenant)
            if view is None:
                view = self._views[tenant] = copy(self)
                view.set_tenant(tenant)
        return view

    def close(self) -> None:
        """End what runs, and close the sockets; safe to call twice. Blocks stay where they are."""
        self._closed.set()
        self._puts_again.stop()  # it must not take the end of its operations for a fault
        self._control.close()
        self._puts_again.close()

    @property
    def control(self) -> ControlPlane:
        """The store's control plane, for status and commands."""
        return self._control

    @property
    def settings(self) -> Cache:
        """The section `[cache]` of the constellation file."""
        return self.constellation.cache

    @property
    def tenant_secret(self) -> bytes:
        """The secret of what is stored, see `BlockStore.tenant_secret`."""
        if self._tenant_secret is None:
            self._tenant_secret = secret_of(self.constellation)
        return self._tenant_secret

    @property
    def whereabouts(self) -> Whereabouts:
        """The places of the servers, and the schedule that they follow."""
        return self._where

    @property
    def capacity_bytes(self) -> int:
        """Bytes of the longest block that the servers surely hold, if all other blocks make room for it."""
        return self._steps.capacity_bytes

    @property
    def follows(self) -> bool:
        """True if the window follows a schedule."""
        return self._where.playing is not None

    @property
    def silent(self) -> bool:
        """True after no satellite has answered, until one does. Blocks are then neither looked for nor stored."""
        return self._runner.reach().is_silent

    @property
    def knows_absence(self) -> bool:
        """True if so many satellites answer that a block which they do not have is not there."""
        reach = self._runner.reach()
        return not reach.is_silent and len(reach.lost) <= self.settings.parity

    def suites(self) -> frozenset[str]:
        """Return the security suites of the associations that carry blocks; waits for what runs. None without a keyring."""
        return self._control.suites()

    def probe(self, control: ControlPlane) -> dict[Satellite, float]:
        """Ping the servers, the entry satellites and a few others, also while the sky is silent. An answer ends the silence.

        Args:
            control: The control plane whose socket is used. If it is not the store's own, no look-up waits for it.

        Returns:
            Round trip times, in seconds, of the satellites that answered.

        Raises:
            ValueError: The store was closed.
        """
        self._check_open()
        self._runner.refresh()
        routes = self._around()
        answered = control.ping(routes, control.patience_s(routes))
        if control is not self._control:
            self._control.expect(answered)
            if answered and self.silent:
                self._control.ping([one for one in routes if one.satellite in answered], self._control.patience_s(routes))
        return answered

    @property
    def lost(self) -> frozenset[Satellite]:
        """Satellites that do not answer while others do."""
        return self._runner.reach().lost

    @property
    def is_mended(self) -> bool:
        """True if no block waits to be put again (`opened`)."""
        return self._puts_again.is_idle

    # ---- blocks -----------------------------------------------------------------------------------------------------

    def put(
        self, items: Sequence[tuple[bytes, Buffer]], progress: Progress | None = None, *, deadline_s: float | None = None
    ) -> list[PutResult]:
        """Store blocks, all at once. A block that is there already is not stored twice. Old blocks make room for new ones.

        A sealed block names its version (`skymemory.wire.envelope`): it replaces an older one, and does nothing to a newer one.

        Args:
            items: Pairs of key (32 bytes) and block. The block's memory is read in place and must not change meanwhile.
            progress: Called now and then with chunks done and chunks in all.
            deadline_s: Seconds after which what is not stored is called back, and EXPIRED; None: `cache.deadline_ms` alone.

        Returns:
            A result for each item, in order.

        Raises:
            ValueError: A key has another length, a block is empty or larger than `capacity_bytes`, or the store was closed.
        """
        self._check_open()
        return self._runner.do(self._steps.put(items), progress, deadline_s=deadline_s)

    def get(
        self,
        entries: Sequence[BlockEntry | bytes],
        progress: Progress | None = None,
        *,
        into: Sequence[memoryview | None] | None = None,
        block_bytes_max: int = BLOCK_BYTES_MAX,
        deadline_s: float | None = None,
    ) -> list[GetResult]:
        """Fetch blocks, all at once.

        A block that does not come whole within `cache.deadline_ms` is a miss. It is asked for once more, with as much time, if
        a satellite was found lost meanwhile, or is back while another one stands in for it: hosts that see the same losses find
        the same places, and so the blocks that others put there.

        If a satellite says that it no longer has its share of a block, the rest is purged (paper, section 3.9), for the other
        chunks are of no use. With `cache.lazy_purge = false` the block is not asked for again for a while instead. Silence
        purges nothing: only this host may be cut off.

        Args:
            entries: Entries from `put`, `find` or `find_longest`, or keys, which are looked up first.
            progress: Called now and then with chunks done and chunks in all.
            into: The caller's writable memory for each block, or None if memory is to be taken. A block of another length is a
                miss, and nothing of it is written. A block that does not come whole may be written in part.
            block_bytes_max: Longer blocks are misses, and no memory is taken for them.
            deadline_s: Seconds after which what has not come is called back, and EXPIRED; None: `cache.deadline_ms` alone.

        Returns:
            A result for each entry, in order.

        Raises:
            ValueError: A key has another length, there are not as many buffers as entries, or the store was closed.
        """
        self._check_open()
        return self._runner.do(self._steps.get(entries, into, block_bytes_max), progress, deadline_s=deadline_s)

    def get_each(
        self,
        entries: Sequence[BlockEntry | bytes],
        *,
        into: Sequence[memoryview | None] | None = None,
        block_bytes_max: int = BLOCK_BYTES_MAX,
    ) -> Generator[GetResult, None, None]:
        """Fetch blocks, and yield the result of each as soon as it and all before it are there (`BlockStore.get_each`).

        Blocks are asked for in order, as many as `AHEAD_BYTES` hold beyond those that were yielded; with memory of the caller all
        at once. The deadline of a block counts from then. If one does not come, those that were asked for with it end first, and
        it is then asked for again as by `get`. Between the blocks of a stream others get theirs. If the store is closed, what has
        not come is CANCELLED.

        Raises:
            ValueError: As by `get`, at once.
        """
        room = checked_room(entries, into)
        self._check_open()
        return self._steps.gets.get_each(entries, room, block_bytes_max)

    def opened(self, result: GetResult, opens: Callable[[bytearray], _T | None]) -> _T | None:
        """Open a block that was fetched, and mend it (`BlockStore.opened`).

        If it has parity and is not right, it is fetched again without the chunks of each satellite in turn. Chunks that were
        missing, or wrong, are put again later (`skymemory.store.put_again`).

        Raises:
            ValueError: The store was closed.
        """
        self._check_open()
        return self._openings.opened(result, opens)

    # ---- lookups ----------------------------------------------------------------------------------------------------

    def find(self, keys: Sequence[bytes], *, fresh: bool = False) -> list[FindResult]:
        """Return what is known of blocks: from the local index, else from the satellites (`BlockStore.find`).

        With `fresh` the servers of a look-up are asked for each block, and all servers for their shares of blocks of several
        chunks. What is gone is forgotten.

        Raises:
            ValueError: A key has another length, or the store was closed.
        """
        self._check_open()
        return self._runner.do(self._steps.find(keys, fresh=fresh))

    def find_longest(
        self,
        keys: Sequence[bytes],
        *,
        fresh: bool = False,
        block_bytes_max: int = BLOCK_BYTES_MAX,
        cancelled: Callable[[], bool] | None = None,
    ) -> ChainResult:
        """Find the longest cached beginning of a chain of blocks (`BlockStore.find_longest`).

        As far as the local index knows the chain, its answer counts. The nearest server is asked for the blocks behind
        (`Lookups.longest`). If nobody answers, the result is what the index knows, and the keys that were asked for. With `fresh`
        all servers are asked whether they hold their shares of the last block that was found, and of the others if that block is
        not whole. What is gone is forgotten.

        Raises:
            CancelledLookupError: Nobody waits for the result any more.
            ValueError: A key has another length, or the store was closed.
        """
        self._check_open()
        steps = self._steps.find_longest(keys, fresh=fresh, block_bytes_max=block_bytes_max)
        return self._runner.do(steps, cancelled=cancelled)

    def known(self, keys: Sequence[bytes]) -> int:
        """Return how many first blocks of a chain the local index knows (`BlockStore.known`)."""
        return len(self.index.longest_prefix(keys))

    def still_there(self, chains: Sequence[Sequence[BlockEntry]]) -> list[list[BlockEntry]]:
        """Ask a few quick questions whether chains that were found are still there (`Checks.check`).

        Nobody waits for a silent satellite: what was found counts then. What is gone is forgotten, and its rest is purged as by
        `get`. A block that another host has replaced is there as that host put it.

        Returns:
            The beginning of each chain that is still there.

        Raises:
            ValueError: The store was closed.
        """
        self._check_open()
        return self._runner.do(self._steps.still_there(chains))

    def touch(self, keys: Sequence[bytes]) -> int:
        """Have satellites evict the end of a chain of blocks before its beginning, without which the end is of no use.

        Satellites evict first what was not moved for the longest time, and a chain is stored and fetched from its beginning on.
        So one chunk of each block is fetched from each server, the last block first. Nothing is done while the sky is far from
        full, nor for a chain that was touched lately.

        Args:
            keys: Keys of a chain, the first block first. Keys behind one that is not in the index are left out.

        Returns:
            The number of blocks that were touched.

        Raises:
            ValueError: A key has another length, or the store was closed.
        """
        self._check_open()
        return self._runner.do(self._steps.touch(keys))

    def purge(self, keys: Sequence[bytes]) -> Purged:
        """Forget blocks, here and on the satellites. The purge is repeated if a satellite was silent and is taken for lost.

        Raises:
            ValueError: A key has another length, or the store was closed.
        """
        self._check_open()
        return self._runner.do(self._steps.purge(keys))

    def forget(self, results: Sequence[GetResult]) -> None:
        """Begin to purge blocks that were fetched and are of no use (`BlockStore.forget`), and do not wait for that.

        Spared are newer versions, other contents of the same version, and what is kept for a row to come.

        Raises:
            ValueError: The store was closed.
        """
        self._check_open()
        self._runner.refresh()
        self._steps.forget(results)

    def make_way(self, keys: Sequence[bytes]) -> list[Purged]:
        """Forget blocks so that others can be put under their keys.

        This is `purge` for each block with fewer questions: the servers of a look-up, one of which knows it, are asked alone,
        and the others only for blocks that have chunks elsewhere. If a block has lost its first share, its rest stays until
        `put` finds it (`bad_key`).

        Returns:
            What became of each purge, in order.

        Raises:
            ValueError: A key has another length, or the store was closed.
        """
        self._check_open()
        return self._runner.do(self._steps.make_way(keys))

    def prefetch(self, keys: Sequence[bytes], at_s: float, *, deadline_s: float = PREFETCH_S) -> list[PrefetchResult]:
        """Move blocks to where their servers will be at a time to come (`BlockStore.prefetch`).

        Each share goes once, not through every step of the window on the way, and waits there. It can be fetched meanwhile, over
        inter-satellite links. Only this host knows where; others find the blocks again when that time has come. Blocks that have
        not arrived after `deadline_s` count as EXPIRED, and may still arrive.

        Raises:
            ValueError: A key has another length, the time is past, or the store was closed.
        """
        self._check_open()
        return self._runner.do(self._steps.prefetch(keys, at_s, deadline_s=deadline_s))

    def stats(self) -> StoreStatistics:
        """Return the counts as they are now."""
        with self._lock:
            counted = StoreStatistics(**self._counts)
        return replace(counted, retries=counted.retries + self._control.retries, satellites_lost=self._runner.reach().losses)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise ValueError("the store was closed")

    def _around(self) -> list[Route]:
        """Return the routes that a probe pings: to the servers, to the entry satellites, and to a few others for comparison."""
        now_s, lost = time.time(), self.lost
        servers = entry_satellites.server_routes(self._where, now_s, lost)
        entries = [Route(one.entry, one.entry) for one in servers]
        others = entry_satellites.others(self._where, now_s, lost | {one for route in servers for one in route})
        return list(dict.fromkeys([*servers, *entries, *others]))

    def _add(self, **counts: float) -> None:
        with self._lock:
            self._counts.update(counts)
