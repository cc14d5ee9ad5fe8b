"""The core's decisions: what comes next in a transfer, a lookup or a purge, and what a missing share means.

The core decides without input or output (`sky_transfer_attempts.h`, `sky_lookup.h`, `sky_purge.h`). The operations of the store
do what its steps say, and tell it what satellites answered.
"""

import ctypes
from collections.abc import Sequence
from typing import Final, Self

from skymemory.link.control import Purged
from skymemory.link.native import Transfer, library
from skymemory.link.structures import Purge, PurgeAnswers, PurgeStep, Word
from skymemory.sky.placement import structures
from skymemory.sky.placement.structures import AttemptStep, Denied, LookupStep, Verdict
from skymemory.store.late_search import Late
from skymemory.wire import icd
from skymemory.wire.icd import Status

__all__ = [
    "AttemptStep",
    "Denied",
    "LookupStep",
    "LookupSteps",
    "PurgeStep",
    "PurgeSteps",
    "Rows",
    "TransferAttempts",
    "Verdict",
    "is_aside",
    "may_purge",
    "verdict_of",
]

_STATUSES: Final = icd.STATUSES | icd.HOST_STATUSES
_CODES: Final = {status: code for code, status in _STATUSES.items()}


def verdict_of(denied: Denied) -> Verdict:
    """Return what to do with a block if a share of it is denied at all its places."""
    return Verdict(library().SKY_Verdict_Of(ctypes.byref(denied)))


def may_purge(denied: Denied) -> bool:
    """Return True if a block is to be purged once all satellites that denied the share are settled (`SKY_WORD_SETTLED`)."""
    return bool(library().SKY_Verdict_MayPurge(ctypes.byref(denied)))


def is_aside(spares: int, denials: int) -> bool:
    """Return True if a stand-in may hold some of a block, so that its rest is of use.

    Args:
        spares: The number of satellites that stand in first (`Whereabouts.spares`), lost ones included.
        denials: The number of those that said that they hold nothing of the block.
    """
    return bool(library().SKY_Verdict_IsAside(spares, denials))


class Rows:
    """Rows of the schedule whose places are asked, in the core's form."""

    def __init__(self, rows: Sequence[int]) -> None:
        self._held = (ctypes.c_uint32 * len(rows))(*rows)
        self.raw = structures.Rows(self._held, len(rows))


class TransferAttempts:
    """Attempts to move one block. `next` tells each step until the step is `END`."""

    def __init__(self) -> None:
        self._core = library()
        self._raw = structures.TransferAttempts()
        self._at = ctypes.byref(self._raw)

    @classmethod
    def to_put(cls) -> Self:
        """Return the attempts to store a block."""
        attempts = cls()
        attempts._core.SKY_TransferAttempts_InitPut(attempts._at)
        return attempts

    @classmethod
    def to_get(cls, late: Late | None, row: int, *, lazy_purge: bool) -> Self:
        """Return the attempts to fetch a block.

        Args:
            late: The late handovers as far as known; None if nothing is known.
            row: The current row of the schedule.
            lazy_purge: True if a block that lacks a share is purged (`cache.lazy_purge`).
        """
        attempts = cls()
        attempts._core.SKY_TransferAttempts_InitGet(attempts._at, ctypes.byref(_late(late)), row, lazy_purge)
        return attempts

    @property
    def follows_search(self) -> bool:
        """True once satellites were asked which of them are late."""
        return bool(self._raw.is_searched)

    @property
    def status(self) -> Status:
        """The status of the attempts so far; RUNNING before the first."""
        return _STATUSES[self._raw.status]

    @property
    def is_renamed(self) -> bool:
        """True if the last attempt met another block under the same key."""
        return bool(self._raw.status == _CODES[Status.BAD_KEY])

    @property
    def verdict(self) -> Verdict:
        """The verdict on the block after a get has ended."""
        return Verdict(self._core.SKY_TransferAttempts_Verdict(self._at))

    def next(self) -> AttemptStep:
        """Return the next step. `LOOK` and `DOUBT` count as done when this is called again."""
        return AttemptStep(self._core.SKY_TransferAttempts_Next(self._at))

    def begin(self, rows: Rows, ways: int) -> bool:
        """Begin an attempt. Return False if these ways were asked in vain before; another step then comes next.

        Args:
            rows: The rows whose places are asked.
            ways: A number from 1 that identifies the ways to be used.
        """
        return bool(self._core.SKY_TransferAttempts_Begin(self._at, ctypes.byref(rows.raw), ways))

    def give_up(self) -> None:
        """End the attempts because no satellite can be asked now."""
        self._core.SKY_TransferAttempts_GiveUp(self._at)

    def ended(self, transfer: Transfer, rows: Rows, row: int, *, is_prefetched: bool) -> None:
        """Take the result of an attempt.

        Args:
            transfer: The transfer, which has ended.
            rows: The rows whose places would be asked now.
            row: The current row of the schedule.
            is_prefetched: True if this host has prefetched the block for another row meanwhile.
        """
        facts = _CODES[transfer.status], transfer.at_stand_in, transfer.is_unsettled
        self._core.SKY_TransferAttempts_Ended(self._at, *facts, ctypes.byref(rows.raw), row, is_prefetched)

    def searched(self, late: Late) -> None:
        """Take what a search for late satellites has found."""
        self._core.SKY_TransferAttempts_Searched(self._at, ctypes.byref(_late(late)), late.row)

    def confirmed(self, *, is_other: bool, is_blind: bool, is_aside: bool) -> None:
        """Take what satellites know of the block (`Denied.is_other`, `Denied.is_blind`, `Denied.is_aside`)."""
        self._core.SKY_TransferAttempts_Confirmed(self._at, is_other, is_blind, is_aside)


