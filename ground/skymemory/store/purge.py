"""Purges of blocks, here and on the satellites, wherever a share of them may be.

The core decides who is asked, and when a block counts as gone (`sky_ground_purge.c`).
"""

from collections.abc import Sequence

from skymemory.link.block_entry import BlockEntry
from skymemory.link.control import Purged
from skymemory.link.operations import HURRIED, LAZY, MAKES_WAY, Outcome
from skymemory.link.structures import Kind
from skymemory.store.parts import Part
from skymemory.store.results import Status
from skymemory.store.runner import Steps

_NOBODY = frozenset((Status.NO_SATELLITE, Status.UNANSWERED))


class Purges(Part):
    """Purges of one store. Thread-safe."""

    def forget(self, entries: Sequence[BlockEntry]) -> None:
        """Forget blocks here, and begin to purge them on the satellites: nobody waits for that.

        Spared are newer versions, other contents of the same version, and what is kept for a row to come that this host does not
        know of: another host may have put or prefetched it since this host asked.
        """
        for one in entries:
            self._index.remove(one.key)
        self._tidying.begin([self._operation(Kind.PURGE, one, LAZY | HURRIED) for one in entries])
        self._count(purges=len(entries))

    def purge(self, keys: Sequence[bytes]) -> Steps[Purged]:
        """Forget blocks wherever they may be. The purge is repeated for blocks of which a satellite said nothing."""
        blocks = yield from self._run([self._any_of(key) for key in keys], 0)
        return Purged(sum(one.purged for one in blocks), all(one.status is Status.DONE for one in blocks))

    def make_way(self, keys: Sequence[bytes]) -> Steps[list[Purged]]:
        """Forget blocks so that others can be put under their keys (`SkyStore.make_way`)."""
        told = yield from self._run([self._any_of(key) for key in keys], MAKES_WAY)
        return [Purged(one.purged, one.status is Status.DONE) for one in told]

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _any_of(self, key: bytes) -> BlockEntry:
        """Return what a purge of any version of a block needs to know: where it may be."""
        known, cache = self._index.get(key), self._where.constellation.cache
        code = (cache.servers - cache.parity, cache.parity) if cache.parity else (0, 0)
        if known is None:
            return BlockEntry(key, 0, 0, 0, 0, 0.0, 0, 0, *code)
        return BlockEntry(key, known.block_len, known.chunk_len, known.chunk_total, known.epoch, 0.0, 0, 0, *code)

    def _run(self, entries: Sequence[BlockEntry], ways: int) -> Steps[list[Outcome]]:
        """Forget blocks here, and purge them on the satellites."""
        if not entries:
            return []
        for one in entries:
            self._index.remove(one.key)
        told = yield [self._operation(Kind.PURGE, one, ways) for one in entries]
        for one in entries:  # a concurrent lookup may have found a block before it was purged
            self._index.remove(one.key)
        self._count(purges=sum(one.status not in _NOBODY for one in told))
        return told
