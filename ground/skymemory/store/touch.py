"""Touches of chains: fetch chunks of their blocks so that satellites evict a chain's end before its beginning.

A satellite evicts the block that was not moved for the longest time; it knows nothing of chains. A chain that was stored or
fetched from its beginning on would lose its beginning first, and the rest would be of no use. So after a chain was used, one
chunk of each of its blocks is fetched from each server, the last block first. This needs no request of its own on the wire.
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from skymemory.store.parts import Operation, StoreParts
from skymemory.store.sizing import blocks_held

_ASKS: Final = 64
"""Most chunks that are asked for at once, so that blocks further to the front are surely moved later."""
_FULL: Final = 0.5
"""Part of the sky's capacity below which nothing will be evicted soon."""


class Touches(Operation):
    """Touches of one store. Thread-safe."""

    def __init__(self, parts: StoreParts) -> None:
        super().__init__(parts)
        self.crowded = False
        """True once a block was evicted. The sky is then full, if only of other hosts' blocks."""
        self._constellation = parts.where.constellation

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
        ways = {epoch: self._routes.ways(epoch) for epoch in {entry.epoch for entry in blocks}}
        placed = [(entry, way) for entry in reversed(blocks) if (way := ways[entry.epoch]) is not None]
        at_once = max(1, _ASKS // self._constellation.cache.servers)
        touched = 0
        for first in range(0, len(placed), at_once):
            some = [(entry, [place[0] for place in way.places]) for entry, way in placed[first : first + at_once]]
            routes = [route for _, one in some for route in one]
            if not self._control.touch(some, self._tenant, self._control.patience_s(routes)):
                break  # later calls find the silent satellite lost; an untouched chain does no harm
            self._index.moved(entry.key for entry, _ in some)
            touched += len(some)
        return touched
