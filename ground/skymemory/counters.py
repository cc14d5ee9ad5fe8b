"""What a `KVCManager` did, in numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class KVCStatistics:
    """Counts since the manager was made. Times are wall-clock seconds."""

    prompts: int = 0
    """asked for by `get_cache`"""
    hits: int = 0
    """of these: at least one block came back"""
    misses: int = 0
    """of these: none did; so hits + misses = prompts"""
    blocks_hit: int = 0
    blocks_missed: int = 0
    """full blocks of the prompts that did not come back, for whatever reason"""
    tokens_asked: int = 0
    tokens_cached: int = 0
    """of these: need not be computed"""
    blocks_stored: int = 0
    blocks_present: int = 0
    """not stored by `add_blocks` because they were there already"""
    bytes_up: int = 0
    """of blocks stored, with their headers"""
    bytes_down: int = 0
    """of blocks that came back, with their headers"""
    find_s: float = 0.0
    get_s: float = 0.0
    decode_s: float = 0.0
    prefill_s: float = 0.0
    encode_s: float = 0.0
    put_s: float = 0.0
    errors: Counter[str] = field(default_factory=Counter)
    """by cause: `damaged` blocks, `encode`: blocks that could not be, the store's words for blocks that it could not bring or
    keep; `find`, `get`, `put` and `purge`: calls that raised"""


@dataclass(frozen=True, slots=True)
class AddReport:
    """What `add_blocks` did for one prompt."""

    blocks: int
    """full blocks of the prompt"""
    present: int
    """that were in the sky already"""
    stored: int
    failed: int
    """that could not be encoded or stored; the rest of `blocks` was not covered by the given cache"""
    bytes_up: int
