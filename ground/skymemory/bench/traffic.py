"""Gets and puts of several hosts at once, as load on a constellation: how long gets took, and whether blocks came back."""

import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Final, NamedTuple, Self

from skymemory.sky.constellation import Constellation
from skymemory.store.results import StoreStatistics
from skymemory.store.sky_store import SkyStore
from skymemory.wire.packets import KEY_BYTES

_CALL_BLOCKS: Final = 4
"""Blocks of one call."""
PUT_PAUSE_S: Final = 0.1
"""Seconds between two puts of a host."""


class TimedGet(NamedTuple):
    """One call that fetched blocks."""

    started_s: float
    """Start by the clock `time.perf_counter`."""
    duration_s: float


@dataclass(frozen=True)
class Phase:
    """Calls of the traffic from one moment to another."""

    gets: Sequence[TimedGet]
    """Calls that began in this phase, and have ended."""

    @property
    def median_ms(self) -> float:
        """Median duration of a call."""
        return 1e3 * statistics.median(one.duration_s for one in self.gets)

    @property
    def longest_ms(self) -> float:
        """Longest duration of a call."""
        return 1e3 * max(one.duration_s for one in self.gets)


class Traffic:
    """Hosts that fetch the same blocks over and over and put new ones, each in threads of its own. A context manager."""

    def __init__(
        self,
        constellation: Constellation,
        hosts: int = 2,
        blocks: int = 16,
        block_bytes: int = 1_000_000,
        put_pause_s: float = PUT_PAUSE_S,
    ) -> None:
        """Describe the traffic.

        Args:
            constellation: The constellation, which runs.
            hosts: Number of hosts. Each has a thread that gets and one that puts.
            blocks: Number of blocks that are fetched.
            block_bytes: Bytes of a block.
            put_pause_s: Seconds between two puts of a host. With long ones stores do not fill up and evict what is fetched.
        """
        self._constellation = constellation
        self._hosts = hosts
        self._block_bytes = block_bytes
        self._put_pause_s = put_pause_s
        self._items = [(os.urandom(KEY_BYTES), os.urandom(block_bytes)) for _ in range(blocks)]
        self._gets: list[TimedGet] = []
        self._lock = Lock()
        self._end = Event()
        self._threads: list[Thread] = []
        self._stores: list[SkyStore] = []
        self._cleanup = ExitStack()
        self.errors: list[str] = []
        """Words about what went wrong: wrong or missed blocks, puts that failed, and exceptions of threads."""
        self.puts = 0
        """Blocks that were put."""

    def __enter__(self) -> Self:
        """Put the blocks, and begin.

        Raises:
            RuntimeError: A block could not be put.
        """
        with ExitStack() as opened:
            self._stores = [opened.enter_context(SkyStore(self._constellation, tenant_secret=b"")) for _ in range(self._hosts)]
            if failed := [one.status for one in self._stores[0].put(self._items) if not one.ok]:
                raise RuntimeError(f"{len(failed)} of {len(self._items)} blocks were not put: {failed[0]}")
            keys = [key for key, _ in self._items]
            for store in self._stores:
                store.find(keys)  # so that gets need no lookup
                store.get(keys)  # measures round trips, and takes memory for the first time
            opened.callback(self.stop)
            self._cleanup = opened.pop_all()
        for store in self._stores:
            for work in (self._get, self._put):
                self._threads.append(thread := Thread(target=self._guarded, args=(work, store)))
                thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self._cleanup.close()

    def stop(self) -> None:
        """End all threads; safe to call twice."""
        self._end.set()
        for thread in self._threads:
            thread.join()

    @property
    def gets(self) -> int:
        """Calls that have fetched blocks so far."""
        return len(self._gets)

    def phase(self, from_s: float, until_s: float = float("inf")) -> Phase:
        """Return what began between two times by the clock `time.perf_counter`."""
        with self._lock:
            return Phase([one for one in self._gets if from_s <= one.started_s < until_s])

    def stats(self) -> list[StoreStatistics]:
        """Return the counts of each host."""
        return [store.stats() for store in self._stores]

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _guarded(self, work: Callable[[SkyStore], None], store: SkyStore) -> None:
        try:
            while not self._end.is_set():
                work(store)
        except Exception as error:
            self.errors.append(repr(error))

    def _get(self, store: SkyStore) -> None:
        some = random.sample(self._items, min(_CALL_BLOCKS, len(self._items)))
        start_s = time.perf_counter()
        results = store.get([key for key, _ in some])
        one = TimedGet(start_s, time.perf_counter() - start_s)
        with self._lock:
            self._gets.append(one)
        for result, (_, data) in zip(results, some, strict=True):
            if result.data is None or bytes(result.data) != data:
                self.errors.append(f"get: {result.status}")

    def _put(self, store: SkyStore) -> None:
        [result] = store.put([(os.urandom(KEY_BYTES), os.urandom(self._block_bytes))])
        if result.ok:
            self.puts += 1
        else:
            self.errors.append(f"put: {result.status}")
        self._end.wait(self._put_pause_s)
