"""Requests of the control plane and their answers. Answers are not trusted: the core judges them."""

import ctypes
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from skymemory.link import structures
from skymemory.link.block_entry import BlockEntry
from skymemory.link.native import library
from skymemory.link.structures import Word
from skymemory.sky.entry_satellites import Route
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import NO_KEY


@dataclass(frozen=True, slots=True)
class Ask:
    """A request: the operation, its satellite and the entry satellite."""

    route: Route
    op: int
    apid: int = icd.APID_KVC
    flags: int = 0
    tenant: int = 0
    epoch: int = 0
    """PURGE: the latest row for which the block may be kept; `SCHEDULE_STAYS`: any."""
    content: int = 0
    """PURGE: the content of that version that goes; 0: any does."""
    version: int = 0
    """PURGE: the newest version that goes; 0: any does."""
    key: bytes = NO_KEY
    chunk_id: int = 0
    credit: int = 0
    payload: bytes = b""


@dataclass(frozen=True, slots=True)
class SatelliteAnswer:
    """A response, and the seconds from the last sending of its request."""

    raw: structures.Packet = field(repr=False, compare=False)
    """The response as a structure of the core."""
    payload: bytes
    rtt_s: float
    repeated: bool
    """True if the request was sent more than once: an earlier copy may have done its work."""

    @property
    def status(self) -> int:
        """The response's status (ICD)."""
        return self.raw.status

    @property
    def ok(self) -> bool:
        """True if the satellite did what it was asked."""
        return self.status == icd.STATUS_OK


def word_of(key: bytes, answer: SatelliteAnswer | None) -> tuple[Word, BlockEntry | None]:
    """Return the meaning of an answer to HAS, and the block that it describes; the core decides (`sky_word.h`)."""
    facts = structures.BlockFacts()
    raw = None if answer is None else answer.raw
    word = Word(library().SKY_Word_Of(raw, key, ctypes.byref(facts)))
    if word is not Word.BLOCK:
        return word, None
    stripe = facts.stripe
    lengths, code = (stripe.block_len, stripe.chunk_len, stripe.chunk_total), (stripe.code_k, stripe.code_m)
    return word, BlockEntry(key, *lengths, facts.epoch, 0.0, facts.version, facts.content, *code)


def facts_of(entry: BlockEntry) -> structures.BlockFacts:
    """Return the facts about a block as a structure of the core."""
    return structures.BlockFacts(entry.stripe, entry.epoch, entry.content, entry.version)


def is_other(entry: BlockEntry, known: BlockEntry) -> bool:
    """Return True if two entries of one key describe different blocks."""
    return bool(library().SKY_Word_IsOther(facts_of(entry), facts_of(known)))


def is_newer(entry: BlockEntry, known: BlockEntry) -> bool:
    """Return True if one satellite's word about a block takes precedence over another's."""
    return bool(library().SKY_Word_IsNewer(facts_of(entry), facts_of(known)))


def is_ahead(entry: BlockEntry, row: int, rows: Sequence[int]) -> bool:
    """Return True if a block is prefetched for a later row of the schedule.

    Args:
        row: Row that holds now.
        rows: Rows whose places are asked now for a block of this epoch.
    """
    return bool(library().SKY_Word_IsAhead(facts_of(entry), row, (ctypes.c_uint32 * len(rows))(*rows), len(rows)))


def answers_of(
    answers: Mapping[Satellite, SatelliteAnswer | None], homes: Iterable[Collection[Satellite] | None], parity: int
) -> structures.PurgeAnswers:
    """Return the core's summary of the answers to a purge of a block (`sky_purge.h`).

    Args:
        answers: Each satellite's answer.
        homes: For shares 0, 1, ... the satellites that may have the share; None if a lost one may have it. They matter with
            parity alone.
        parity: Servers with parity.
    """
    cleared = structures.PurgeAnswers(code_m=parity)
    for answer in answers.values():
        raw, is_repeated = (None, False) if answer is None else (answer.raw, answer.repeated)
        library().SKY_PurgeAnswers_Add(ctypes.byref(cleared), raw, is_repeated)
    confirmed = {satellite for satellite, answer in answers.items() if answer is not None and answer.ok}
    for satellites in homes:
        library().SKY_PurgeAnswers_AddShare(ctypes.byref(cleared), satellites is not None and confirmed.issuperset(satellites))
    return cleared


def is_confirmed(cleared: structures.PurgeAnswers) -> bool:
    """Return True if a block that was purged is gone (`sky_purge.h`)."""
    return bool(library().SKY_PurgeAnswers_IsConfirmed(ctypes.byref(cleared)))
