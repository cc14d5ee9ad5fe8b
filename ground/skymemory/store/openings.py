"""Openings of blocks that were fetched: satellites that gave wrong bytes are found out, and what was missing is put again.

A chunk's checksum says that a satellite sent what it holds. Only the seal of a block says that this is right. If a seal fails
and the block has parity, it is fetched without the chunks of each satellite in turn. So one satellite that lies costs no block.
"""

import logging
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Final, TypeVar

from skymemory.link.block_entry import BlockEntry
from skymemory.link.operations import WANTS_HOLDERS, Outcome
from skymemory.link.structures import Kind
from skymemory.store.get import memory_for
from skymemory.store.parts import Part, StoreParts
from skymemory.store.put_again import PutsAgain
from skymemory.store.results import GetResult, Status
from skymemory.wire.address import Satellite

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_COMPARISONS: Final = 3
"""Most gets to find out who lies. A get that had to decode tells nothing, for instance because a satellite was slow."""


class Openings(Part):
    """Openings of blocks of one store. Thread-safe."""

    def __init__(self, parts: StoreParts, puts_again: PutsAgain) -> None:
        super().__init__(parts)
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
        wrong: Sequence[Satellite] = ()
        if entry is not None and is_wrong:
            [told] = self._runner.run([self._operation(Kind.CHECK, entry, WANTS_HOLDERS)])
            value, right = self._without_each(entry, told.holders, opens)
            if value is not None:
                wrong = self._liars(entry, told.holders, right)
                self._tell(wrong)
        if value is not None and entry is not None and (result.is_degraded or is_wrong):
            self._puts_again.add(entry, self._tenant, lambda data: opens(data) is not None, wrong)
        return value

    def _without_each(
        self, entry: BlockEntry, holders: Sequence[Satellite], opens: Callable[[bytearray], _T | None]
    ) -> tuple[_T | None, bytes]:
        """Return what opens of a block without the chunks of one satellite, and the block. None: it is always wrong."""
        for left_out in dict.fromkeys(one for one in holders if one.plane):
            outcome, data = self._get(entry, left_out)
            if outcome.status is Status.DONE and outcome.entry == entry:  # and no block that has replaced it
                right = bytes(data)
                if (value := opens(data)) is not None:
                    return value, right
        return None, b""

    def _liars(self, entry: BlockEntry, holders: Sequence[Satellite], right: bytes) -> list[Satellite]:
        """Return the satellites that give wrong data chunks of a block whose bytes are known; none if that cannot be told.

        A block that is right without a satellite does not prove that this one lies: the chunks of another may just have come too
        late to be needed. So what each gives is compared.
        """
        for _ in range(_COMPARISONS):
            outcome, data = self._get(entry, None)
            if outcome.status is Status.DONE and outcome.entry == entry and not outcome.decoded:
                starts = range(0, entry.block_len, entry.chunk_len)
                differ = {
                    index % entry.code_k
                    for index, at in enumerate(starts)
                    if data[at : at + entry.chunk_len] != right[at : at + entry.chunk_len]
                }
                return [holders[share] for share in sorted(differ) if holders[share].plane]
        return []

    def _get(self, entry: BlockEntry, left_out: Satellite | None) -> tuple[Outcome, bytearray]:
        """Fetch a block without one satellite, or from all. Return the outcome, and its memory."""
        operation, data = self._operation(Kind.GET, entry), memory_for(entry.block_len)
        operation.data, operation.extra = data, left_out
        [outcome] = self._runner.run([operation])
        return outcome, data

    def _tell(self, wrong: Sequence[Satellite]) -> None:
        """Count a block with wrong chunks, and log once for each satellite that gave them."""
        self._count(wrong=1)
        with self._lock:
            new = [one for one in wrong if one not in self._told]
            self._told.update(new)
        for satellite in new:
            _log.warning("%s gave wrong chunks of a block, which is right without them", satellite)
