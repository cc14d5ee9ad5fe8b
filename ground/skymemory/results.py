"""What a `SkyStore` answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from skymemory.block_entry import BlockEntry
from skymemory.wire.icd import Status

__all__ = [
    "NO_WAY",
    "SILENCE",
    "ChainResult",
    "FindResult",
    "GetResult",
    "PrefetchResult",
    "PutResult",
    "Status",
    "StoreStatistics",
]

NO_WAY: Final = frozenset((Status.EXPIRED, Status.UNREACHABLE, Status.HOP_LIMIT))
"""ends of a transfer that say nothing about the block: a satellite or a link may be lost"""
SILENCE: Final = NO_WAY | {Status.UNANSWERED, Status.NO_SATELLITE, Status.CANCELLED}
"""ends of a call that say nothing about the block: it may be there"""


@dataclass(frozen=True, slots=True)
class PutResult:
    """What became of a block that was to be stored."""

    key: bytes
    status: Status
    """DONE, or why not: EXPIRED, CANCELLED, NO_SATELLITE, UNANSWERED (no satellite answers, and none was asked), or what a
    satellite said, such as STORE_FULL"""
    entry: BlockEntry | None
    """what must be known to fetch it; None if it was not stored"""
    duration_s: float

    @property
    def ok(self) -> bool:
        """The block is stored, whole."""
        return self.status is Status.DONE


@dataclass(frozen=True, slots=True)
class FindResult:
    """What is known of a block that was looked for."""

    key: bytes
    entry: BlockEntry | None
    """None: it is not there, or nobody could say"""
    status: Status
    """DONE, MISS or UNANSWERED"""


@dataclass(frozen=True, slots=True)
class ChainResult:
    """How much of a chain of blocks was found."""

    entries: list[BlockEntry]
    """of its first blocks, without a gap"""
    unanswered: Sequence[bytes] = ()
    """keys of blocks behind these of which no satellite said anything: the beginning may be longer"""


@dataclass(frozen=True, slots=True, repr=False)
class GetResult:
    """What became of a block that was asked for."""

    key: bytes
    data: bytearray | None
    """None: a miss, or the block is where the caller wanted it"""
    status: Status
    """DONE, or why not: MISS, TOO_LARGE (longer than was allowed), BAD_LENGTH (not as long as the memory for it), EXPIRED,
    CANCELLED, NO_SATELLITE, UNANSWERED, or what a satellite said"""
    duration_s: float
    known: bool = True
    """False: nobody knew of such a block, neither this host nor the satellites that were asked"""

    def __repr__(self) -> str:
        """Show the length of the block, not its bytes."""
        data = "None" if self.data is None else f"<{len(self.data):,} bytes>"
        return f"GetResult(key={self.key.hex()}, data={data}, status={str(self.status)!r}, duration_s={self.duration_s:.6f})"

    @property
    def ok(self) -> bool:
        """The block is here, whole."""
        return self.status is Status.DONE


@dataclass(frozen=True, slots=True)
class PrefetchResult:
    """What became of a block that was to be laid for a time to come."""

    key: bytes
    status: Status
    """DONE, or why not: MISS (not known, or not whole), EXPIRED, NO_SATELLITE, UNANSWERED"""
    row: int
    """of the schedule, that holds at that time; 0: there is no schedule"""
    moved: int
    """shares that have another place then than now"""

    @property
    def ok(self) -> bool:
        """Every share is where it will be needed."""
        return self.status is Status.DONE


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
    prefetches: int = 0
    """blocks laid in advance"""
    touches: int = 0
    """blocks that were made younger than those behind them in their chains"""
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
