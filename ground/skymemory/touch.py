"""Chains of blocks lose their end first: the order in which satellites evict, without a word of its own on the wire.

A satellite evicts the block that was not moved for the longest time, and it knows nothing of chains. One that was stored or
fetched from its beginning on would lose its beginning first, and the rest would be of no use. So once a chain was used, one
chunk of each of its blocks is fetched from each server, the last block first.
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from skymemory.config import Constellation
from skymemory.index.radix import RadixIndex
from skymemory.link.control import ControlPlane
from skymemory.reach import Reach
from skymemory.sizing import blocks_held

_ASKS: Final = 64
"""chunks that are asked for at once: what is behind them has to come later"""
_FULL: Final = 0.5
"""of the sky; with less in it nothing will be evicted soon"""


class Touch:
    """Of one store. Thread-safe: it has a socket of its own, so no lookup waits for it."""

    def __init__(self, constellation: Constellation, index: RadixIndex, reach: Reach, tenant: int) -> None:
        """
        Raises:
            OSError: no socket to be had.
        """
        self.crowded = False
        """something was evicted; others may fill the sky of whom this host does not know"""
        self._constellation = constellation
        self._index = index
        self._reach = reach
        self._tenant = tenant
        self._control = ControlPlane(constellation)

    def close(self) -> None:
        """Close the socket; safe to call twice."""
        self._control.close()

    def chain(self, keys: Sequence[bytes]) -> int:
        """Touch a chain (`SkyStore.touch`), and return how many blocks were touched."""
        known = (self._index.get(key) for key in keys)
        entries = list(takewhile(lambda entry: entry is not None, known))
        blocks = [entry for entry in entries if entry is not None]
        if not blocks:
            return 0
        room = blocks_held(self._constellation, max(entry.block_len for entry in blocks))
        blocks = blocks[:room]
        if not self.crowded and len(self._index) < _FULL * room:
            return 0
        if self._index.is_tail_oldest([entry.key for entry in blocks], int(_FULL * room)):
            return 0
        ways = {epoch: self._reach.ways(epoch) for epoch in {entry.epoch for entry in blocks}}
        placed = [(entry, way) for entry in reversed(blocks) if (way := ways[entry.epoch]) is not None]
        at_once = max(1, _ASKS // self._constellation.cache.servers)
        touched = 0
        for first in range(0, len(placed), at_once):
            some = [(entry, [place[0] for place in way.places]) for entry, way in placed[first : first + at_once]]
            routes = [route for _, one in some for route in one]
            if not self._control.touch(some, self._tenant, self._control.patience_s(routes)):
                break  # who is lost is found by those who need him; the order is a matter of taste
            self._index.moved(entry.key for entry, _ in some)
            touched += len(some)
        return touched
