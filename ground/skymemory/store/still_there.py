"""Checks that blocks in the local index are still there: satellites evict blocks or restart, and tell nobody.

Before a chain of blocks is relied on, satellites are asked for a few of its blocks, all at once. The check waits no longer than
an answer takes. Without an answer the index is believed, and the silent satellite is not asked again for a while. The core
decides who is asked and what the answers mean (`sky_ground_check.c`).
"""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from skymemory.link.block_entry import BlockEntry
from skymemory.link.operations import HURRIED, SAMPLE, Outcome
from skymemory.link.structures import Kind
from skymemory.sky.placement.structures import Verdict
from skymemory.store.parts import Part
from skymemory.store.results import Status
from skymemory.store.runner import Steps

_WHOLE_MAX: Final = 16
"""Most blocks for which all servers are asked at once."""


class Checked(NamedTuple):
    """Result of a check of chains."""

    there: list[list[BlockEntry]]
    """The beginning of each chain that is still there as far as known."""
    gone: dict[bytes, tuple[BlockEntry, Verdict]]
    """The blocks that cannot be had, and what is to become of them; by key."""
    others: set[bytes]
    """Those of them under whose keys there are other blocks."""


class Checks(Part):
    """Checks of one store. Thread-safe."""

    def check(self, chains: Sequence[Sequence[BlockEntry]]) -> Steps[Checked]:
        """Return how much of each chain is still there.

        Satellites evict first the block that was not moved for the longest time, so all servers are asked for that block of each
        chain. Other hosts may have moved other blocks of it. So the server of share 0 is asked for the chain's first and last
        block: no share has more chunks, and no server evicts sooner. If a block is gone, all servers are asked for all blocks
        before it.
        """
        found = Checked([], {}, set())
        samples: dict[bytes, BlockEntry] = {}
        whole: set[bytes] = set()
        for chain in chains:
            if (stalest := self._index.stalest(chain)) is not None:
                samples |= {entry.key: entry for entry in (stalest, chain[0], chain[-1])}
                whole |= {stalest.key} if len(whole) < _WHOLE_MAX else set()
        yield from self._ask(list(samples.values()), whole, found)
        for chain in chains:
            left = _beginning(chain, found.gone)
            if len(left) < len(chain):
                yield from self._first_gone([entry for entry in left if entry.key not in whole], found)
            found.there.append(_beginning(left, found.gone))
        return found

    def _first_gone(self, entries: Sequence[BlockEntry], found: Checked) -> Steps[None]:
        """Ask all servers for blocks, some at a time, until blocks are found that are not whole."""
        before = len(found.gone)
        for first in range(0, len(entries), _WHOLE_MAX):
            some = entries[first : first + _WHOLE_MAX]
            yield from self._ask(some, {entry.key for entry in some}, found)
            if len(found.gone) > before:
                return

    def _ask(self, entries: Sequence[BlockEntry], everywhere: Collection[bytes], found: Checked) -> Steps[None]:
        """Ask for blocks: all servers for those whose keys are in `everywhere`, only the one of share 0 for the others."""
        if not entries:
            return
        current = [self._index.current(entry) for entry in entries]
        ways = [HURRIED if entry.key in everywhere else HURRIED | SAMPLE for entry in current]
        told = yield [self._operation(Kind.CHECK, *one) for one in zip(current, ways, strict=True)]
        self._count(questions=sum(one.tries > 0 for one in told))
        for entry, one in zip(current, told, strict=True):
            if _is_gone(one):
                found.gone[entry.key] = entry, one.verdict
            if one.status is Status.MISS and one.is_other:
                found.others.add(entry.key)


def _is_gone(one: Outcome) -> bool:
    return one.status is Status.MISS and one.verdict is not Verdict.KEEP


def _beginning(chain: Sequence[BlockEntry], gone: Collection[bytes]) -> list[BlockEntry]:
    end = next((index for index, entry in enumerate(chain) if entry.key in gone), len(chain))
    return list(chain[:end])
