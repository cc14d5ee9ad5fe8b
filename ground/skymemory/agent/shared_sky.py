"""The constellation, for all parts of the agent: one store, and whether a satellite answers.

Nothing here raises for what happens in the sky, nor because there is none yet: answers are then misses.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import takewhile
from typing import Any, Final, NamedTuple, TypeVar

from prometheus_client import CollectorRegistry, Gauge

from skymemory.agent.constellation_source import ConstellationSource, Serving
from skymemory.agent.keyring_watch import KeyringWatch
from skymemory.agent.models import Model
from skymemory.agent.observer import Observer
from skymemory.agent.tracing import NOWHERE, Origin, Tracing
from skymemory.agent.window_metrics import WindowMetrics
from skymemory.agent.window_watch import WindowWatch
from skymemory.common.whole_file import Buffer
from skymemory.link.block_entry import BlockEntry
from skymemory.link.control import Purged
from skymemory.link.local_address import has_moved
from skymemory.sky.constellation import ConfigError
from skymemory.store.async_store import AsyncStore
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
_PART: Final = 256
"""Blocks of one call. Those of more blocks go in parts, so that others have their turn in the event loop."""
_SOON_S: Final = 0.05
"""Time by which a prefetch for now lies ahead, so that it is not past when it begins."""
_TOUCHES_MAX: Final = 16
"""Chains that wait to be touched; the order of more is left to chance."""


class Size(NamedTuple):
    """Capacity of the sky."""

    blocks: int
    """Blocks of the length that was asked for."""
    servers: int
    store_mib: int


class SharedSky:
    """The sky as all engines and clients of one agent share it; used from one event loop.

    Any number of calls run at once; the core decides who waits for whom. A call that is cancelled is called back. Only wrong
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
        self._learning: asyncio.TimerHandle | None = None
        self._face: AsyncStore | None = None
        """The store as the event loop uses it."""
        self._calls = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._touches = 0
        self._look_thread = ThreadPoolExecutor(1, thread_name_prefix="skymem-watch")
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
        loop = asyncio.get_running_loop()
        looked = loop.run_in_executor(self._look_thread, lambda: None)  # after the look that runs
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._idle.wait()), looked]
        await asyncio.wait(waits, timeout=grace_s)
        store, self.store = self.store, None
        if store is not None:
            await asyncio.to_thread(store.close)  # this cancels what runs, so its callers go on
        await asyncio.wait(waits)
        self._look_thread.shutdown(wait=False)
        self._follow()
        await asyncio.to_thread(self.observer.close)

    # ---- blocks -----------------------------------------------------------------------------------------------------

    async def get(
        self,
        keys: Sequence[bytes],
        *,
        into: Sequence[memoryview] | None = None,
        block_bytes_max: int = BLOCK_BYTES_MAX,
        origin: Origin = NOWHERE,
        deadline_s: float | None = None,
        tenant: int | None = None,
    ) -> list[GetResult]:
        """Fetch blocks (`AsyncStore.get`).

        Args:
            origin: Origin of the request, for its trace.
            deadline_s: Seconds after which what has not come is called back, and EXPIRED.
            tenant: Tenant of the blocks; None: the constellation's. The other methods have it too.

        Raises:
            ValueError: A key of another length, or memory that cannot be written to.
        """
        check_keys(keys)
        if into is not None and (len(into) != len(keys) or any(view.readonly or not view.c_contiguous for view in into)):
            raise ValueError("each block needs memory that is writable and contiguous, or none is given")
        if not keys:
            return []
        get = self.observer.get_begins(self.store, keys)
        results = [GetResult(key, None, Status.UNANSWERED, 0.0, known=False) for key in keys]

        async def fetch(first: int) -> list[GetResult]:
            part = slice(first, first + _PART)
            return await self._tried(
                lambda store: store.get(
                    keys[part],
                    into=None if into is None else into[part],
                    block_bytes_max=block_bytes_max,
                    deadline_s=deadline_s,
                    tenant=tenant,
                    watch=get.moves.append,
                ),
                results[part],
            )

        try:
            results = await _in_parts(len(keys), fetch)
        finally:
            self.observer.get_ends(get, results, origin)
            if self._learning is None and not self._closing:
                self._learning = asyncio.get_running_loop().call_later(_LEARN_AFTER_S, self._learn)
        return results

    def _learn(self) -> None:
        """In the event loop: in another thread it would hold up this one as much, for one of them runs at a time."""
        more = self.observer.learn() and not self._closing
        self._learning = asyncio.get_running_loop().call_later(_LEARN_AFTER_S, self._learn) if more else None

    async def put(self, items: Sequence[tuple[bytes, Buffer]], *, tenant: int | None = None) -> list[PutResult]:
        """Store blocks (`AsyncStore.put`). A block that is empty is `bad_length`, one that the sky cannot hold `too_large`."""
        check_keys([key for key, _ in items])
        results = [PutResult(key, Status.UNANSWERED, None, 0.0) for key, _ in items]
        store, start_s = self.store, time.perf_counter()
        fits: list[int] = []
        for index, (key, data) in enumerate(items):
            length = memoryview(data).nbytes
            if store is not None and 1 <= length <= store.capacity_bytes:
                fits.append(index)
            elif store is not None:
                results[index] = PutResult(key, Status.TOO_LARGE if length else Status.BAD_LENGTH, None, 0.0)

        async def store_them(first: int) -> list[PutResult]:
            part = fits[first : first + _PART]
            return await self._tried(
                lambda store: store.put([items[index] for index in part], tenant=tenant),
                [results[index] for index in part],
            )

        for index, result in zip(fits, await _in_parts(len(fits), store_them), strict=True):
            results[index] = result
        self.observer.put_ended(results, time.perf_counter() - start_s)
        return results

    async def find(self, keys: Sequence[bytes], *, fresh: bool = False, tenant: int | None = None) -> list[FindResult]:
        """Return what is known of blocks (`SkyStore.find`); UNANSWERED while there is no constellation."""
        check_keys(keys)
        if not keys:
            return []
        start_s = time.perf_counter()
        nothing = [FindResult(key, None, Status.UNANSWERED) for key in keys]
        found = await self._tried(lambda store: store.find(keys, fresh=fresh, tenant=tenant), nothing)
        if not fresh:
            self.observer.found(time.perf_counter() - start_s)
        return found

    async def find_longest(self, keys: Sequence[bytes], *, block_bytes: int, cached: int = 0) -> list[BlockEntry]:
        """Return the longest beginning of a chain of blocks that can be fetched (`SkyStore.find_longest`, `still_there`).

        Args:
            block_bytes: A block of another length ends the chain.
            cached: The first blocks, which nobody will fetch; whether they are still there is not asked.
        """
        check_keys(keys)

        async def ask(store: AsyncStore) -> list[BlockEntry]:
            chain = (await store.find_longest(keys, block_bytes_max=block_bytes)).entries
            known = list(takewhile(lambda entry: entry.block_len == block_bytes, chain))
            [new] = await store.still_there([known[cached:]])
            return known[:cached] + new

        if not keys:
            return []
        start_s = time.perf_counter()
        nothing: list[BlockEntry] = []
        found = await self._tried(ask, nothing)
        self.observer.found(time.perf_counter() - start_s)
        return found

    async def find_chain(self, keys: Sequence[bytes], *, fresh: bool, block_bytes_max: int) -> ChainResult:
        """Return the longest cached beginning of a chain of blocks of any length (`SkyStore.find_longest`)."""
        check_keys(keys)
        return await self._tried(
            lambda store: store.find_longest(keys, fresh=fresh, block_bytes_max=block_bytes_max), ChainResult([], list(keys))
        )

    async def prefetch(self, keys: Sequence[bytes], at_s: float) -> list[PrefetchResult]:
        """Prefetch blocks for a time to come (`SkyStore.prefetch`). A time that has passed meanwhile counts as now."""
        check_keys(keys)
        nothing = [PrefetchResult(key, Status.UNANSWERED, 0, 0) for key in keys]
        return await self._tried(lambda store: store.prefetch(keys, max(at_s, time.time() + _SOON_S)), nothing)

    def size(self, block_bytes: int) -> Size:
        """Return how many blocks of one length the sky can hold, and its parts; zeros while there is no constellation."""
        store = self.store
        if store is None:
            return Size(0, 0, 0)
        sky = store.constellation
        # The record of formats takes a slot: in a store that blocks fill it would evict the beginning of a new chain
        return Size(blocks_held(sky, block_bytes, other_chunks=1), sky.cache.servers, sky.satellite.store_mib)

    async def used(self, keys: Sequence[bytes]) -> None:
        """Have satellites evict the end of a chain before its beginning (`SkyStore.touch`). Left out when many chains wait."""
        check_keys(keys)
        if self._touches >= _TOUCHES_MAX:
            return
        self._touches += 1
        try:
            await self._tried(lambda store: store.touch(keys), 0)
        finally:
            self._touches -= 1

    async def purge(self, keys: Sequence[bytes], *, tenant: int | None = None) -> Purged:
        """Forget blocks, here and on the satellites (`SkyStore.purge`). Not confirmed while there is no constellation.

        Many blocks go some at a time.
        """
        check_keys(keys)
        chunks, confirmed = 0, True
        for first in range(0, len(keys), _PART):
            some = keys[first : first + _PART]
            done = await self._tried(partial(_purge, keys=some, tenant=tenant), Purged(0, False))
            chunks, confirmed = chunks + done.chunks, confirmed and done.confirmed
        return Purged(chunks, confirmed)

    def forget(self, results: Sequence[GetResult], *, tenant: int | None = None) -> None:
        """Begin to purge blocks that were fetched and are of no use (`SkyStore.forget`)."""
        self._tried_here(lambda store: store.forget(results), None, tenant)

    async def make_way(self, keys: Sequence[bytes]) -> list[Purged]:
        """Forget blocks so that others can be put under their keys (`SkyStore.make_way`)."""
        check_keys(keys)
        return await self._tried(lambda store: store.make_way(keys), [Purged(0, False) for _ in keys])

    def opened(self, result: GetResult, opens: Callable[[bytearray], T | None], tenant: int | None = None) -> T | None:
        """Open a block that `get` fetched, and mend it (`BlockStore.opened`). Not for the event loop's thread."""
        return self._tried_here(lambda store: store.opened(result, opens), None, tenant)

    # ---- inside -----------------------------------------------------------------------------------------------------

    async def _tried(self, call: Callable[[AsyncStore], Awaitable[T]], otherwise: T) -> T:
        """Return what the store says to a call; if there is none, or if it fails, something else."""
        store = self.store
        self._calls += 1
        self._idle.clear()
        try:
            face = self._follow()
            return otherwise if face is None else await call(face)
        except Exception:
            self._failed_with(store)
            return otherwise
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.set()

    def _tried_here(self, call: Callable[[SkyStore], T], otherwise: T, tenant: int | None) -> T:
        """Return what the store says to a call in this thread."""
        store = self.store
        if store is None:
            return otherwise
        try:
            return call(store if tenant is None else store.of_tenant(tenant))
        except Exception:
            self._failed_with(store)
            return otherwise

    def _failed_with(self, store: SkyStore | None) -> None:
        if store is self.store:  # the store was not closed meanwhile: a fault of ours, and a miss for the caller
            _log.exception("the store failed, so the blocks are missed")

    def _follow(self) -> AsyncStore | None:
        """Return the store that is served now, as the event loop uses it, and let go of the one before."""
        store, face = self.store, self._face
        if face is not None and face.store is not store:
            self._face = None
            face.close()
            face = None
        if face is None and store is not None:
            face = self._face = AsyncStore(store)
        return face

    # ---- which constellation, and does it answer --------------------------------------------------------------------

    async def _watch_on(self) -> None:
        while True:
            try:
                await asyncio.get_running_loop().run_in_executor(self._look_thread, self._look)
                self._follow()
            except Exception:  # the next look may succeed after any error
                _log.exception("looking for the constellation failed")
            self.is_loading = False
            await asyncio.sleep(_POLL_S)

    def _look(self) -> None:
        now_s = time.monotonic()
        if self._has_new_keys(now_s):
            self._open()
        elif self._source.changed() or self._failed:
            self._open(may_stay=True)
        elif self._has_moved():
            self._open()
        store = self.store  # `close` forgets it
        if store is None or (self.reachable and self._probed_s is not None and now_s - self._probed_s < _PROBE_S):
            return
        self._probed_s = now_s
        assert self.window is not None
        try:
            self.rtt_s = self.window.probe()
        except TimeoutError:  # it had no turn, because this host asks so much: that would be silent, too, if satellites were
            if self.rtt_s and not store.silent:
                self._answered_s = time.monotonic()
            return
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


async def _in_parts(count: int, call: Callable[[int], Awaitable[list[T]]]) -> list[T]:
    """Return the results of calls for parts of `_PART` items, which run at once; each is told the index of its first item."""
    if count <= _PART:
        return await call(0) if count else []
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_of(call(first))) for first in range(0, count, _PART)]
    return [one for task in tasks for one in task.result()]


async def _purge(store: AsyncStore, keys: Sequence[bytes], tenant: int | None) -> Purged:
    return await store.purge(keys, tenant=tenant)


async def _of(call: Awaitable[T]) -> T:
    return await call
