"""Which chunks of a block each server should hold, and at which of its places they are sought."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from skymemory.block_entry import BlockEntry
from skymemory.link.ask import Answer, Ask, entry_of, tells
from skymemory.placement.window import Route
from skymemory.wire import icd
from skymemory.wire.packets import ChunkSet, PacketError


@dataclass(slots=True)
class Share:
    """Chunks of a block that one server should hold, and where it may hold them."""

    index: int
    """of the block"""
    entry: BlockEntry
    places: list[Route]
    """not asked yet"""
    stride: int
    missing: list[int]
    """chunk ids, rising; found nowhere so far"""
    unanswered: bool
    other: bool = False

    def ask(self, tenant: int) -> Ask:
        """Does the next place hold what is missing?"""
        first = self.missing[0]
        bits = [False] * ((self.missing[-1] - first) // self.stride + 1)
        for chunk in self.missing:
            bits[(chunk - first) // self.stride] = True
        payload = ChunkSet(first, self.stride, tuple(bits)).encode()
        return Ask(self.places.pop(0), icd.OP_HAS, tenant=tenant, key=self.entry.key, chunk_id=first, payload=payload)

    def take(self, answer: Answer | None) -> None:
        """What it said; None: nothing."""
        self.unanswered = self.unanswered or not tells(answer)
        found = entry_of(self.entry.key, answer)
        if answer is None or found is None:
            return
        if (found.block_len, found.chunk_len) != (self.entry.block_len, self.entry.chunk_len):
            self.other = True
            return
        with suppress(PacketError):
            held = set(ChunkSet.of(answer.packet).chunks())
            self.missing = [chunk for chunk in self.missing if chunk not in held]


def shares_of(index: int, entry: BlockEntry, places: Sequence[Sequence[Route]]) -> Iterator[Share]:
    """The shares of a block, in pieces that one request can name.

    Args:
        index: of the block.
        places: of each server 0 to n - 1; none: it is not asked.
    """
    stride, most = len(places), icd.LIMIT_CHUNK_SET
    for server, routes in enumerate(places[: entry.chunk_total]):
        chunks = range(server, entry.chunk_total, stride)
        for first in range(0, len(chunks), most):
            yield Share(index, entry, list(routes), stride, list(chunks[first : first + most]), unanswered=not routes)
