"""Openings of blocks that were fetched: satellites that gave wrong bytes are found out, and what was missing is put again.

A chunk's checksum says that a satellite sent what it holds. Only the seal of a block says that this is right. If a seal fails
and the block has parity, it is fetched without the chunks of each satellite in turn. So one satellite that lies costs no block.
"""

import logging
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Final, TypeVar

from skymemory.link.block_entry import BlockEntry
from skymemory.link.native import Transfer
from skymemory.sky.entry_satellites import Route
from skymemory.store.parts import Operation, StoreParts
from skymemory.store.put_again import PutsAgain
from skymemory.store.results import GetResult, Status
from skymemory.store.transfers import Transfers, memory_for
from skymemory.wire.address import Satellite

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_COMPARISONS: Final = 3
"""Most gets to find out who lies. A get that had to decode tells nothing, for instance because a satellite was slow."""


class Openings(Operation):
    """Openings of blocks of one store. Thread-safe."""

    def __init__(self, parts: StoreParts, transfers: Transfers, puts_again: PutsAgain) -> None:
        super().__init__(parts)
        self._transfers = transfers
        self._puts_again = puts_again
        self._told: set[Satellite] = set()
        self._lock = Lock()

    def opened(self, result: GetResult, opens: Callable[[bytearray], _T | None]) -> _T | None:
        """Open a block that was fetched (`BlockStore.opened`)."""
        entry = result.entry
        if result.data is None:
            return None
        value = opens(result.data)
        is_wrong = value is None and entry is not None and bool(entry.code_m)
        wrong: Sequence[Route] = ()
        if entry is not None and is_wrong:
            ways = self._routes.ways(entry.epoch)
            places = () if ways is None else ways.places
            value, right = self._without_each(entry, places, opens)
            if value is not None:
                wrong = self._liars(entry, places, right)
                self._tell(wrong)
        if value is not None and entry is not None and (result.is_degraded or is_wrong):
            self._puts_again.add(entry, self._tenant, lambda data: opens(data) is not None, wrong)
        return value

    def _without_each(
        self, entry: BlockEntry, places: Sequence[Sequence[Route]], opens: Callable[[bytearray], _T | None]
    ) -> tuple[_T | None, bytes]:
        """Return what opens of a block without the chunks of one satellite, and the block. None: it is always wrong."""
        for left_out in dict.fromkeys(route for place in places for route in place):
            transfer = Transfer(entry, self._tenant, data := memory_for(entry.block_len))
            self._transfers.get_without(transfer, places, left_out)
            if transfer.status is Status.DONE:
                right = bytes(data)
                if (value := opens(data)) is not None:
                    return value, right
        return None, b""

    def _liars(self, entry: BlockEntry, places: Sequence[Sequence[Route]], right: bytes) -> list[Route]:
        """Return the satellites that give wrong data chunks of a block whose bytes are known; none if that cannot be told.

        A block that is right without a satellite does not prove that this one lies: the chunks of another may just have come too
        late to be needed. So what each gives is compared.
        """
        for _ in range(_COMPARISONS):
            transfer = Transfer(entry, self._tenant, data := memory_for(entry.block_len))
            self._transfers.get_without(transfer, places, None)
            if transfer.status is Status.DONE and not transfer.decoded:
                starts = range(0, entry.block_len, entry.chunk_len)
                differ = {
                    index % entry.code_k
                    for index, at in enumerate(starts)
                    if data[at : at + entry.chunk_len] != right[at : at + entry.chunk_len]
                }
                return [route for share in sorted(differ) for route in entry.by_share(places)[share]]
        return []

    def _tell(self, wrong: Sequence[Route]) -> None:
        """Count a block with wrong chunks, and log once for each satellite that gave them."""
        self._count(wrong=1)
        with self._lock:
            new = [route.satellite for route in wrong if route.satellite not in self._told]
            self._told.update(new)
        for satellite in new:
            _log.warning("%s gave wrong chunks of a block, which is right without them", satellite)