class LookupSteps:
    """Steps of a lookup of some keys. `next` tells each step until the step is `END`."""

    def __init__(self, keys: Sequence[bytes], *, is_over: bool) -> None:
        """Begin a lookup; `is_over` tells that no handover is known to go on."""
        self._keys = keys
        self._core, self._raw = library(), structures.Lookup()
        self._at = ctypes.byref(self._raw)
        self._memory = (structures.LookupKey * len(keys))()  # the core uses this memory
        self._core.SKY_Lookup_Init(self._at, self._memory, len(keys), is_over)

    def next(self) -> LookupStep:
        """Return the next step. `LOOK` counts as done when this is called again."""
        return LookupStep(self._core.SKY_Lookup_Next(self._at))

    def begin(self, ways: int, satellites: int) -> bool:
        """Begin to ask satellites one after the other. Return False if they were asked in vain before; another step comes next.

        Args:
            ways: A number from 1 that identifies the ways to be used.
            satellites: The number of satellites.
        """
        return bool(self._core.SKY_Lookup_Begin(self._at, ways, satellites))

    def wanted(self) -> list[tuple[int, bytes]]:
        """Return the keys to ask for now, each with its index."""
        return [(index, key) for index, key in enumerate(self._keys) if self._core.SKY_Lookup_Wants(self._at, index)]

    def take(self, index: int, word: Word) -> None:
        """Take a satellite's answer about a key."""
        self._core.SKY_Lookup_Take(self._at, index, word)

    def asked(self) -> bool:
        """Return True if the next satellite is to be asked. To be called when all answers of one were taken."""
        return bool(self._core.SKY_Lookup_Asked(self._at))

    def status(self, index: int, is_incomplete: bool) -> Status:
        """Return the final status of a key: DONE, MISS or UNANSWERED."""
        return icd.HOST_STATUSES[self._core.SKY_Lookup_Status(self._at, index, is_incomplete)]


class PurgeSteps:
    """Steps of a purge of one block. `next` tells each step until the step is `END`."""

    def __init__(self, key: bytes, *, is_way_made: bool) -> None:
        self.key = key
        self.chunks = 0
        """Chunks that satellites have given up so far."""
        self._core, self._raw = library(), Purge()
        self._at = ctypes.byref(self._raw)
        self._core.SKY_Purge_Init(self._at, is_way_made)

    def next(self) -> PurgeStep:
        """Return the next step. `LOOK` counts as done when this is called again."""
        return PurgeStep(self._core.SKY_Purge_Next(self._at))

    def told(self, cleared: PurgeAnswers, *, is_over: bool, is_same_row: bool) -> None:
        """Take the answers of the satellites that were asked in a step.

        Args:
            cleared: The sum of their answers.
            is_over: True if it was known before the step that no handover goes on.
            is_same_row: True if the row of the schedule did not change during the step.
        """
        self.chunks += cleared.chunks
        self._core.SKY_Purge_Told(self._at, ctypes.byref(cleared), is_over, is_same_row)

    @property
    def purged(self) -> Purged:
        """The result of the purge."""
        return Purged(self.chunks, self._raw.is_confirmed)


def _late(late: Late | None) -> structures.Late:
    return structures.Late() if late is None else structures.Late(True, late.is_over, late.is_certain)
