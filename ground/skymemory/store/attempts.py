"""Attempts to store or fetch a block: their number, their order, and the verdict after a miss.

The core decides all of it (`sky_attempts.h`).
"""

import ctypes
from collections.abc import Sequence
from typing import Final, Self

from skymemory.sky.placement import structures
from skymemory.sky.placement.core import library
from skymemory.sky.placement.structures import AttemptStep, Denied, Verdict
from skymemory.store.handovers import Late
from skymemory.wire import icd
from skymemory.wire.icd import Status

__all__ = ["AttemptStep", "Attempts", "Denied", "Rows", "Verdict", "verdict_of"]

_STATUSES: Final = icd.STATUSES | icd.HOST_STATUSES
_CODES: Final = {status: code for code, status in _STATUSES.items()}


def verdict_of(denied: Denied) -> Verdict:
    """Return what to do with a block if a share of it is denied at all its places."""
    return Verdict(library().SKY_Verdict_Of(ctypes.byref(denied)))


class Rows:
    """Rows of the schedule whose places are asked, in the core's form."""

    def __init__(self, rows: Sequence[int]) -> None:
        self._held = (ctypes.c_uint32 * len(rows))(*rows)
        self.raw = structures.Rows(self._held, len(rows))


class Attempts:
    """Attempts to move one block. `next` tells each step until the step is `END`."""

    def __init__(self) -> None:
        self._core = library()
        self._raw = structures.Attempts()
        self._at = ctypes.byref(self._raw)

    @classmethod
    def to_put(cls) -> Self:
        """Return the attempts to store a block."""
        attempts = cls()
        attempts._core.SKY_Attempts_InitPut(attempts._at)
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
        attempts._core.SKY_Attempts_InitGet(attempts._at, ctypes.byref(_late(late)), row, lazy_purge)
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
        return Verdict(self._core.SKY_Attempts_Verdict(self._at))

    def next(self) -> AttemptStep:
        """Return the next step. `LOOK` and `DOUBT` count as done when this is called again."""
        return AttemptStep(self._core.SKY_Attempts_Next(self._at))

    def begin(self, rows: Rows, ways: int) -> bool:
        """Begin an attempt. Return False if these ways were asked in vain before; another step then comes next.

        Args:
            rows: The rows whose places are asked.
            ways: A number from 1 that identifies the ways to be used.
        """
        return bool(self._core.SKY_Attempts_Begin(self._at, ctypes.byref(rows.raw), ways))

    def give_up(self) -> None:
        """End the attempts because no satellite can be asked now."""
        self._core.SKY_Attempts_GiveUp(self._at)

    def ended(self, status: Status, *, at_stand_in: bool, rows: Rows, row: int, is_relaid: bool) -> None:
        """Take the result of an attempt.

        Args:
            status: The status of the transfer.
            at_stand_in: True if the satellite that denied a share is a stand-in.
            rows: The rows whose places would be asked now.
            row: The current row of the schedule.
            is_relaid: True if this host has laid the block for another row meanwhile.
        """
        self._core.SKY_Attempts_Ended(self._at, _CODES[status], at_stand_in, ctypes.byref(rows.raw), row, is_relaid)

    def searched(self, late: Late) -> None:
        """Take what a search for late satellites has found."""
        self._core.SKY_Attempts_Searched(self._at, ctypes.byref(_late(late)), late.row)

    def confirmed(self, *, is_other: bool, is_blind: bool) -> None:
        """Take what satellites know of the block (`Denied.is_other`, `Denied.is_blind`)."""
        self._core.SKY_Attempts_Confirmed(self._at, is_other, is_blind)


def _late(late: Late | None) -> structures.Late:
    return structures.Late() if late is None else structures.Late(True, late.is_over, late.is_certain)
