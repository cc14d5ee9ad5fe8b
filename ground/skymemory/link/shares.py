"""Shares of a block that servers should hold, in pieces that one request can name: the core decides (`sky_held.h`)."""

import ctypes
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from skymemory.link import structures
from skymemory.link.ask import Ask, SatelliteAnswer, facts_of
from skymemory.link.block_entry import BlockEntry
from skymemory.link.native import library
from skymemory.link.structures import CHUNKSET_MAX_BYTES, HELD_NOWHERE
from skymemory.sky.entry_satellites import Route
from skymemory.wire import icd
from skymemory.wire.address import Satellite

_Payload: Final = ctypes.c_uint8 * CHUNKSET_MAX_BYTES


class Share:
    """Chunks of a block that one server should hold, and the places that may hold them."""

    def __init__(self, index: int, server: int, key: bytes, places: Sequence[Route], raw: structures.HeldShare) -> None:
        """Describe a server's share, or a piece of it, of the block with this index."""
        self.index = index
        self.server = server
        self._key = key
        self._places = places
        self._core = library()
        self._at = ctypes.byref(raw)

    @property
    def is_open(self) -> bool:
        """True if a place is left that may hold the missing chunks."""
        return bool(self._core.SKY_HeldShare_Next(self._at) != HELD_NOWHERE)

    def ask(self, tenant: int) -> Ask:
        """Return the question whether the next place holds the missing chunks."""
        route = self._places[self._core.SKY_HeldShare_Next(self._at)]
        room, first = _Payload(), ctypes.c_uint32()
        payload = ctypes.string_at(room, self._core.SKY_HeldShare_Ask(self._at, room, ctypes.byref(first)))
        return Ask(route, icd.OP_HAS, tenant=tenant, key=self._key, chunk_id=first.value, payload=payload)

    def take(self, answer: SatelliteAnswer | None) -> None:
        """Take the answer of a place; None if it was silent."""
        self._core.SKY_HeldShare_Take(self._at, self._key, None if answer is None else answer.raw)

    @property
    def holder(self) -> Satellite | None:
        """The first place, if it holds the whole share by its own word."""
        return self._places[0].satellite if self._core.SKY_HeldShare_IsHeldFirst(self._at) else None

    def add_to(self, held: structures.Held) -> None:
        """Add the facts about this share to those about its block."""
        self._core.SKY_Held_Add(ctypes.byref(held), self._at)


def cut(block_len: int, chunk_len: int, servers: int, parity: int) -> structures.Stripe:
    """Return the stripe of a block over servers of which some hold parity; the core decides (`sky_stripe.h`).

    Raises:
        ValueError: There is no such stripe.
    """
    stripe, code = structures.Stripe(), (servers - parity, parity) if parity else (0, 0)
    if not library().SKY_Stripe_Cut(ctypes.byref(stripe), block_len, chunk_len, *code):
        raise ValueError(
            f"block of {block_len} bytes in chunks of {chunk_len} over {servers} servers, {parity} of them with parity"
        )
    return stripe


def held_of(entry: BlockEntry) -> structures.Held:
    """Return room for what servers say of a block, before the first share."""
    core = library()
    rows = (structures.HeldRow * core.SKY_Stripe_Rows(ctypes.byref(entry.stripe)))()
    return structures.Held(rows=rows)


def shares_of(index: int, entry: BlockEntry, places: Sequence[Sequence[Route]], replaced: Collection[int]) -> Iterator[Share]:
    """Yield the shares of a block, in pieces that one request can name.

    Args:
        index: Index of the block.
        places: Places of servers 0 to n - 1; a server without a place is not asked.
        replaced: Servers with a place at a stand-in.
    """
    core, facts, servers = library(), ctypes.byref(facts_of(entry)), len(places)
    for share, server in enumerate(entry.by_share(range(servers))):
        routes = places[server]
        for piece in range(core.SKY_HeldShare_Pieces(facts, servers, share)):
            raw = structures.HeldShare()
            core.SKY_HeldShare_Init(ctypes.byref(raw), facts, servers, share, piece, len(routes), server in replaced)
            yield Share(index, server, entry.key, routes, raw)
