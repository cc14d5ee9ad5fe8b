"""`SkyStore`: keyed blocks of bytes, cut into chunks, on the satellites of a constellation (paper, sections 3.1 to 3.10).

    block -> chunks of `cache.chunk_bytes` -> servers (chunk id mod n) -> satellites (layout) -> entry satellites (window)

Nothing that happens in the sky raises: a lost packet is asked for again, a lost satellite is a miss. What raises is a
wrong argument.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from types import TracebackType
from typing import Final, Self

from skymemory.block_entry import BlockEntry
from skymemory.config import UINT32_MAX, Constellation
from skymemory.index.radix import RadixIndex
from skymemory.link.control import ControlPlane, Purged
from skymemory.link.native import Buffer, NativeClient, Server, Transfer, TransferState
from skymemory.placement.window import Route, lookup_routes
from skymemory.progress import Progress
from skymemory.reach import LOST_S, Reach
from skymemory.wire import icd
from skymemory.wire.packets import KEY_BYTES

BLOCK_BYTES_MAX: Final = 1 << 26
"""the largest block that is fetched unless the caller says otherwise: a block's length is a satellite's word, and memory is
taken by it"""
_TABLES_BYTES: Final = 224
"""what a satellite needs for each slot of its store besides the slot itself, at most: entries of two tables and their indexes"""
_QUESTION_S: Final = 1.0
"""how long a lookup waits at least for its answer, unless the deadline of blocks is shorter"""
_NO_WAY: Final = frozenset(("expired", "unreachable", "hop_limit"))
"""ends of a transfer that say nothing about the block: a satellite or a link may be lost"""


@dataclass(frozen=True, slots=True)
class PutResult:
    """What became of a block that was to be stored."""

    key: bytes
    ok: bool
    status: str
    """`done`, or why not: `expired`, `cancelled`, `no_satellite` (none in sight), `unanswered` (no satellite answers, and none
    was asked), or a status of the ICD such as `store_full`"""
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
    """`done`, or why not: `miss`, `too_large` (longer than was allowed), `expired`, `cancelled`, `no_satellite`, `unanswered`,
    or a status of the ICD"""
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
    unanswered: int = 0
    """lookups to which no answer came, or that were not made because no satellite answers"""
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
    """times that a satellite was found not to answer while others did"""


class SkyStore:
    """Blocks of 1 byte to 4 GiB - 1 under keys of 32 bytes. Thread-safe; a context manager.

    Blocks carry no checksum of their own here: each chunk has a CRC-32C on its way and in memory. `KeyValue` puts a digest
    around general values, the KV manager's blocks hold theirs.

    A local index remembers what was put and found, so that a known block is fetched without a question. A satellite that
    does not answer is replaced in the layout for a while, so that blocks can be put again at once; what it held is missed.
    While no satellite answers, calls end at once and bring nothing (`silent`), see `skymemory.reach`.
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
        self._incomplete: dict[bytes, float] = {}  # blocks that miss a lost satellite's share; until when
        self._statistics = StoreStatistics()
        self._lock = Lock()
        # One transfer and one lookup at a time, as the sockets have it anyway: who waits for them then knows what was learned
        self._transfer_turn, self._lookup_turn = Lock(), Lock()
        self._closed = False
        self._control = ControlPlane(constellation)
        try:
            self._native = NativeClient(packet_bytes=constellation.network.mtu, burst=constellation.satellite.credit)
        except BaseException:
            self._control.close()
            raise
        self._reach = Reach(constellation, self._control)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End what runs and close the sockets; safe to call twice. Blocks stay where they are."""
        self._closed = True
        self._native.close()
        self._control.close()

    @property
    def control(self) -> ControlPlane:
        """The store's control plane, for status and commands."""
        return self._control

    @property
    def capacity_bytes(self) -> int:
        """The longest block that its servers' stores surely hold, when all other blocks make room for it."""
        sky = self.constellation
        slots = (sky.satellite.store_mib << 20) // (sky.slot_bytes + _TABLES_BYTES)
        return min(sky.cache.servers * slots * sky.cache.chunk_bytes, UINT32_MAX)

    @property
    def silent(self) -> bool:
        """True from when no satellite answered until one does: blocks are then neither looked for nor stored."""
        return self._reach.silent

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
        self._check_open()
        start_s = time.perf_counter()
        transfers = [Transfer(self._entry(key, memoryview(data).nbytes), self._tenant, data) for key, data in items]
        self._move(transfers, progress, up=True)
        results = [self._put_result(transfer) for transfer in transfers]
        stored = [result.entry for result in results if result.entry is not None]
        self.index.add(stored)
        with self._lock:
            for entry in stored:
                self._incomplete.pop(entry.key, None)
        self._add(
            puts=len(stored),
            put_failures=len(results) - len(stored),
            expired=sum(result.status == "expired" for result in results),
            put_s=time.perf_counter() - start_s,
        )
        return results

    def get(
        self,
        entries: Sequence[BlockEntry | bytes],
        progress: Progress | None = None,
        *,
        block_bytes_max: int = BLOCK_BYTES_MAX,
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
            block_bytes_max: longer blocks are misses; their memory is not taken.

        Returns:
            For each entry its result, in order.

        Raises:
            ValueError: a key of another length, a closed store.
        """
        keys = [entry if isinstance(entry, bytes) else entry.key for entry in entries]
        for key in keys:
            _check_key(key)
        self._check_open()
        start_s = time.perf_counter()
        known = self._resolve(entries)
        results = [GetResult(key, None, "miss", 0.0) for key in keys]
        wanted = {index: entry for index, entry in enumerate(known) if entry is not None}
        results = self._fetched(results, wanted, block_bytes_max, progress)
        # Another host may have replaced a block since this one heard of it
        stale = [index for index in wanted if results[index].status == "bad_key"]
        if stale:
            for index in stale:
                self.index.remove(keys[index])
            answers = zip(stale, self._ask([keys[index] for index in stale]) or [], strict=False)
            renewed = {index: entry for index, entry in answers if entry is not None}
            results = self._fetched(results, renewed, block_bytes_max, progress)
        if len(wanted) < len(keys) and (reason := self._no_routes()):
            results = [one if index in wanted else replace(one, status=reason) for index, one in enumerate(results)]
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
        """What is known of a block: from the local index, else from the satellites (`find_longest`).

        Raises:
            ValueError: a key of another length, a closed store.
        """
        _check_key(key)
        self._check_open()
        return self.index.get(key) or (self._ask([key]) or [None])[0]

    def find_longest(self, keys: Sequence[bytes], *, block_bytes_max: int = BLOCK_BYTES_MAX) -> list[BlockEntry]:
        """The longest cached beginning of a chain of block keys.

        As far as the local index knows the chain, its answer counts. For the blocks behind, the nearest server is asked:
        for the first of them, as the end of a prompt is mostly new, and then by binary search: a block that is there has
        its predecessors there too, unless one was evicted (paper, section 3.8, Get steps 3 to 6).

        Args:
            keys: of a prompt's blocks, the first one first.
            block_bytes_max: a longer block ends the chain.

        Returns:
            Entries of the first blocks, without a gap; empty if there is none. If nobody answers, what the index knows:
            `stats().unanswered` counts it, and `silent` tells.

        Raises:
            ValueError: a key of another length, a closed store.
        """
        for key in keys:
            _check_key(key)
        self._check_open()
        known = self.index.longest_prefix(keys)
        found = known + self._search(keys[len(known) :])
        fits = [entry.block_len <= block_bytes_max for entry in found]
        found = found[: fits.index(False)] if False in fits else found
        if len(found) > len(known):
            self.index.insert(found)
        return found

    def confirm(self, entries: Sequence[BlockEntry]) -> list[BlockEntry]:
        """Ask all servers for their shares of blocks, all at once: those that are whole.

        An entry of the index says that a block was there once. What is found to be gone is forgotten; what depends on a
        server that does not answer now is not confirmed, and stays known.

        Returns:
            The entries whose every chunk is held, in order.

        Raises:
            ValueError: a closed store.
        """
        self._check_open()
        with self._lookup_turn:
            routes = self._reach.routes()
            if not routes or not entries:
                return []
            held = self._control.hold_all(routes, entries, self._tenant, self._question_s(routes))
            self._add(questions=len(entries), unanswered=held.count(None))
            if None in held:
                self._reach.look()
        for entry, whole in zip(entries, held, strict=True):
            if whole is False:
                self.index.remove(entry.key)
        return [entry for entry, whole in zip(entries, held, strict=True) if whole]

    def purge(self, keys: Sequence[bytes]) -> Purged:
        """Forget blocks, here and on the satellites; once more if one was silent and is taken for lost.

        Raises:
            ValueError: a key of another length, a closed store.
        """
        for key in keys:
            _check_key(key)
        self._check_open()
        purged = self._forget(keys, self._reach.routes())
        if purged.confirmed:
            return purged
        self._reach.look()
        again = self._forget(keys, self._reach.routes())
        return Purged(purged.chunks + again.chunks, again.confirmed)

    def stats(self) -> StoreStatistics:
        """Counts as they are now."""
        with self._lock:
            counted = self._statistics
        return replace(counted, retries=counted.retries + self._control.retries, satellites_lost=self._reach.losses)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("the store was closed")

    def _deadline_ms(self) -> int:
        return self.constellation.cache.deadline_ms

    def _entry(self, key: bytes, block_len: int) -> BlockEntry:
        chunk_len = min(self.constellation.cache.chunk_bytes, block_len)
        return BlockEntry(key, block_len, chunk_len, -(-block_len // chunk_len), 0, time.time())

    def _no_routes(self) -> str | None:
        """The word for why nothing can be moved now; None: it can."""
        if self._reach.silent:
            return "unanswered"
        return None if self._reach.routes() else "no_satellite"

    # transfers

    def _move(self, transfers: Sequence[Transfer], progress: Progress | None, *, up: bool) -> None:
        """Put or get blocks; once more those for which there is a way that was not known before. RUNNING: not even begun."""
        call = self._native.put if up else self._native.get
        left = list(transfers)
        with self._transfer_turn:
            tried: list[Route] = []
            for _ in range(2):
                routes = self._reach.routes()
                if not left or not routes or routes == tried:
                    return
                call(left, self._servers(routes), self._deadline_ms(), progress)
                self._count(left, up=up)
                missed_stand_in = [transfer for transfer in left if self._stand_in_failed(transfer)]
                left = [transfer for transfer in left if _status(transfer) in _NO_WAY]
                if left:
                    self._reach.look()
                if missed_stand_in:
                    self._reach.doubt()
                left += missed_stand_in
                tried = routes

    def _fetched(
        self, results: list[GetResult], wanted: dict[int, BlockEntry], block_bytes_max: int, progress: Progress | None
    ) -> list[GetResult]:
        """The results with those of the wanted blocks filled in; what is gone is forgotten."""
        results = list(results)
        transfers: dict[int, Transfer] = {}
        for index, entry in wanted.items():
            if entry.block_len > block_bytes_max:
                results[index] = replace(results[index], status="too_large")
            else:
                transfers[index] = Transfer(entry, self._tenant, bytearray(entry.block_len))
        self._move(list(transfers.values()), progress, up=False)
        gone: list[bytes] = []
        for index, transfer in transfers.items():
            results[index] = self._get_result(transfer)
            if results[index].status == "miss":
                gone.append(transfer.entry.key)
                if self._stand_in_failed(transfer) or not self.constellation.cache.lazy_purge:
                    # A stand-in never had its share. The lost satellite may still serve other hosts, so the block stays
                    self._set_incomplete(gone.pop())
        if gone:
            self._forget(gone, self._reach.routes())
        return results

    def _stand_in_failed(self, transfer: Transfer) -> bool:
        return _status(transfer) == "miss" and transfer.failed is not None and self._reach.stands_in(transfer.failed)

    def _set_incomplete(self, key: bytes) -> None:
        self.index.remove(key)
        now_s = time.monotonic()
        with self._lock:
            self._incomplete = {one: until_s for one, until_s in self._incomplete.items() if until_s > now_s}
            self._incomplete[key] = now_s + LOST_S

    def _servers(self, routes: Sequence[Route]) -> list[Server]:
        return [
            (satellite, entry, self.constellation.address(*entry), self.constellation.network.port) for satellite, entry in routes
        ]

    def _put_result(self, transfer: Transfer) -> PutResult:
        ok = transfer.state is TransferState.DONE
        return PutResult(transfer.entry.key, ok, self._end(transfer), transfer.entry if ok else None, transfer.duration_s)

    def _get_result(self, transfer: Transfer) -> GetResult:
        data = transfer.data if transfer.state is TransferState.DONE else None
        assert data is None or isinstance(data, bytearray)
        return GetResult(transfer.entry.key, data, self._end(transfer), transfer.duration_s)

    def _end(self, transfer: Transfer) -> str:
        if transfer.state is TransferState.RUNNING:
            return "unanswered" if self._reach.silent else "no_satellite"
        return _status(transfer)

    # questions

    def _question_s(self, routes: Sequence[Route]) -> float:
        return min(self.constellation.cache.deadline_ms / 1000, max(_QUESTION_S, self._control.patience_s(routes)))

    def _resolve(self, entries: Sequence[BlockEntry | bytes]) -> list[BlockEntry | None]:
        known = [self.index.get(entry) if isinstance(entry, bytes) else entry for entry in entries]
        unknown = [entry for entry, found in zip(entries, known, strict=True) if found is None and isinstance(entry, bytes)]
        answers = iter(self._ask(unknown) or [None] * len(unknown))
        return [next(answers) if entry is None else entry for entry in known]

    def _search(self, keys: Sequence[bytes]) -> list[BlockEntry]:
        """The longest beginning of a chain that satellites know."""
        asked: dict[int, BlockEntry | None] = {}
        low, high = 0, len(keys)  # blocks before `low` are there, from `high` on they are not
        while low < high:
            middle = (low + high) // 2 if asked else 0
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
        found: list[BlockEntry] = []
        for index in range(low):
            entry = asked.get(index)
            if entry is None:
                break
            found.append(entry)
        return found

    def _ask(self, keys: Sequence[bytes]) -> list[BlockEntry | None] | None:
        """HAS for blocks, all at once. None: nobody answers, after another way was tried if there is one."""
        if not keys:
            return []
        with self._lookup_turn:
            tried: list[Route] = []
            for _ in range(2):
                routes = self._reach.routes()
                if not routes or routes == tried:
                    break
                found = self._asked(routes, keys)
                if found is not None:
                    return [None if self._is_incomplete(key) else entry for key, entry in zip(keys, found, strict=True)]
                self._reach.look()
                tried = routes
        self._add(unanswered=len(keys))
        return None

    def _asked(self, routes: list[Route], keys: Sequence[bytes]) -> list[BlockEntry | None] | None:
        """Ask over these routes. None: somebody did not answer at all."""
        found: dict[bytes, BlockEntry] = {}
        for route in lookup_routes(self.constellation, routes):
            left = [key for key in keys if key not in found]
            if not left:
                break
            answers, unanswered = self._control.find(route, left, self._tenant, self._question_s([route]))
            self._add(questions=len(left))
            if unanswered == len(left):
                return None
            found |= {entry.key: entry for entry in answers if entry is not None}
        return [found.get(key) for key in keys]

    def _is_incomplete(self, key: bytes) -> bool:
        with self._lock:
            return self._incomplete.get(key, 0.0) > time.monotonic()

    def _forget(self, keys: Sequence[bytes], routes: Sequence[Route]) -> Purged:
        for key in keys:
            self.index.remove(key)
        if not keys or not routes:
            return Purged(0, True)
        removed = self._control.purge(routes, keys, self._tenant, self._control.patience_s(routes))
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


def _status(transfer: Transfer) -> str:
    if transfer.state is TransferState.REFUSED or (
        transfer.state is TransferState.MISS and transfer.status == icd.STATUS_BAD_KEY
    ):
        return icd.STATUS_NAMES.get(transfer.status, "refused")
    return transfer.state.name.lower()
