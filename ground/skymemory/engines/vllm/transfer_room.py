"""Memory that a worker shares with the agent, and the number of blocks that may be on their way to the sky at once.

A short request is finished a moment after its last step, and blocks that are not copied out by then are lost. So there must be
room for all blocks that a step fills, and for those of the step before, which are being sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_STEPS: Final = 2
"""Steps with room for their blocks: the one that is computed, and the one before, whose blocks are being sent."""
_LOADS: Final = 16
"""Blocks on their way down: two requests of the loader to the agent."""
_LEAST_BYTES: Final = 256 << 20
_MEMORY_PART: Final = 8
"""Divisor of the machine's memory that gives the most for all workers of an engine together."""


@dataclass(frozen=True, slots=True)
class TransferRoom:
    """Memory for blocks on their way."""

    block_bytes: int
    step_blocks: int
    """Most blocks that a step fills, but for those that single tokens complete."""
    arena_bytes: int
    """Arena of each worker; taken from the system page by page as it is used."""

    @property
    def saves(self) -> int:
        """Blocks that may be on their way to the sky at once; the rest of the memory is for loads."""
        blocks = self.arena_bytes // self.block_bytes
        return blocks - min(_LOADS, blocks // 2)

    def mib_for(self, blocks: int) -> int:
        """Return the `arena_mib` with which so many blocks may be on their way to the sky at once."""
        return -(-(blocks + _LOADS) * self.block_bytes >> 20)

    @property
    def lack(self) -> str:
        """Message that says what does not fit, or '' if all blocks that a step fills do."""
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
) -> TransferRoom:
    """Size the memory of each worker.

    Args:
        block_bytes: Bytes of one worker's part of a block, as it is stored.
        step_tokens: Most tokens of a step (`--max-num-batched-tokens`).
        workers: Workers of the engine on this machine.
        arena_mib: Size that a person has set; None: as the blocks need, within limits.
        memory_bytes: Memory of the machine.
    """
    step_blocks = -(-step_tokens // block_tokens)
    if arena_mib is not None:
        return TransferRoom(block_bytes, step_blocks, arena_mib << 20)
    wanted = (_STEPS * step_blocks + _LOADS) * block_bytes
    most = memory_bytes // _MEMORY_PART // workers
    arena_bytes = max(_LEAST_BYTES, min(wanted, most))
    return TransferRoom(block_bytes, step_blocks, -(-arena_bytes >> 20) << 20)
