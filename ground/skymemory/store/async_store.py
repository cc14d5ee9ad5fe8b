"""`AsyncStore`: a `SkyStore` as an event loop uses it. Any number of calls run at once, and none of them takes a thread."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from skymemory.common.whole_file import Buffer
from skymemory.link.block_entry import BlockEntry
from skymemory.link.control import Purged
from skymemory.link.operations import Operation, Outcome
from skymemory.store.block_store import BLOCK_BYTES_MAX
from skymemory.store.results import ChainResult, FindResult, GetResult, PrefetchResult, PutResult, Status
from skymemory.store.runner import FULL_S, PAUSE_S, Moved, Steps
from skymemory.store.sky_store import SkyStore
from skymemory.store.steps import StoreSteps

T = TypeVar("T")

_AT_ONCE: Final = 64
"""Operations that are begun, or outcomes that are taken, before others have their turn in the event loop."""

_BESIDE_BYTES: Final = 1 << 20
"""Bytes from which memory for blocks is taken beside the event loop: its pages are made then, a millisecond for 3 MB."""

Watch = Callable[[Moved], None]
"""Function that is told what a call has moved, if somebody watches the store."""


class AsyncStore:
    """Calls of a `SkyStore` for one event loop, in which it is made and used. `SkyStore` says what each call does and returns.

    A call that is cancelled calls back what it asked for, and ends when nothing uses its memory any more: within milliseconds.
    Gets of a block that is being fetched wait for it, and are one. Calls raise ValueError if the store was closed.
    """

    def __init__(self, store: SkyStore) -> None:
        """Begin without calls.

        Raises:
            OSError: The system gives no descriptor.
            ValueError: The store was closed.
        """
        self.store = store
        self._runner = store.runner
        self._loop = asyncio.get_running_loop()
        self._box = self._runner.box(has_descriptor=True)
        self._runs: dict[int, tuple[_Run, int]] = {}
        """Runs of operations, and their indices in these, by `id` of the operations."""
        self._calls = 0
        self._gets: dict[bytes, list[_Follower]] = {}
        """Calls that wait for a block that another one fetches, by its key."""
        self._puts: dict[bytes, asyncio.Future[None]] = {}
        """Blocks that are being put, by their keys."""
        self._closing = self._is_gone = False
        self._loop.add_reader(self._box.fileno(), self._take)

    def close(self) -> None:
        """Let go of the event loop once the calls that run have ended; the store is closed apart from this, before or later."""
        self._closing = True
        self._let_go()

    async def get(
        self,
        keys: Sequence[bytes],
        *,
        into: Sequence[memoryview | None] | None = None,
        block_bytes_max: int = BLOCK_BYTES_MAX,
        deadline_s: float | None = None,
        tenant: int | None = None,
        watch: Watch | None = None,
    ) -> list[GetResult]:
        """Fetch blocks (`SkyStore.get`).

        Args:
            keys: Keys of the blocks.
            into: The caller's writable memory for each block, or None if memory is to be taken.
            block_bytes_max: Longer blocks are misses.
            deadline_s: Seconds for each block; None: `cache.deadline_ms`.
            tenant: Tenant of the blocks; None: the store's.
            watch: Told of what was moved.
        """
        room = [None] * len(keys) if into is None else into
        start_s = self._loop.time()
        results: dict[int, GetResult] = {}
        left, left_s = list(range(len(keys))), deadline_s
        while left:
            follows = {index: self._follow(keys[index], room[index], block_bytes_max) for index in left}
            own = [index for index, follower in follows.items() if follower is None]
            try:
                if own:
                    mine, its = [keys[index] for index in own], [room[index] for index in own]
                    steps = self._steps(tenant).get(mine, its, block_bytes_max)
                    results |= zip(own, await self._lead(mine, its, steps, left_s, watch), strict=True)
                left_s = None if deadline_s is None else max(0.0, start_s + deadline_s - self._loop.time())
                if waits := [one.result for one in follows.values() if one is not None]:
                    await asyncio.wait(waits, timeout=left_s)
                late = [index for index, one in follows.items() if one is not None and not one.result.done()]
                told = {index: one.result.result() for index, one in follows.items() if one is not None and one.result.done()}
            finally:
                for one in follows.values():
                    if one is not None:
                        one.result.cancel()  # nobody writes into its memory any more
            left = [index for index, result in told.items() if result is None]
            results |= {index: result for index, result in told.items() if result is not None}
            results |= {index: GetResult(keys[index], None, Status.EXPIRED, self._loop.time() - start_s) for index in late}
        return [results[index] for index in range(len(keys))]

    async def put(
        self,
        items: Sequence[tuple[bytes, Buffer]],
        *,
        deadline_s: float | None = None,
        tenant: int | None = None,
    ) -> list[PutResult]:
        """Store blocks (`SkyStore.put`). Puts of the same block go one after the other: it is there already for the second."""
        keys = {key for key, _ in items}
        while before := [self._puts[key] for key in keys if key in self._puts]:
            await asyncio.wait(before)
        done = self._loop.create_future()
        self._puts |= dict.fromkeys(keys, done)
        try:
            return await self._do(self._steps(tenant).put(items), deadline_s)
        finally:
            for key in keys:
                del self._puts[key]
            done.set_result(None)

    async def find(self, keys: Sequence[bytes], *, fresh: bool = False, tenant: int | None = None) -> list[FindResult]:
        """Return what is known of blocks (`SkyStore.find`)."""
        return await self._do(self._steps(tenant).find(keys, fresh=fresh))

    async def find_longest(
        self, keys: Sequence[bytes], *, fresh: bool = False, block_bytes_max: int = BLOCK_BYTES_MAX
    ) -> ChainResult:
        """Find the longest cached beginning of a chain of blocks (`SkyStore.find_longest`)."""
        return await self._do(self.store.steps.find_longest(keys, fresh=fresh, block_bytes_max=block_bytes_max))

    async def still_there(self, chains: Sequence[Sequence[BlockEntry]]) -> list[list[BlockEntry]]:
        """Ask whether chains that were found are still there (`SkyStore.still_there`)."""
        return await self._do(self.store.steps.still_there(chains))

    async def touch(self, keys: Sequence[bytes]) -> int:
        """Have satellites evict the end of a chain before its beginning (`SkyStore.touch`)."""
        return await self._do(self.store.steps.touch(keys))

    async def purge(self, keys: Sequence[bytes], *, tenant: int | None = None) -> Purged:
        """Forget blocks, here and on the satellites (`SkyStore.purge`)."""
        return await self._do(self._steps(tenant).purge(keys))

    async def make_way(self, keys: Sequence[bytes]) -> list[Purged]:
        """Forget blocks so that others can be put under their keys (`SkyStore.make_way`)."""
        return await self._do(self.store.steps.make_way(keys))

    async def prefetch(self, keys: Sequence[bytes], at_s: float) -> list[PrefetchResult]:
        """Prefetch blocks for a time to come (`SkyStore.prefetch`)."""
        return await self._do(self.store.steps.prefetch(keys, at_s))

    # ---- equal gets -------------------------------------------------------------------------------------------------

    def _follow(self, key: bytes, room: memoryview | None, block_bytes_max: int) -> "_Follower | None":
        """Wait for a block that another call fetches. None: this one has to fetch it.

        A value may have been replaced since the other call began, so only blocks without versions are waited for.
        """
        followers = self._gets.get(key)
        entry = None if followers is None else self.store.index.get(key)
        if followers is None or entry is None or entry.version or entry.block_len > block_bytes_max:
            return None
        if room is not None and room.nbytes != entry.block_len:
            return None
        follower = _Follower(room, self._loop.create_future())
        followers.append(follower)
        return follower

    async def _lead(
        self,
        keys: Sequence[bytes],
        room: Sequence[memoryview | None],
        steps: Steps[list[GetResult]],
        deadline_s: float | None,
        watch: Watch | None,
    ) -> list[GetResult]:
        """Fetch blocks, and hand each to those that wait for it.

        These fetch it themselves if the call goes, or does not get it for a reason of its own: its deadline, or its memory.
        """
        own = {Status.BAD_LENGTH, Status.TOO_LARGE} | ({Status.EXPIRED} if deadline_s is not None else set())
        leads = {key: index for index, key in enumerate(keys) if key not in self._gets}
        self._gets |= {key: [] for key in leads}
        results: list[GetResult] | None = None
        try:
            lengths = [self._length_of(key) for key, view in zip(keys, room, strict=True) if view is None]
            results = await self._do(steps, deadline_s, watch, is_begun_beside=sum(lengths) >= _BESIDE_BYTES)
        finally:
            for key, index in leads.items():
                result = None if results is None or results[index].status in own else results[index]
                for follower in self._gets.pop(key):
                    follower.take(result, room[index])
        return results

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _steps(self, tenant: int | None) -> StoreSteps:
        return self.store.steps if tenant is None else self.store.of_tenant(tenant).steps

    def _length_of(self, key: bytes) -> int:
        """Return the length of a block; 0: it is not known."""
        entry = self.store.index.get(key)
        return 0 if entry is None else entry.block_len

    async def _do(
        self,
        steps: Steps[T],
        deadline_s: float | None = None,
        watch: Watch | None = None,
        *,
        is_begun_beside: bool = False,
    ) -> T:
        """Do the steps of a call, and return its result.

        Args:
            deadline_s: Seconds after which what runs is called back; None: none.
            watch: Told of what was moved.
            is_begun_beside: True: the first step takes long, and is done beside the event loop.
        """
        until_s = None if deadline_s is None else self._loop.time() + deadline_s
        self._calls += 1
        try:
            self._runner.refresh()
            if is_begun_beside:
                operations = await self._beside(partial(_begin, steps))
            else:
                operations = next(steps)
            while True:
                if operations:
                    outcomes = await self._run(operations, until_s, watch)
                else:
                    await asyncio.sleep(PAUSE_S)
                    outcomes = []
                operations = steps.send(outcomes)
        except (StopIteration, _EndError) as end:
            result: T = end.value
            return result
        finally:
            steps.close()
            self._calls -= 1
            self._let_go()

    async def _beside(self, work: Callable[[], T]) -> T:
        """Do work beside the event loop. Who is cancelled meanwhile waits for its end: steps that run cannot be closed."""
        done = self._loop.run_in_executor(None, work)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            while not done.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([done])
            raise

    async def _run(self, operations: Sequence[Operation], until_s: float | None, watch: Watch | None) -> list[Outcome]:
        """Have operations of one kind done, all at once, and wait for all of them."""
        run = _Run(operations, self._loop.create_future())
        timer = None if until_s is None else self._loop.call_at(until_s, self._expire, run)
        try:
            await self._submit(run)
            await run.ended
        except BaseException:
            run.left -= len(operations) - run.begun
            self._call_back(run)
            while run.left:  # the memory of blocks is in use until then
                run.ended = self._loop.create_future()
                with suppress(asyncio.CancelledError):
                    await run.ended
            raise
        finally:
            if timer is not None:
                timer.cancel()
        outcomes = [outcome for outcome in run.outcomes if outcome is not None]
        kind = operations[0].kind
        if self._runner.is_news(outcomes):  # then satellites may be asked why
            moved = await asyncio.to_thread(self._runner.note, kind, outcomes)
        else:
            moved = self._runner.note(kind, outcomes)
        if moved is not None and watch is not None:
            watch(moved)
        return outcomes

    async def _submit(self, run: "_Run") -> None:
        for index, one in enumerate(run.operations):
            if index and index % _AT_ONCE == 0:
                await asyncio.sleep(0)
            while True:
                try:
                    run.tickets[index] = ticket = self._runner.submit(self._box, one)
                    break
                except BlockingIOError:
                    await asyncio.sleep(FULL_S)
            self._runs[id(one)] = run, index
            run.begun += 1
            if run.is_late:
                self._box.cancel([ticket])

    def _expire(self, run: "_Run") -> None:
        run.is_late = True
        self._call_back(run)

    def _call_back(self, run: "_Run") -> None:
        self._box.cancel(run.tickets.values())

    def _take(self) -> None:
        """Hand over outcomes that have come. The descriptor stays readable while there are more."""
        for _ in range(_AT_ONCE):
            if (told := self._box.take()) is None:
                return
            run, index = self._runs.pop(id(told[0]))
            run.take(index, told[1])

    def _let_go(self) -> None:
        if self._closing and not self._calls and not self._is_gone:
            self._is_gone = True
            self._loop.remove_reader(self._box.fileno())
            self._box.close()


class _EndError(Exception):
    """The end of steps that have begun beside the event loop: no future takes a StopIteration."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.value: Any = value


