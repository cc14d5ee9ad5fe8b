"""How much memory a worker shares with the agent, and how many blocks may be on their way to the sky at once.

A short request is finished a moment after its last step, and what is not copied out by then is lost. So there must be room for
all blocks that a step fills, and for those of the step before, which are being sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_STEPS: Final = 2
"""the step that is computed, and the one before, whose blocks are being sent"""
_LOADS: Final = 16
"""blocks on their way down: two requests of the loader to the agent"""
_LEAST_BYTES: Final = 256 << 20
_MEMORY_PART: Final = 8
"""all workers of an engine together take an eighth of the machine's memory at most"""


@dataclass(frozen=True, slots=True)
class Room:
    """Memory for blocks on their way."""

    block_bytes: int
    step_blocks: int
    """blocks that a step fills at most, but for those that single tokens complete"""
    arena_bytes: int
    """of each worker; taken from the system page by page as it is used"""

    @property
    def saves(self) -> int:
        """Blocks that may be on their way to the sky at once; the rest of the memory is for loads."""
        blocks = self.arena_bytes // self.block_bytes
        return blocks - min(_LOADS, blocks // 2)

    def mib_for(self, blocks: int) -> int:
        """The `arena_mib` with which so many blocks may be on their way to the sky at once."""
        return -(-(blocks + _LOADS) * self.block_bytes >> 20)

    @property
    def lack(self) -> str:
        """Say what does not fit, or '' if all that a step fills does."""
        if self.saves >= self.step_blocks:
            return ""
        return (
            f"a step fills up to {self.step_blocks} blocks of {self.block_bytes / 1e6:.1f} MB, and there is room for "
            f"{self.saves} on their way to the sky ({self.arena_bytes >> 20} MiB): the others of a short request are not stored. "
            f"All are with arena_mib {self.mib_for(_STEPS * self.step_blocks)} in kv_connector_extra_config, or with a smaller "
            "--max-num-batched-tokens"
        )


def room_for(
    block_bytes: int, block_tokens: int, step_tokens: int, *, workers: int, arena_mib: int | None, memory_bytes: int
) -> Room:
    """Size the memory of each worker.

    Args:
        block_bytes: of one worker's part of a block, as it is stored.
        step_tokens: tokens of a step at most (`--max-num-batched-tokens`).
        workers: of the engine on this machine.
        arena_mib: what a person has set; None: as the blocks need, within limits.
        memory_bytes: of the machine.
    """
    step_blocks = -(-step_tokens // block_tokens)
    if arena_mib is not None:
        return Room(block_bytes, step_blocks, arena_mib << 20)
    wanted = (_STEPS * step_blocks + _LOADS) * block_bytes
    most = memory_bytes // _MEMORY_PART // workers
    arena_bytes = max(_LEAST_BYTES, min(wanted, most))
    return Room(block_bytes, step_blocks, -(-arena_bytes >> 20) << 20)
