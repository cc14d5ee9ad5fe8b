"""`SkyStore`: keyed blocks of bytes, cut into chunks, on the satellites of a constellation (paper, sections 3.1 to 3.10).

    block -> chunks of `cache.chunk_bytes` -> servers (chunk id mod n) -> satellites (layout) -> entry satellites (window)

Nothing that happens in the sky raises: a lost packet is asked for again, a lost satellite is a miss. What raises is a
wrong argument.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from types import TracebackType
from typing import Final, Self

from skymemory.config import UINT32_MAX, Constellation
from skymemory.index.radix import BlockEntry, RadixIndex
from skymemory.link.control import ControlPlane
from skymemory.link.native import NativeClient, Server, Transfer, TransferState
from skymemory.placement import window
from skymemory.placement.torus import Satellite
from skymemory.placement.window import Route
from skymemory.wire import icd
from skymemory.wire.packets import KEY_BYTES

Buffer = bytes | bytearray | memoryview
Progress = Callable[[int, int], None]
"""called with (chunks done, chunks in all) from the calling thread"""

_QUESTION_S: Final = 1.0
"""how long a lookup waits for its answer, unless the deadline of blocks is shorter"""
_TIDY_S: Final = 0.5
"""how long a miss may take longer to purge what is left of the block"""
_LOST_S: Final = 30.0
"""how long a satellite that did not answer is left out before it is tried again"""


@dataclass(frozen=True, slots=True)
class PutResult:
    """What became of a block that was to be stored."""

    key: bytes
    ok: bool
    status: str
    """`done`, or why not: `expired`, `no_satellite`, or a status of the ICD such as `store_full`"""
    entry: BlockEntry | None
    """what must be known to fetch it; None if it was not stored"""
    duration_s: float


@dataclass(frozen=True, slots=True)
class GetResult:
    """What became of a block that was asked for."""

    key: bytes
    data: bytearray | None
    """None: a miss"""
    status: str
    """`done`, or why not: `miss`, `expired`, `no_satellite`, or a status of the ICD"""
    duration_s: float


@dataclass(frozen=True, slots=True)
class StoreStatistics:
    """Counts since the store was opened."""

    puts: int = 0
    """blocks stored"""
    put_failures: int = 0
    hits: int = 0
    """blocks fetched"""
    misses: int = 0
    """blocks that did not come, for whatever reason"""
    expired: int = 0
    """of the misses and failures: past the deadline"""
    purges: int = 0
    """blocks purged, broken ones included"""
    questions: int = 0
    """blocks asked for with HAS"""
    retries: int = 0
    """requests and chunks that were sent again"""
    corrupt: int = 0
    """chunks that failed their CRC-32C and were asked for again"""
    chunks_up: int = 0
    chunks_down: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    put_s: float = 0.0
    """time in `put`"""
    get_s: float = 0.0
    """time in `get`"""
    satellites_lost: int = 0
    """times that a satellite was found not to answer"""


class SkyStore:
    """Blocks of 1 byte to 4 GiB - 1 under keys of 32 bytes. Thread-safe; a context manager.

    Blocks carry no checksum of their own here: each chunk has a CRC-32C on its way and in memory. `KeyValue` puts a digest
    around general values, the KV manager's blocks hold theirs.

    A local index remembers what was put and found, so that a known block is fetched without a question. A satellite that
    does not answer is replaced in the layout for a while, so that blocks can be put again at once; what it held is missed.
    """

    def __init__(self, constellation: Constellation, tenant: int | None = None) -> None:
        """Open sockets; nothing is sent.

        Args:
            tenant: name space of the keys; by default the constellation's.

        Raises:
            OSError: no socket to be had.
        """
        self.constellation = constellation
        self.index = RadixIndex()
        self._tenant = constellation.cache.tenant if tenant is None else tenant
        self._deadline_s = constellation.cache.deadline_ms / 1000
        self._lost: dict[Satellite, float] = {}  # until when
        self._placed: tuple[frozenset[Satellite] | None, list[Route]] = None, []
        self._statistics = StoreStatistics()
        self._lock = Lock()
        self._control = ControlPlane(constellation)
        try:
            self._native = NativeClient(packet_bytes=constellation.network.mtu, burst=constellation.satellite.credit)
        except BaseException:
            self._control.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the sockets; safe to call twice. Blocks stay where they are."""
        self._native.close()
        self._control.close()

    @property
    def control(self) -> ControlPlane:
        """The store's control plane, for status and commands."""
        return self._control

    # ---- blocks -----------------------------------------------------------------------------------------------------

    def put(self, items: Sequence[tuple[bytes, Buffer]], progress: Progress | None = None) -> list[PutResult]:
        """Store blocks, all at once. A block that is there already is not stored twice.

        Args:
            items: pairs of key (32 bytes) and block; the block's memory is read in place and must not change meanwhile.
            progress: called now and then.

        Returns:
            For each item its result, in order.

        Raises:
            ValueError: a key of another length, an empty or too large block.
        """
        for key, data in items:
            _check_key(key)
            if not 1 <= memoryview(data).nbytes <= UINT32_MAX:
                raise ValueError(f"block of {memoryview(data).nbytes} bytes; allowed are 1 to {UINT32_MAX}")
        start_s = time.perf_counter()
        routes = self._routes()
        if not routes:
            results = [PutResult(key, False, "no_satellite", None, 0.0) for key, _ in items]
        else:
            transfers = [Transfer(self._entry(key, memoryview(data).nbytes), self._tenant, data) for key, data in items]
            self._native.put(transfers, self._servers(routes), self._deadline_ms(), progress)
            results = [_put_result(transfer) for transfer in transfers]
            self._look_after(transfers)
            self._count(transfers, up=True)
        self.index.add(result.entry for result in results if result.entry is not None)
        self._add(
            puts=sum(result.ok for result in results),
            put_failures=sum(not result.ok for result in results),
            expired=sum(result.status == "expired" for result in results),
            put_s=time.perf_counter() - start_s,
        )
        return results

    def get(self, entries: Sequence[BlockEntry | bytes], progress: Progress | None = None) -> list[GetResult]:
        """Fetch blocks, all at once.

        A block that does not come whole within `cache.deadline_ms` is a miss, and what is left of it is purged (paper,
        section 3.9): as soon as one chunk is gone the others are of no use.

        Args:
            entries: what `put`, `find` or `find_longest` told about blocks; or keys, which are looked up first.
            progress: called now and then.

        Returns:
            For each entry its result, in order.

        Raises:
            ValueError: a key of another length.
        """
        keys = [entry if isinstance(entry, bytes) else entry.key for entry in entries]
        for key in keys:
            _check_key(key)
        start_s = time.perf_counter()
        known = self._resolve(entries)
        routes = self._routes()
        nothing = GetResult(b"", None, "miss" if routes else "no_satellite", 0.0)
        results = [replace(nothing, key=key) for key in keys]
        transfers: dict[int, Transfer] = {}
        for index, entry in enumerate(known if routes else ()):
            if entry is not None:
                try:
                    transfers[index] = Transfer(entry, self._tenant, bytearray(entry.block_len))
                except MemoryError:  # a satellite may claim any length
                    continue
        if transfers:
            self._native.get(list(transfers.values()), self._servers(routes), self._deadline_ms(), progress)
            for index, transfer in transfers.items():
                results[index] = _get_result(transfer)
            self._look_after(transfers.values())
            self._count(transfers.values(), up=False)
            self._forget(
                [transfer.entry.key for transfer in transfers.values() if transfer.state is not TransferState.DONE], routes
            )
        hits = sum(result.data is not None for result in results)
        self._add(
            hits=hits,
            misses=len(results) - hits,
            expired=sum(result.status == "expired" for result in results),
            get_s=time.perf_counter() - start_s,
        )
        return results

    # ---- lookups ----------------------------------------------------------------------------------------------------

    def find(self, key: bytes) -> BlockEntry | None:
        """What is known of a block: from the local index, else from the satellite of server 0, which has its first chunk.

        Raises:
            ValueError: a key of another length.
        """
        _check_key(key)
        return self.index.get(key) or (self._ask([key]) or [None])[0]

    def find_longest(self, keys: Sequence[bytes]) -> list[BlockEntry]:
        """The longest cached beginning of a chain of block keys.

        If the local index knows the first block, its answer counts. Else the satellite of server 0 is asked, by binary
        search: a block that is there has its predecessors there too, unless one was evicted (paper, section 3.8, Get
        steps 3 to 6).

        Args:
            keys: of a prompt's blocks, the first one first.

        Returns:
            Entries of the first blocks, without a gap; empty if there is none.

        Raises:
            ValueError: a key of another length.
        """
        for key in keys:
            _check_key(key)
        if found := self.index.longest_prefix(keys):
            return found
        asked: dict[int, BlockEntry | None] = {}
        low, high = 0, len(keys)  # blocks before `low` are there, from `high` on they are not
        while low < high:
            middle = (low + high) // 2
            answer = self._ask([keys[middle]])
            if answer is None:  # another question would wait as long
                return []
            asked[middle] = answer[0]
            if answer[0] is None:
                high = middle
            else:
                low = middle + 1
        rest = [index for index in range(low) if index not in asked]
        asked |= zip(rest, self._ask([keys[index] for index in rest]) or [], strict=False)
        for index in range(low):
            entry = asked.get(index)
            if entry is None:
                break
            found.append(entry)
        self.index.insert(found)
        return found

    def purge(self, keys: Sequence[bytes]) -> int:
        """Forget blocks, here and on the satellites.

        Returns:
            Chunks that satellites gave up.

        Raises:
            ValueError: a key of another length.
        """
        for key in keys:
            _check_key(key)
        return self._forget(keys, self._routes())

    def stats(self) -> StoreStatistics:
        """Counts as they are now."""
        with self._lock:
            return replace(self._statistics, retries=self._statistics.retries + self._control.retries)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _deadline_ms(self) -> int:
        return self.constellation.cache.deadline_ms

    def _entry(self, key: bytes, block_len: int) -> BlockEntry:
        chunk_len = min(self.constellation.cache.chunk_bytes, block_len)
        return BlockEntry(key, block_len, chunk_len, -(-block_len // chunk_len), 0, time.time())

    def _resolve(self, entries: Sequence[BlockEntry | bytes]) -> list[BlockEntry | None]:
        known = [self.index.get(entry) if isinstance(entry, bytes) else entry for entry in entries]
        unknown = [entry for entry, found in zip(entries, known, strict=True) if found is None and isinstance(entry, bytes)]
        answers = iter(self._ask(unknown) or [None] * len(unknown))
        return [next(answers) if entry is None else entry for entry in known]

    def _ask(self, keys: Sequence[bytes]) -> list[BlockEntry | None] | None:
        """HAS for blocks at the satellite of server 0, all at once. None: it did not answer."""
        routes = self._routes()
        if not keys or not routes:
            return [None] * len(keys)
        found, unanswered = self._control.find(routes[0], keys, self._tenant, min(_QUESTION_S, self._deadline_s))
        self._add(questions=len(keys))
        if unanswered == len(keys):
            self._look_for_lost(routes)
            return None
        return found

    def _routes(self) -> list[Route]:
        """Routes to all servers now, around satellites that do not answer."""
        self._look_for_returned()
        with self._lock:
            lost = frozenset(self._lost)
        if self.constellation.cache.window == "physical":
            return window.server_routes(self.constellation, time.time(), lost)
        if self._placed[0] != lost:  # nothing else changes a logical window
            self._placed = lost, window.server_routes(self.constellation, 0.0, lost)
        return self._placed[1]

    def _servers(self, routes: Sequence[Route]) -> list[Server]:
        return [
            (satellite, entry, self.constellation.address(*entry), self.constellation.network.port) for satellite, entry in routes
        ]

    def _look_after(self, transfers: Iterable[Transfer]) -> None:
        """After a transfer that ran out of time or found no way: which satellites do not answer at all?"""
        if any(_status(transfer) in ("expired", "unreachable", "hop_limit") for transfer in transfers):
            self._look_for_lost(self._routes())

    def _look_for_lost(self, routes: Sequence[Route]) -> None:
        alive = self._control.ping(routes, _TIDY_S)
        until_s = time.monotonic() + _LOST_S
        with self._lock:
            for satellite, _ in routes:
                if satellite not in alive:
                    self._lost[satellite] = until_s
        self._add(satellites_lost=len(routes) - len(alive))

    def _look_for_returned(self) -> None:
        now_s = time.monotonic()
        with self._lock:
            again = [satellite for satellite, until_s in self._lost.items() if until_s <= now_s]
            for satellite in again:
                self._lost[satellite] = now_s + _LOST_S  # other threads do not wait for this one's question
        if not again:
            return
        entry_points = window.entries(self.constellation, time.time())
        routes = [found for one in again if (found := window.route(self.constellation, one, entry_points))]
        alive = self._control.ping(routes, _TIDY_S)
        with self._lock:
            for satellite in alive:
                self._lost.pop(satellite, None)

    def _forget(self, keys: Sequence[bytes], routes: Sequence[Route]) -> int:
        for key in keys:
            self.index.remove(key)
        with self._lock:
            reachable = [one for one in routes if one.satellite not in self._lost]
        if not keys or not reachable:
            return 0
        removed = self._control.purge(reachable, keys, self._tenant, _TIDY_S)
        self._add(purges=len(keys))
        return removed

    def _count(self, transfers: Iterable[Transfer], *, up: bool) -> None:
        done = list(transfers)
        way = "up" if up else "down"
        self._add(
            **{
                f"chunks_{way}": sum(transfer.chunks for transfer in done),
                f"bytes_{way}": sum(transfer.bytes for transfer in done),
                "retries": sum(transfer.repeats for transfer in done),
                "corrupt": sum(transfer.corrupt for transfer in done),
            }
        )

    def _add(self, **counts: float) -> None:
        with self._lock:
            now = self._statistics
            self._statistics = replace(now, **{name: getattr(now, name) + count for name, count in counts.items()})


def _check_key(key: bytes) -> None:
    if len(key) != KEY_BYTES:
        raise ValueError(f"key of {len(key)} bytes; {KEY_BYTES} are allowed")


def _put_result(transfer: Transfer) -> PutResult:
    ok = transfer.state is TransferState.DONE
    return PutResult(transfer.entry.key, ok, _status(transfer), transfer.entry if ok else None, transfer.duration_s)


def _get_result(transfer: Transfer) -> GetResult:
    data = transfer.data if transfer.state is TransferState.DONE else None
    assert data is None or isinstance(data, bytearray)
    return GetResult(transfer.entry.key, data, _status(transfer), transfer.duration_s)


def _status(transfer: Transfer) -> str:
    if transfer.state is TransferState.REFUSED:
        return icd.STATUS_NAMES.get(transfer.status, "refused")
    return transfer.state.name.lower()
