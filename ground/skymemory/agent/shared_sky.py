"""The constellation, for all parts of the agent: one store, its threads, and whether a satellite answers.

Nothing here raises for what happens in the sky, nor because there is none yet: answers are then misses.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import takewhile
from typing import Any, Final, NamedTuple, TypeVar

from prometheus_client import CollectorRegistry, Gauge

from skymemory.agent.call_thread import Lane
from skymemory.agent.constellation_source import ConstellationSource, Serving
from skymemory.agent.joined_calls import (
    ChainCall,
    FindCall,
    GetCall,
    PutCall,
    joins_chain,
    joins_find,
    joins_get,
    joins_put,
    split,
)
from skymemory.agent.keyring_watch import KeyringWatch
from skymemory.agent.models import Model
from skymemory.agent.observer import Observer
from skymemory.agent.tracing import NOWHERE, Asked, Origin, Tracing
from skymemory.agent.window_metrics import WindowMetrics
from skymemory.agent.window_watch import WindowWatch
from skymemory.common.whole_file import Buffer
from skymemory.link.block_entry import BlockEntry
from skymemory.link.control import Purged
from skymemory.link.local_address import has_moved
from skymemory.sky.constellation import ConfigError
from skymemory.store.block_store import BLOCK_BYTES_MAX, check_keys
from skymemory.store.results import ChainResult, FindResult, GetResult, PrefetchResult, PutResult, Status
from skymemory.store.sizing import blocks_held
from skymemory.store.sky_store import SkyStore
from skymemory.wire.address import Satellite

T = TypeVar("T")

_log = logging.getLogger(__name__)

LATELY_S: Final = 6.0
"""Time for which a satellite counts as answering after its last answer: three questions."""
_PROBE_S: Final = 2.0
"""Period in which satellites are asked whether they are there."""
_POLL_S: Final = 0.5
"""Period in which the source is asked for another constellation, and satellites are asked while none answers."""
_LEARN_AFTER_S: Final = 0.001
"""Time from an answer until the agent learns from its get: by then the answer has left."""
_PURGED_AT_ONCE: Final = 64
"""Blocks of one call of a purge: about 10 ms with ten servers, for which all other questions wait."""
_TOUCHES_MAX: Final = 16
"""Chains that wait to be touched; the order of more is left to chance."""


class Size(NamedTuple):
    """Capacity of the sky."""

    blocks: int
    """Blocks of the length that was asked for."""
    servers: int
    store_mib: int


_PrefetchRequest = tuple[Sequence[bytes], float]
_Question = Callable[[SkyStore | None], Any]


class SharedSky:
    """The sky as all engines and clients of one agent share it; used from one event loop.

    Gets, gets aside, puts and questions have a thread each: a put never holds up a get, and a get aside no other get. Only wrong
    arguments raise: `ValueError` for a key that is not 32 bytes long.
    """

    def __init__(self, source: ConstellationSource, registry: CollectorRegistry, tracing: Tracing | None = None) -> None:
        """Open nothing yet. `tracing` is closed with it."""
        self.store: SkyStore | None = None
        """Store, closed and replaced when another constellation comes up; None: no constellation is known."""
        self.rtt_s: dict[Satellite, float] = {}
        """Round trips of the satellites that answered when they were asked last."""
        self.observer = Observer(registry, lambda: self.rtt_s, tracing)
        """Observer, which also knows what is worth fetching."""
        self.observer.estimator.waiting = self._waiting
        self.models: Iterable[Model] = ()
        """Models whose engines have used this agent; `EngineServer` sets it."""
        self.is_loading = True
        """True until the constellation was looked for once, and its satellites were asked whether they are there."""
        self._source = source
        self._why = source.missing()
        self._refusal = ""
        """Words about satellites that refuse this host's keys, as they are in the log."""
        self._failed = False
        """The constellation could not be opened, which may be put right: a secret or a keyring that is missing, for example."""
        self._no_keyring = ""
        """Mistake in the keyring of another constellation, which is not served before the file is right."""
        self.window: WindowWatch | None = None
        """State of the window; None: no constellation is known."""
        self._keyring: KeyringWatch | None = None
        self._answered_s: float | None = None
        self._probed_s: float | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._closing = False
        self._free_s = 0.0
        """Time when the last get ended (`time.perf_counter`)."""
        self._learning: asyncio.TimerHandle | None = None
        self._down: Lane[GetCall, list[GetResult]] = Lane("skymem-get", self._get_each, joins_get)
        self._aside: Lane[GetCall, list[GetResult]] = Lane("skymem-aside", lambda gets: self._get(gets, aside=True), joins_get)
        self._up: Lane[PutCall, list[PutResult]] = Lane("skymem-put", self._put, joins_put)
        self._asks: Lane[FindCall, list[FindResult]] = Lane("skymem-find", self._find, joins_find)
        self._chains: Lane[ChainCall, list[BlockEntry]] = Lane("skymem-chain", self._find_longest, joins_chain)
        self._questions: Lane[_Question, Any] = Lane("skymem-ask", lambda calls: [call(self.store) for call in calls])
        self._touches: Lane[Sequence[bytes], int] = Lane("skymem-touch", self._touch)
        self._purge_turn = asyncio.Lock()
        self._prefetches: Lane[_PrefetchRequest, list[PrefetchResult]] = Lane("skymem-prefetch", self._prefetch)
        self._watch: Lane[None, None] = Lane("skymem-watch", self._look)
        up = Gauge("skymem_sky_reachable", "1 while a satellite has answered lately.", registry=registry)
        up.set_function(lambda: float(self.reachable))
        WindowMetrics(registry, lambda: self.window)

    @property
    def reachable(self) -> bool:
        """A satellite answered lately."""
        return self.store is not None and self._answered_s is not None and time.monotonic() - self._answered_s <= LATELY_S

    @property
    def tenant_secret(self) -> bytes | None:
        """Secret of what this host stores itself, such as values; None: no constellation is known."""
        store = self.store
        return None if store is None else store.tenant_secret

    @property
    def silent(self) -> bool:
        """True if there is no constellation, or no satellite of it answers (`SkyStore.silent`)."""
        store = self.store
        return store is None or store.silent

    @property
    def knows_absence(self) -> bool:
        """True if a block that was not found is not there (`SkyStore.knows_absence`)."""
        return self.store is not None and self.store.knows_absence

    @property
    def is_refused(self) -> bool:
        """True if satellites refuse this host's keys, and none answers under them."""
        store = self.store
        return store is not None and not (self.rtt_s and not store.silent) and bool(store.control.refused)

    @property
    def unready(self) -> str | None:
        """Return why no block can be fetched now; None: blocks can be fetched."""
        store = self.store
        if store is None:
            return self._why
        if self.reachable:
            return None
        refusal = store.control.refusal()
        versions = "" if self.window is None else self.window.version_words
        return refusal or self._no_keyring or versions or "no satellite of the constellation answers"

    @property
    def keyring_mistake(self) -> str:
        """Reason why the keyring that is in place is not used, while keys of before are; '' if it is used."""
        return self._no_keyring or ("" if self._keyring is None else self._keyring.why)

    async def start(self) -> None:
        """Look for the constellation once, and again from then on. It need not be there."""
        self._watcher = asyncio.create_task(self._watch_on())

    async def close(self, grace_s: float = 5.0) -> None:
        """Let what was asked for come to its end for a while; then cancel it and close the sockets."""
        self._closing = True
        if self._watcher is not None:
            self._watcher.cancel()
            with suppress(asyncio.CancelledError):
                await self._watcher
        if self._learning is not None:
            self._learning.cancel()
        asking = (self._asks, self._chains, self._questions, self._watch)
        lanes = (self._down, self._aside, self._up, self._touches, self._prefetches, *asking)
        waits = [asyncio.create_task(lane.drained()) for lane in lanes]
        await asyncio.wait(waits, timeout=grace_s)
        store, self.store = self.store, None
        if store is not None:
            await asyncio.to_thread(store.close)  # this cancels transfers, so their callers go on
        await asyncio.wait(waits)
        for lane in lanes:
            lane.close()
        await asyncio.to_thread(self.observer.close)

    # ---- blocks -----------------------------------------------------------------------------------------------------

    async def get(
        self,
        keys: Sequence[bytes],
        *,
        into: Sequence[memoryview] | None = None,
        block_bytes_max: int = BLOCK_BYTES_MAX,
        origin: Origin = NOWHERE,
        aside: bool = False,
        tenant: int | None = None,
    ) -> list[GetResult]:
        """Fetch blocks (`SkyStore.get`).

        Args:
            origin: Origin of the request, for its trace.
            aside: For much that is not urgent: others do not wait for it.
            tenant: Tenant of the blocks; None: the constellation's. The other methods have it too.

        Raises:
            ValueError: A key of another length, or memory that cannot be written to.
        """
        check_keys(keys)
        room = [None] * len(keys) if into is None else into
        if len(room) != len(keys) or any(view is not None and (view.readonly or not view.c_contiguous) for view in room):
            raise ValueError("each block needs memory that is writable and contiguous, or none is given")
        if not keys:
            return []
        get = GetCall(keys, room, block_bytes_max, origin, tenant)
        if aside:
            return await self._aside.run(get)
        results = await self._down.run(get)
        self.observer.get_answered()
        if self._learning is None and not self._closing:
            self._learning = asyncio.get_running_loop().call_later(_LEARN_AFTER_S, self._learn)
        return results

    def _learn(self) -> None:
        """In the event loop: in another thread it would hold up this one as much, for one of them runs at a time."""
        more = self.observer.learn() and not self._closing
        self._learning = asyncio.get_running_loop().call_later(_LEARN_AFTER_S, self._learn) if more else None

    async def put(self, items: Sequence[tuple[bytes, Buffer]], *, tenant: int | None = None) -> list[PutResult]:
        """Store blocks (`SkyStore.put`). A block that is empty is `bad_length`, one that the sky cannot hold `too_large`."""
        check_keys([key for key, _ in items])
        return await self._up.run(PutCall(items, tenant)) if items else []

    async def find(self, keys: Sequence[bytes], *, fresh: bool = False, tenant: int | None = None) -> list[FindResult]:
        """Return what is known of blocks (`SkyStore.find`); UNANSWERED while there is no constellation."""
        check_keys(keys)
        if not fresh:
            return await self._asks.run(FindCall(keys, tenant)) if keys else []
        unanswered = [FindResult(key, None, Status.UNANSWERED) for key in keys]
        return await self._ask(lambda store: store.find(keys, fresh=True), unanswered, tenant) if keys else []

    async def find_longest(self, keys: Sequence[bytes], *, block_bytes: int, cached: int = 0) -> list[BlockEntry]:
        """Return the longest beginning of a chain of blocks that can be fetched (`SkyStore.find_longest`, `still_there`).

        Args:
            block_bytes: A block of another length ends the chain.
            cached: The first blocks, which nobody will fetch; whether they are still there is not asked.
        """
        check_keys(keys)
        return await self._chains.run(ChainCall(keys, block_bytes, cached)) if keys else []

    async def find_chain(self, keys: Sequence[bytes], *, fresh: bool, block_bytes_max: int) -> ChainResult:
        """Return the longest cached beginning of a chain of blocks of any length (`SkyStore.find_longest`)."""
        check_keys(keys)
        return await self._ask(
            lambda store: store.find_longest(keys, fresh=fresh, block_bytes_max=block_bytes_max), ChainResult([], list(keys))
        )

    async def prefetch(self, keys: Sequence[bytes], at_s: float) -> list[PrefetchResult]:
        """Prefetch blocks for a time to come (`SkyStore.prefetch`). A time that has passed meanwhile counts as now."""
        check_keys(keys)
        return await self._prefetches.run((keys, at_s)) if keys else []

    def size(self, block_bytes: int) -> Size:
        """Return how many blocks of one length the sky can hold, and its parts; zeros while there is no constellation."""
        store = self.store
        if store is None:
            return Size(0, 0, 0)
        sky = store.constellation
        # The record of formats takes a slot: in a store that blocks fill it would evict the beginning of a new chain
        return Size(blocks_held(sky, block_bytes, other_chunks=1), sky.cache.servers, sky.satellite.store_mib)

    async def used(self, keys: Sequence[bytes]) -> None:
        """Have satellites evict the end of a chain before its beginning (`SkyStore.touch`). Left out when many wait for that."""
        check_keys(keys)
        if len(self._touches.waiting) < _TOUCHES_MAX:
            await self._touches.run(keys)

    async def purge(self, keys: Sequence[bytes], *, tenant: int | None = None) -> Purged:
        """Forget blocks, here and on the satellites (`SkyStore.purge`). Not confirmed while there is no constellation.

        Many blocks go some at a time, and one purge after the other has its turn. What others ask goes on in between.
        """
        check_keys(keys)
        chunks, confirmed = 0, True
        for first in range(0, len(keys), _PURGED_AT_ONCE):
            some = keys[first : first + _PURGED_AT_ONCE]
            async with self._purge_turn:
                done = await self._ask(partial(_purge_some, some), Purged(0, False), tenant)
            chunks, confirmed = chunks + done.chunks, confirmed and done.confirmed
        return Purged(chunks, confirmed)

    async def forget(self, results: Sequence[GetResult], *, tenant: int | None = None) -> None:
        """Purge blocks that were fetched and are of no use (`SkyStore.forget`)."""
        await self._ask(lambda store: store.forget(results), None, tenant)

    async def make_way(self, keys: Sequence[bytes]) -> list[Purged]:
        """Forget blocks so that others can be put under their keys (`SkyStore.make_way`)."""
        check_keys(keys)
        unconfirmed = [Purged(0, False) for _ in keys]
        return await self._ask(lambda store: store.make_way(keys), unconfirmed) if keys else []

    async def _ask(self, call: Callable[[SkyStore], T], otherwise: T, tenant: int | None = None) -> T:
        def ask(store: SkyStore | None) -> T:
            return self._tried(store, call, otherwise, tenant)

        result: T = await self._questions.run(ask)
        return result

    def opened(self, result: GetResult, opens: Callable[[bytearray], T | None], tenant: int | None = None) -> T | None:
        """Open a block that `get` fetched, and mend it (`BlockStore.opened`). Not for the event loop's thread."""
        return self._tried(self.store, lambda store: store.opened(result, opens), None, tenant)

    # ---- in the threads ---------------------------------------------------------------------------------------------

    def _tried(self, store: SkyStore | None, call: Callable[[SkyStore], T], otherwise: T, tenant: int | None = None) -> T:
        if store is None:
            return otherwise
        try:
            return call(store if tenant is None else store.of_tenant(tenant))
        except Exception:
            if store is self.store:  # the store was not closed meanwhile: a fault of ours, and a miss for the caller
                _log.exception("the store failed, so the blocks are missed")
            return otherwise

    def _get(self, requests: list[GetCall], *, aside: bool = False) -> list[list[GetResult]]:
        keys = [key for request in requests for key in request.keys]
        into = [view for request in requests for view in request.into]
        most = requests[0].block_bytes_max
        missed = [GetResult(key, None, Status.UNANSWERED, 0.0, known=False) for key in keys]
        store = self.store
        asked_s = requests[0].asked_s if aside else max(requests[0].asked_s, self._free_s)
        self.observer.get_begins(store, keys, asked_s, aside=aside)
        results = self._tried(store, lambda store: store.get(keys, into=into, block_bytes_max=most), missed, requests[0].tenant)
        each = split(results, [len(request.keys) for request in requests])
        self.observer.get_ends(
            results,
            lambda: [Asked(one.asked_ns, one.origin, its) for one, its in zip(requests, each, strict=True)],
            aside=aside,
        )
        if not aside:
            self._free_s = time.perf_counter()
        return each

    def _get_each(self, requests: list[GetCall]) -> Iterable[list[GetResult]]:
        """Fetch the blocks of all requests at once. Each is answered as soon as its blocks, and those before them, are there."""
        return self._get(requests) if len(requests) == 1 else self._get_streamed(requests)

    def _get_streamed(self, requests: list[GetCall]) -> Iterator[list[GetResult]]:
        store = self.store
        self.observer.get_begins(store, [key for one in requests for key in one.keys], max(requests[0].asked_s, self._free_s))
        each: list[list[GetResult]] = []
        with closing(self._streamed(store, requests)) as stream:
            for request in requests:
                if each:
                    yield each[-1]
                each.append([next(stream) for _ in request.keys])
            next(stream, None)
        results = [result for its in each for result in its]
        self.observer.get_ends(
            results, lambda: [Asked(one.asked_ns, one.origin, its) for one, its in zip(requests, each, strict=True)]
        )
        self._free_s = time.perf_counter()
        yield each[-1]

    def _streamed(self, store: SkyStore | None, requests: list[GetCall]) -> Generator[GetResult, None, None]:
        """Fetch blocks in order. If the store fails, those that have not come are missed."""
        keys, tenant = [key for one in requests for key in one.keys], requests[0].tenant
        into = [view for one in requests for view in one.into]
        done = 0
        try:
            if store is not None:
                of_tenant = store if tenant is None else store.of_tenant(tenant)
                with closing(of_tenant.get_each(keys, into=into, block_bytes_max=requests[0].block_bytes_max)) as stream:
                    for result in stream:
                        done += 1
                        yield result
        except Exception:
            if store is self.store:  # as in `_tried`
                _log.exception("the store failed, so the blocks are missed")
        for key in keys[done:]:
            yield GetResult(key, None, Status.UNANSWERED, 0.0, known=False)

    def _put(self, requests: list[PutCall]) -> list[list[PutResult]]:
        items = [item for request in requests for item in request.items]
        results = [PutResult(key, Status.UNANSWERED, None, 0.0) for key, _ in items]
        store, start_s = self.store, time.perf_counter()
        if store is not None:
            most = store.capacity_bytes
            lengths = [memoryview(data).nbytes for _, data in items]
            fits = [index for index, length in enumerate(lengths) if 1 <= length <= most]
            for index, length in enumerate(lengths):
                if not 1 <= length <= most:
                    status = Status.BAD_LENGTH if length == 0 else Status.TOO_LARGE
                    results[index] = PutResult(items[index][0], status, None, 0.0)
            nothing: list[PutResult] = []
            done = nothing
            if fits:
                done = self._tried(store, lambda store: store.put([items[index] for index in fits]), nothing, requests[0].tenant)
            for index, result in zip(fits, done, strict=False):
                results[index] = result
        self.observer.put_ended(results, time.perf_counter() - start_s)
        return split(results, [len(request.items) for request in requests])

    def _find(self, requests: list[FindCall]) -> list[list[FindResult]]:
        keys = [key for request in requests for key in request.keys]
        nothing = [FindResult(key, None, Status.UNANSWERED) for key in keys]
        start_s = time.perf_counter()
        found = self._tried(self.store, lambda store: store.find(keys), nothing, requests[0].tenant)
        self.observer.found(time.perf_counter() - start_s)
        return split(found, [len(one.keys) for one in requests])

    def _find_longest(self, requests: list[ChainCall]) -> list[list[BlockEntry]]:
        def ask(store: SkyStore) -> list[list[BlockEntry]]:
            found = [_known(store, one) for one in requests]
            new = store.still_there([entries[one.cached :] for entries, one in zip(found, requests, strict=True)])
            return [entries[: one.cached] + rest for entries, one, rest in zip(found, requests, new, strict=True)]

        nothing: list[list[BlockEntry]] = [[] for _ in requests]
        start_s = time.perf_counter()
        found = self._tried(self.store, ask, nothing)
        self.observer.found(time.perf_counter() - start_s)
        return found

    def _prefetch(self, requests: list[_PrefetchRequest]) -> list[list[PrefetchResult]]:
        return [
            self._tried(
                self.store,
                partial(_prefetch_from, keys=keys, at_s=at_s),
                [PrefetchResult(key, Status.UNANSWERED, 0, 0) for key in keys],
            )
            for keys, at_s in requests
        ]

    def _touch(self, chains: list[Sequence[bytes]]) -> list[int]:
        return [self._tried(self.store, partial(SkyStore.touch, keys=keys), 0) for keys in chains]

    def _waiting(self) -> list[BlockEntry]:
        """Blocks of the gets that wait for the one that runs."""
        store = self.store
        keys = (key for request in self._down.waiting for key in request.keys)
        return [] if store is None else [entry for key in keys if (entry := store.index.get(key)) is not None]

    # ---- which constellation, and does it answer --------------------------------------------------------------------

    async def _watch_on(self) -> None:
        while True:
            try:
                await self._watch.run(None)
            except Exception:  # the next look may succeed after any error
                _log.exception("looking for the constellation failed")
            self.is_loading = False
            await asyncio.sleep(_POLL_S)

    def _look(self, calls: list[None]) -> list[None]:
        now_s = time.monotonic()
        if self._has_new_keys(now_s):
            self._open()
        elif self._source.changed() or self._failed:
            self._open(may_stay=True)
        elif self._has_moved():
            self._open()
        store = self.store  # `close` forgets it
        if store is None or (self.reachable and self._probed_s is not None and now_s - self._probed_s < _PROBE_S):
            return calls
        self._probed_s = now_s
        assert self.window is not None
        self.rtt_s = self.window.probe()
        self.observer.estimator.links(self.rtt_s)
        refusal = ""
        if self.rtt_s:
            self._answered_s = time.monotonic()
        else:
            refusal = store.control.refusal()
            store.control.new_host()  # another host may have this number, and get the answers
        if refusal and refusal != self._refusal:
            _log.warning("%s; every block is a miss until then", refusal)
        self._refusal = refusal
        return calls

    def _has_new_keys(self, now_s: float) -> bool:
        """Return True if the keyring was replaced, and satellites take the new one."""
        store, keyring = self.store, self._keyring
        if store is None or keyring is None or not keyring.is_due(now_s, is_reachable=bool(self.rtt_s)):
            return False
        return keyring.is_taken(store, self.rtt_s, now_s)

    def _has_moved(self) -> bool:
        """Return True if satellites are silent, and are reached from another address of this machine than the store's."""
        store = self.store
        if store is None or self.rtt_s:
            return False
        return has_moved(store.constellation, store.control.local, heard=self._answered_s is not None)

    def _open(self, *, may_stay: bool = False) -> None:
        """Serve what the source tells of now.

        Args:
            may_stay: Keep the store on what is served already, and so the keys that satellites take. Those of a file that was
                put in place meanwhile are tried first.
        """
        serving, keyring, failed = None, None, False
        try:
            serving = self._source.load()
            if may_stay and serving is not None and self.store is not None and serving.is_on(self.store):
                self._failed, self._no_keyring = False, ""
                return
            if serving is not None and (mistake := serving.constellation.find_keyring_mistake("host")):
                if self.store is not None:
                    self._stay(mistake)
                    return
                raise ConfigError(mistake)
            why = self._source.missing() if serving is None else ""
            keyring = None if serving is None else KeyringWatch(serving.constellation)
            store = None if serving is None else self._new_store(serving)
        except (OSError, RuntimeError, ValueError) as error:
            why, store = str(error), None
            failed = True
        if why and (self.store is not None or why != self._why):
            _log.warning("%s; every block is a miss until then", why)
        if serving is not None and store is not None:
            grid = serving.constellation
            _log.info("constellation of %d planes x %d slots", grid.planes, grid.slots)
        before = self.store
        self._why, self._answered_s, self._probed_s, self.rtt_s = why, None, None, {}
        self.store, self._keyring, self._failed, self._no_keyring = store, keyring, failed, ""
        self.window = None if store is None else WindowWatch(store)
        self.observer.serves(store)
        if before is not None:
            before.close()

    def _stay(self, mistake: str) -> None:
        """Go on with the constellation and the keys of before, until the keyring is right."""
        if mistake != self._no_keyring:
            _log.warning("%s; the constellation and the keys of before stay in use", mistake)
        self._failed, self._no_keyring = True, mistake

    def _new_store(self, serving: Serving) -> SkyStore:
        store: SkyStore
        store = SkyStore(
            serving.constellation,
            playing=serving.playing,
            watch=lambda moved: self.observer.moved(store, moved),
            tenant_secret=serving.tenant_secret,
        )
        return store


def _prefetch_from(store: SkyStore, keys: Sequence[bytes], at_s: float) -> list[PrefetchResult]:
    return store.prefetch(keys, max(at_s, time.time()))


def _purge_some(keys: Sequence[bytes], store: SkyStore) -> Purged:
    return store.purge(keys)


def _known(store: SkyStore, chain: ChainCall) -> list[BlockEntry]:
    found = store.find_longest(chain.keys, block_bytes_max=chain.block_bytes).entries
    return list(takewhile(lambda entry: entry.block_len == chain.block_bytes, found))
