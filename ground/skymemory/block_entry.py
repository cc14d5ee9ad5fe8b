"""What the ground knows of a block in the sky."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BlockEntry:
    """What must be known to fetch a block without a question."""

    key: bytes
    """32 bytes"""
    block_len: int
    """bytes"""
    chunk_len: int
    """bytes of a full chunk; the last one may be shorter"""
    chunk_total: int
    epoch: int
    """row of the schedule for whose window the block was laid in advance (`SkyStore.prefetch`); 0: it lies in the window of the
    moment; `SCHEDULE_STAYS`: no handover moves it (a host on board)"""
    set_at: float
    """seconds since 1970; 0 if another host set it"""