def _begin(steps: Steps[Any]) -> Sequence[Operation]:
    try:
        return next(steps)
    except StopIteration as end:
        raise _EndError(end.value) from None


class _Run:
    """Operations that were begun together."""

    __slots__ = ("begun", "ended", "is_late", "left", "operations", "outcomes", "tickets")

    def __init__(self, operations: Sequence[Operation], ended: asyncio.Future[None]) -> None:
        self.operations = operations
        self.outcomes: list[Outcome | None] = [None] * len(operations)
        self.ended = ended
        """Done when all have ended."""
        self.tickets: dict[int, int] = {}
        """Tickets of operations that run, by their indices."""
        self.begun = 0
        """Operations that were begun: they come first."""
        self.left = len(operations)
        """Operations that have not ended."""
        self.is_late = False
        """True if they were called back because their time is over."""

    def take(self, index: int, outcome: Outcome) -> None:
        """Take an outcome."""
        if self.is_late and outcome.status is Status.CANCELLED:
            outcome.status = Status.EXPIRED
        self.outcomes[index] = outcome
        del self.tickets[index]
        self.left -= 1
        if not self.left and not self.ended.done():
            self.ended.set_result(None)


class _Follower:
    """A call that waits for a block that another one fetches."""

    __slots__ = ("result", "room")

    def __init__(self, room: memoryview | None, result: asyncio.Future[GetResult | None]) -> None:
        self.room = room
        self.result = result
        """Result of the call; None: it has to fetch the block itself."""

    def take(self, result: GetResult | None, memory: memoryview | None) -> None:
        """Take what the other call got, and copy the block: each caller may write into its own."""
        if self.result.done():
            return
        if result is None or not result.ok:
            self.result.set_result(result)
            return
        data = memoryview(result.data if result.data is not None else memory or b"").cast("B")
        if self.room is None:
            self.result.set_result(replace(result, data=bytearray(data)))
        elif self.room.nbytes == data.nbytes:
            self.room.cast("B")[:] = data
            self.result.set_result(replace(result, data=None))
        else:
            self.result.set_result(None)  # it was replaced by another block
