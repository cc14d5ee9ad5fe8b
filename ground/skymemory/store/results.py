"""Results and counts of a store."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from skymemory.link.block_entry import BlockEntry
from skymemory.wire.icd import Status

__all__ = [
    "NO_WAY",
    "REPLACED",
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
"""Statuses of a transfer that say nothing about the block: a satellite or a link may be lost."""
SILENCE: Final = NO_WAY | {Status.UNANSWERED, Status.NO_SATELLITE, Status.CANCELLED, Status.NO_RANDOM}
"""Statuses of a call that say nothing about the block: it may be there."""


REPLACED: Final = frozenset((Status.OLD_VERSION, Status.BAD_KEY))
"""Statuses of a put that another version of the block, or another content of this version, stands in the way of."""


@dataclass(frozen=True, slots=True)
class PutResult:
    """Result of a put of a block."""

    key: bytes
    status: Status
    """DONE, or a reason: EXPIRED, CANCELLED, NO_SATELLITE, UNANSWERED (no satellite answers, and none was asked), or one that a
    satellite gave, such as STORE_FULL."""
    entry: BlockEntry | None
    """The entry with which the block is fetched. None if the block was not stored, or if the store tells no entries."""
    duration_s: float
    held_version: int = 0
    """After OLD_VERSION or BAD_KEY: the largest version of the block that a satellite said it holds."""
    lost: int = 0
    """Chunks of a stored block that no satellite acknowledged; parity makes up for them."""

    @property
    def ok(self) -> bool:
        """True if the whole block is stored."""
        return self.status is Status.DONE


@dataclass(frozen=True, slots=True)
class FindResult:
    """Result of a lookup of a block."""

    key: bytes
    entry: BlockEntry | None
    """The block's entry. None if the block is not there, or if nobody answered."""
    status: Status
    """DONE, MISS or UNANSWERED."""


class CancelledLookupError(Exception):
    """Nobody waits for a lookup any more. What of it was not sent is not sent."""


@dataclass(frozen=True, slots=True)
class ChainResult:
    """Beginning of a chain of blocks that was found."""

    entries: list[BlockEntry]
    """Entries of the first blocks, without a gap."""
    unanswered: Sequence[bytes] = ()
    """Keys of later blocks of which no satellite said anything. If there are any, the beginning may be longer."""


@dataclass(frozen=True, slots=True, repr=False)
class GetResult:
    """Result of a get of a block."""

    key: bytes
    data: bytearray | None
    """The block. None after a miss, or if the block is in the caller's memory."""
    status: Status
    """DONE, or a reason: MISS, TOO_LARGE (longer than the caller allowed), BAD_LENGTH (another length than the caller's memory),
    EXPIRED, CANCELLED, NO_SATELLITE, UNANSWERED, or one that a satellite gave."""
    duration_s: float
    known: bool = True
    """False if neither this host nor the satellites that were asked knew the block."""
    entry: BlockEntry | None = None
    """The entry of a block that was fetched; None if the store tells no entries."""
    is_degraded: bool = False
    """True if chunks of the block were missing, and were made of others."""

    def __repr__(self) -> str:
        """Show the length of the block, not its bytes."""
        data = "None" if self.data is None else f"<{len(self.data):,} bytes>"
        return f"GetResult(key={self.key.hex()}, data={data}, status={str(self.status)!r}, duration_s={self.duration_s:.6f})"

    @property
    def ok(self) -> bool:
        """True if the whole block was fetched."""
        return self.status is Status.DONE


@dataclass(frozen=True, slots=True)
class PrefetchResult:
    """Result of a block's prefetch."""

    key: bytes
    status: Status
    """DONE, or a reason: MISS (not known, or not whole), EXPIRED, NO_SATELLITE or UNANSWERED."""
    row: int
    """Row of the schedule at the time of the prefetch's target; 0 if there is no schedule."""
    moved: int
    """Shares whose place at that time is another one than now."""

    @property
    def ok(self) -> bool:
        """True if every share is where it will be needed."""
        return self.status is Status.DONE


@dataclass(frozen=True, slots=True)
class StoreStatistics:
    """Counts since the store was opened."""

    puts: int = 0
    """Blocks stored."""
    put_failures: int = 0
    """Blocks that could not be stored."""
    hits: int = 0
    """Blocks fetched."""
    misses: int = 0
    """Blocks that could not be fetched, for any reason."""
    expired: int = 0
    """Misses and failures because of the deadline."""
    purges: int = 0
    """Blocks purged, broken ones included."""
    prefetches: int = 0
    """Blocks prefetched."""
    touches: int = 0
    """Blocks touched, so that satellites evict them later than the blocks behind them in their chains."""
    questions: int = 0
    """Blocks asked for with HAS."""
    unanswered: int = 0
    """Lookups without an answer, and lookups that were not made because no satellite answers."""
    retries: int = 0
    """Requests and chunks that were sent again."""
    corrupt: int = 0
    """Chunks that failed their CRC-32C and were asked for again."""
    lost: int = 0
    """Chunks of blocks with parity that were stored or fetched without them: no satellite took or gave these."""
    decoded: int = 0
    """Chunks of fetched blocks that were made of others."""
    degraded: int = 0
    """Blocks that were fetched though chunks of them were missing."""
    puts_again: int = 0
    """Blocks of which chunks were missing, and that were put again after they were fetched."""
    wrong: int = 0
    """Blocks with wrong chunks of one satellite, which were right without these."""
    chunks_up: int = 0
    chunks_down: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    put_s: float = 0.0
    """Seconds in `put`."""
    get_s: float = 0.0
    """Seconds in `get`."""
    satellites_lost: int = 0
    """Times that a satellite was found lost: it did not answer while others did."""
