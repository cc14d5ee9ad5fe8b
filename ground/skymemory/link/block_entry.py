"""The entry of a block, as the index of the ground keeps it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from skymemory.sky.placement import spread

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class BlockEntry:
    """Facts about a block that suffice to fetch it without a question."""

    key: bytes
    """32 bytes."""
    block_len: int
    """Bytes of the block."""
    chunk_len: int
    """Bytes of a full chunk; the last one may be shorter."""
    chunk_total: int
    """Chunks, parity included."""
    epoch: int
    """Row of the schedule for whose window the block was prefetched (`SkyStore.prefetch`). 0: it lies in the present window.
    `SCHEDULE_STAYS`: no handover moves it (a host on board)."""
    set_at: float
    """Seconds since 1970; 0 if another host set it."""
    version: int = 0
    """Version of the block under its key; 0: the key names the content."""
    content: int = 0
    """Content instance, a number of 32 bits that unequal contents hardly share; 0: it has none."""
    code_k: int = 0
    """Data chunks of a row; 0: the block has no parity."""
    code_m: int = 0
    """Parity chunks of a row."""

    def offset(self, servers: int) -> int:
        """Return the server, of so many, that has share 0 of the block."""
        return spread.offset_of(self.key, self.chunk_total, servers)

    def by_share(self, of_servers: Sequence[_T]) -> Sequence[_T]:
        """Return what belongs to servers 0 to n - 1 in the order of the block's shares. Share s begins with chunk s."""
        return spread.by_share(of_servers, self.offset(len(of_servers))) if of_servers else of_servers
