"""What the scheduler's side says to the workers in every step, and what they say back. Pickled by vLLM."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from skymemory.engines.framing import BlockFormat


@dataclass(frozen=True, slots=True)
class Identity:
    """Who this engine is to the agent, and what all its keys start at."""

    root: bytes
    """32 bytes: digest of all that decides the bytes of a block"""
    model: str
    block_tokens: int
    dtype: str
    """as it is told to people"""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a worker lays out its part of a block; said once, before the first step."""

    format: BlockFormat
    facts: list[Any]
    """layers, dtypes and shapes, as JSON takes them"""


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """One block of the paged KV cache."""

    block_id: int
    """its place in the paged cache"""
    key: bytes
    """32 bytes, the same for all workers; see `identity.shard_key`"""


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """Blocks of a request that waits for them, in the order of its tokens."""

    request: str
    blocks: tuple[BlockPlan, ...]


@dataclass(slots=True)
class StepPlan:
    """Of one step of the engine."""

    identity: Identity | None = None
    """None: not known yet; then there is nothing to load or save"""
    loads: list[LoadPlan] = field(default_factory=list)
    saves: list[BlockPlan] = field(default_factory=list)
    """blocks that are full once this step is computed"""
    used: list[tuple[bytes, ...]] = field(default_factory=list)
    """keys of chains that were used, as far as they may be in the sky; the first block first"""
    prefill_tokens: int = 0
    prefill_pairs: float = 0.0
    """of these tokens and all that each looks at"""
    other_tokens: int = 0

    @property
    def prefill_before(self) -> int:
        """Tokens before those of the prefill, if it were one piece of one request that takes as long."""
        return max(0, round(self.prefill_pairs / max(1, self.prefill_tokens) - self.prefill_tokens / 2))


@dataclass(slots=True)
class Saved:
    """What became of blocks that workers were to store."""

    done: list[bytes] = field(default_factory=list)
    """keys of plans, once for each worker that stored its part"""
    failed: list[bytes] = field(default_factory=list)
    refused: list[bytes] = field(default_factory=list)
    """not copied out, for there was no room or no agent"""

    def __bool__(self) -> bool:
        """Whether there is anything to say."""
        return bool(self.done or self.failed or self.refused)

    def add(self, other: Saved) -> None:
        """Take over what another worker says."""
        self.done += other.done
        self.failed += other.failed
        self.refused += other.refused
