"""Which chunks of a block each server should hold, in pieces that one request can name: the core decides (`sky_held.h`)."""

import ctypes
from collections.abc import Iterator, Sequence
from typing import Final

from skymemory.block_entry import BlockEntry
from skymemory.link import structures
from skymemory.link.ask import Answer, Ask, facts_of
from skymemory.link.native import library
from skymemory.link.structures import CHUNKSET_MAX_BYTES, HELD_NOWHERE
from skymemory.placement.window import Route
from skymemory.wire import icd

_Payload: Final = ctypes.c_uint8 * CHUNKSET_MAX_BYTES


class Share:
    """Chunks of a block that one server should hold, and where it may hold them."""

    def __init__(self, index: int, key: bytes, places: Sequence[Route], raw: structures.HeldShare) -> None:
        """`index`: of the block."""
        self.index = index
        self._key = key
        self._places = places
        self._core = library()
        self._at = ctypes.byref(raw)

    @property
    def is_open(self) -> bool:
        """True if a place is left that may hold what is missing."""
        return bool(self._core.SKY_HeldShare_Next(self._at) != HELD_NOWHERE)

    def ask(self, tenant: int) -> Ask:
        """Does the next place hold what is missing?"""
        route = self._places[self._core.SKY_HeldShare_Next(self._at)]
        room, first = _Payload(), ctypes.c_uint32()
        payload = ctypes.string_at(room, self._core.SKY_HeldShare_Ask(self._at, room, ctypes.byref(first)))
        return Ask(route, icd.OP_HAS, tenant=tenant, key=self._key, chunk_id=first.value, payload=payload)

    def take(self, answer: Answer | None) -> None:
        """What it said; None: nothing."""
        self._core.SKY_HeldShare_Take(self._at, self._key, None if answer is None else answer.raw)

    def add_to(self, held: structures.Held) -> None:
        """Add what is known of this share to what is known of its block."""
        self._core.SKY_Held_Add(ctypes.byref(held), self._at)


def shares_of(index: int, entry: BlockEntry, places: Sequence[Sequence[Route]]) -> Iterator[Share]:
    """The shares of a block, in pieces that one request can name.

    Args:
        index: of the block.
        places: of each server 0 to n - 1; none: it is not asked.
    """
    core, facts, servers = library(), ctypes.byref(facts_of(entry)), len(places)
    for server, routes in enumerate(places):
        for piece in range(core.SKY_HeldShare_Pieces(facts, servers, server)):
            raw = structures.HeldShare()
            core.SKY_HeldShare_Init(ctypes.byref(raw), facts, servers, server, piece, len(routes))
            yield Share(index, entry.key, routes, raw)
