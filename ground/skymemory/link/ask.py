"""One request of the control plane, and what its answer says. What comes back is not trusted, and the core judges it."""

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from skymemory.block_entry import BlockEntry
from skymemory.link import structures
from skymemory.link.native import library
from skymemory.link.structures import Word
from skymemory.placement.window import Route
from skymemory.wire import icd
from skymemory.wire.packets import NO_KEY, Packet


@dataclass(frozen=True, slots=True)
class Ask:
    """One request: what to ask of which satellite, through which."""

    route: Route
    op: int
    apid: int = icd.APID_KVC
    flags: int = 0
    tenant: int = 0
    epoch: int = 0
    key: bytes = NO_KEY
    chunk_id: int = 0
    credit: int = 0
    payload: bytes = b""


@dataclass(frozen=True, slots=True)
class Answer:
    """The response and the time from the last sending of its request, in seconds."""

    packet: Packet
    rtt_s: float
    repeated: bool
    """the request was sent more than once: what it was to do may have been done before"""
    raw: structures.Packet = field(repr=False, compare=False)
    """the response as the core has it"""

    @property
    def ok(self) -> bool:
        """True if the satellite did what it was asked."""
        return self.packet.status == icd.STATUS_OK


def word_of(key: bytes, answer: Answer | None) -> tuple[Word, BlockEntry | None]:
    """What an answer to HAS says, and what it says of the block; the core decides (`sky_word.h`)."""
    facts = structures.BlockFacts()
    raw = None if answer is None else answer.raw
    word = Word(library().SKY_Word_Of(raw, key, ctypes.byref(facts)))
    if word is not Word.BLOCK:
        return word, None
    return word, BlockEntry(key, facts.block_len, facts.chunk_len, facts.chunk_total, facts.epoch, 0.0)


def facts_of(entry: BlockEntry) -> structures.BlockFacts:
    """What is known of a block, for the core."""
    return structures.BlockFacts(entry.block_len, entry.chunk_len, entry.chunk_total, entry.epoch)


def is_other(entry: BlockEntry, known: BlockEntry) -> bool:
    """Is it another block of the same name?"""
    return bool(library().SKY_Word_IsOther(facts_of(entry), facts_of(known)))


def is_newer(entry: BlockEntry, known: BlockEntry) -> bool:
    """Does what one satellite says of a block count instead of what another one said?"""
    return bool(library().SKY_Word_IsNewer(facts_of(entry), facts_of(known)))


def is_ahead(entry: BlockEntry, row: int, rows: Sequence[int]) -> bool:
    """Is a block laid for a row to come?

    Args:
        row: that holds now.
        rows: whose places are asked for a block of this epoch now.
    """
    return bool(library().SKY_Word_IsAhead(facts_of(entry), row, (ctypes.c_uint32 * len(rows))(*rows), len(rows)))


def cleared_of(answers: Iterable[Answer | None]) -> structures.Cleared:
    """What satellites say that were asked to purge a block, for the core (`sky_clearing.h`)."""
    cleared = structures.Cleared()
    for answer in answers:
        raw, is_repeated = (None, False) if answer is None else (answer.raw, answer.repeated)
        library().SKY_Cleared_Add(ctypes.byref(cleared), raw, is_repeated)
    return cleared


def is_confirmed(cleared: structures.Cleared) -> bool:
    """Have all answered who were asked to purge a block?"""
    return bool(library().SKY_Cleared_IsConfirmed(ctypes.byref(cleared)))
