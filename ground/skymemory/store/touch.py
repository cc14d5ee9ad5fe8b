"""Touches of chains: chunks of their blocks are fetched so that satellites evict a chain's end before its beginning.

A satellite evicts the block that was not moved for the longest time; it knows nothing of chains. A chain that was stored or
fetched from its beginning on would lose its beginning first, and the rest would be of no use. So after a chain was used, one
chunk of each of its blocks is fetched from each server, the last block first (`sky_ground_touch.c`).
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import Final

from skymemory.link.operations import to_touch
from skymemory.store.parts import Part, StoreParts
from skymemory.store.runner import Steps
from skymemory.store.sizing import blocks_held

_FULL: Final = 0.5
"""Part of the sky's capacity below which nothing will be evicted soon."""


class Touches(Part):
    """Touches of one store. Thread-safe."""

    def __init__(self, parts: StoreParts) -> None:
        super().__init__(parts)
        self.crowded = False
        """True once a block was evicted. The sky is then full, if only of other hosts' blocks."""
        self._constellation = parts.where.constellation

    def chain(self, keys: Sequence[bytes]) -> Steps[int]:
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
        [told] = yield [to_touch(blocks, self._tenant, self._deadline_ms)]
        touched = blocks[len(blocks) - told.touched :]  # if a satellite was silent, the others do no harm
        self._index.moved(entry.key for entry in reversed(touched))
        return told.touched
