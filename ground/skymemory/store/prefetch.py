"""Prefetches: blocks are moved to where their servers will be in a row to come of the schedule (`sky_ground_prefetch.c`)."""

from collections.abc import Sequence

from skymemory.link.block_entry import BlockEntry
from skymemory.link.operations import CALM, Operation, Outcome
from skymemory.link.structures import Kind
from skymemory.store.parts import Part
from skymemory.store.runner import Steps


class Prefetches(Part):
    """Prefetches of one store. Thread-safe."""

    def to_row(self, entries: Sequence[BlockEntry], row: int, deadline_s: float) -> Steps[list[Outcome]]:
        """Move blocks to the places of their servers in a row to come, all at once.

        Args:
            entries: The blocks, with their current epochs.
            row: The row of the schedule.
            deadline_s: Seconds after which blocks that have not arrived are EXPIRED.

        Returns:
            The outcome of each block, in order.
        """
        if not entries:
            return []
        deadline_ms = max(1, round(1000 * deadline_s))
        return (yield [Operation(Kind.PREFETCH, one, self._tenant, deadline_ms, ways=CALM, extra=row) for one in entries])

    def moved(self, entry: BlockEntry, now: int, row: int) -> int:
        """Return the number of shares of a block whose place in a row to come is another one than in the row of now."""
        pairs = zip(self._where.servers(now), self._where.servers(row), strict=True)
        return sum(entry.by_share([before != after for before, after in pairs])[: entry.chunk_total])
