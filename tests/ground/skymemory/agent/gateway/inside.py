"""A gateway in the test's own process, with limits of the test's choice, over a sky that fails when it is told to."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, Self, TypeVar

from prometheus_client import CollectorRegistry

from skymemory.agent.gateway.gateway import Gateway
from skymemory.link.block_entry import BlockEntry
from skymemory.sky.constellation import Constellation
from skymemory.store.deletions import DELETION_BYTES
from skymemory.store.results import FindResult, GetResult, PutResult, Status
from skymemory.wire.envelope import instance_of
from support.pages import OnlyActivity

T = TypeVar("T")
TIMEOUT_S = 60.0


class StubIndex(dict[bytes, BlockEntry]):
    """Blocks that a test says are known."""

    def remove(self, key: bytes) -> None:
        self.pop(key, None)


class StubStore:
    """What the gateway wants to know of a store."""

    def __init__(self) -> None:
        self.constellation = Constellation()
        self.silent = False
        self.index = StubIndex()
        self.capacity_bytes = 1 << 30


class StubSky:
    """Blocks in memory, under keys; what a test wants to go wrong does."""

    def __init__(self) -> None:
        self.store = StubStore()
        self.tenant_secret = b"secret of the stub"
        self.observer = OnlyActivity()
        self.reachable = True
        self.is_loading = False
        self.is_refused = False
        self.blocks: dict[bytes, bytes] = {}
        self.get_status: Status | None = None
        """what gets end with, whatever there is"""
        self.is_unanswered = False
        """lookups are"""
        self.unanswered: set[bytes] = set()
        """keys of which nobody says anything, whatever is said of others"""
        self.held = asyncio.Event()
        """puts wait for this one"""
        self.held.set()
        self.put_status: Status | None = None
        """what puts end with, and then nothing is stored"""
        self.puts = 0
        """calls that began"""
        self.put_bytes: list[int] = []
        """of each call"""
        self.got: list[list[int]] = []
        """lengths of the blocks of each call"""
        self.held_large = asyncio.Event()
        """gets of a MiB and more wait for this one"""
        self.held_large.set()

    @property
    def left(self) -> set[bytes]:
        """Keys of what was not deleted."""
        return {key for key, data in self.blocks.items() if len(data) != DELETION_BYTES}

    def entry(self, key: bytes) -> BlockEntry | None:
        data = self.blocks.get(key)
        return None if data is None else BlockEntry(key, len(data), 6000, -(-len(data) // 6000), 0, 0.0, *instance_of(data))

    async def find(self, keys: Sequence[bytes], *, fresh: bool = False, tenant: int | None = None) -> list[FindResult]:
        if self.is_unanswered:
            return [FindResult(key, None, Status.UNANSWERED) for key in keys]
        found = [self.entry(key) for key in keys]  # the index is not asked for what may have been replaced
        return [
            FindResult(key, None, Status.UNANSWERED)
            if key in self.unanswered
            else FindResult(key, one, Status.MISS if one is None else Status.DONE)
            for key, one in zip(keys, found, strict=True)
        ]

    async def get(self, keys: Sequence[bytes], *, block_bytes_max: int, tenant: int | None = None) -> list[GetResult]:
        self.got.append([len(self.blocks.get(key, b"")) for key in keys])
        if sum(self.got[-1]) >= 1 << 20:
            await self.held_large.wait()
        if self.get_status is not None:
            return [GetResult(key, None, self.get_status, 0.0) for key in keys]
        found = ((key, self.blocks.get(key)) for key in keys)
        return [
            GetResult(key, None, Status.MISS, 0.0)
            if data is None
            else GetResult(key, bytearray(data), Status.DONE, 0.0, entry=self.entry(key))
            for key, data in found
        ]

    async def put(self, items: Sequence[tuple[bytes, Any]], *, tenant: int | None = None) -> list[PutResult]:
        self.puts += 1
        await self.held.wait()
        self.put_bytes.append(sum(len(data) for _, data in items))
        if self.put_status is not None:
            return [PutResult(key, self.put_status, None, 0.0) for key, _ in items]
        self.blocks |= {key: bytes(data) for key, data in items}
        return [PutResult(key, Status.DONE, self.entry(key), 0.0) for key, _ in items]

    def forget(self, results: Sequence[GetResult], *, tenant: int | None = None) -> None:
        for result in results:
            self.blocks.pop(result.key, None)


class InsideGateway:
    """In a thread with its own event loop. A context manager."""

    def __init__(self, **limits: Any) -> None:
        """`limits`: of the `Gateway`."""
        self._limits = limits
        self._started: Future[None] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()))

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.result(TIMEOUT_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(TIMEOUT_S)

    @property
    def port(self) -> int:
        assert self.gateway.port is not None
        return self.gateway.port

    @property
    def lmcache_port(self) -> int:
        assert self.gateway.lmcache_port is not None
        return self.gateway.lmcache_port

    @property
    def used_bytes(self) -> int:
        """Memory of values on their way."""
        return self.run(lambda: self.gateway.shared.memory.used_bytes)

    def run(self, what: Callable[[], T]) -> T:
        """Call something where the gateway runs."""

        async def call() -> T:
            return what()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(TIMEOUT_S)

    async def _main(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        self.sky = StubSky()
        self.gateway = Gateway(self.sky, "127.0.0.1", 0, CollectorRegistry(), lmcache_port=0, **self._limits)  # type: ignore[arg-type]
        await self.gateway.start()
        self._started.set_result(None)
        await self._ended.wait()
        await self.gateway.close()
