"""`SkyStore`: keyed blocks of bytes, cut into chunks, on the satellites of a constellation (paper, sections 3.1 to 3.10).

    block -> chunks of `cache.chunk_bytes` -> servers (chunk id mod n) -> satellites (layout) -> entry satellites (window)

Nothing that happens in the sky raises: a lost packet is asked for again, a lost satellite is a miss. What raises is a
wrong argument.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from types import TracebackType
from typing import Final, Self

from skymemory.config import UINT32_MAX, Constellation
from skymemory.index.radix import BlockEntry, RadixIndex
from skymemory.link.control import ControlPlane
from skymemory.link.native import NativeClient, Transfer, TransferState
from skymemory.placement.torus import Satellite
from skymemory.placement.window import Route, server_routes
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
        self._statistics = StoreStatistics()
        self._lock = Lock()
        self._control = ControlPlane(constellation)
        try:
            self._native = NativeClient(
                packet_bytes=constellation.network.mtu, burst=constellation.satellite.credit
            )
        except BaseException:
            self._control.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
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
            transfers = [
                Transfer(self._entry(key, memoryview(data).nbytes), self._tenant, data) for key, data in items
            ]
            self._native.put(transfers, self._servers(routes), self._deadline_ms(), progress)
            results = [self._put_result(transfer) for transfer in transfers]
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
