"""Messages that the scheduler's side and the workers exchange in every step. Pickled by vLLM."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from skymemory.engines.framing import BlockFormat


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity of this engine for the agent, and the root of its keys."""

    root: bytes
    """Digest of all that decides the bytes of a block, 32 bytes."""
    model: str
    block_tokens: int
    dtype: str
    """Type of the cache, for people."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of a worker's part of a block."""

    format: BlockFormat
    facts: list[Any]
    """Layers, dtypes and shapes, as JSON takes them."""


@dataclass(frozen=True, slots=True)
class PagedBlock:
    """One block of the paged KV cache."""

    block_id: int
    """Place of the block in the paged cache."""
    key: bytes
    """Key of the block, 32 bytes, the same for all workers; see `identity.shard_key`."""


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """Blocks of a request that waits for them, in the order of its tokens."""

    request: str
    blocks: tuple[PagedBlock, ...]


@dataclass(slots=True)
class StepPlan:
    """Tasks of one step of the engine."""

    identity: Identity | None = None
    """Identity of the engine; None until it is known, and then there is nothing to load or save."""
    loads: list[LoadPlan] = field(default_factory=list)
    saves: list[PagedBlock] = field(default_factory=list)
    """Blocks that are full once this step is computed."""
    used: list[tuple[bytes, ...]] = field(default_factory=list)
    """Keys of chains that were used, as far as they may be in the sky; the first block first."""
    prefill_tokens: int = 0
    prefill_pairs: float = 0.0
    """Pairs of these tokens and the tokens that each looks at."""
    other_tokens: int = 0
    is_layout_wanted: bool = False
    """True if each worker is to tell its layout after the step."""

    @property
    def prefill_before(self) -> int:
        """Tokens before those of the prefill, if it were one piece of one request that takes as long."""
        return max(0, round(self.prefill_pairs / max(1, self.prefill_tokens) - self.prefill_tokens / 2))


@dataclass(slots=True)
class Saved:
    """Outcomes of blocks that workers were to store."""

    done: list[bytes] = field(default_factory=list)
    """Keys of plans, once for each worker that stored its part."""
    failed: list[bytes] = field(default_factory=list)
    refused: list[bytes] = field(default_factory=list)
    """Keys of blocks that were not copied out, because there was no room or no agent."""

    def __bool__(self) -> bool:
        """Return True if there is anything to report."""
        return bool(self.done or self.failed or self.refused)

    def add(self, other: Saved) -> None:
        """Add what another worker reports."""
        self.done += other.done
        self.failed += other.failed
        self.refused += other.refused
