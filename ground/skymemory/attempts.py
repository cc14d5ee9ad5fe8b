"""How often a block is asked for, and what a block that did not come means: the core decides (`sky_attempts.h`)."""

import ctypes
from collections.abc import Sequence
from typing import Final, Self

from skymemory.handovers import Late
from skymemory.placement import structures
from skymemory.placement.core import library
from skymemory.placement.structures import AttemptStep, Denied, Verdict
from skymemory.wire import icd
from skymemory.wire.icd import Status

__all__ = ["AttemptStep", "Attempts", "Denied", "Rows", "Verdict", "verdict_of"]

_STATUSES: Final = icd.STATUSES | icd.HOST_STATUSES
_CODES: Final = {status: code for code, status in _STATUSES.items()}


def verdict_of(denied: Denied) -> Verdict:
    """What a share that is denied at all its places means for its block."""
    return Verdict(library().SKY_Verdict_Of(ctypes.byref(denied)))


class Rows:
    """Rows of the schedule whose places are asked, for the core."""

    def __init__(self, rows: Sequence[int]) -> None:
        self._held = (ctypes.c_uint32 * len(rows))(*rows)
        self.raw = structures.Rows(self._held, len(rows))


class Attempts:
    """Attempts to move one block: what comes next (`AttemptStep`), until `END`."""

    def __init__(self) -> None:
        self._core = library()
        self._raw = structures.Attempts()
        self._at = ctypes.byref(self._raw)

    @classmethod
    def to_put(cls) -> Self:
        """Attempts to store a block."""
        attempts = cls()
        attempts._core.SKY_Attempts_InitPut(attempts._at)
        return attempts

    @classmethod
    def to_get(cls, late: Late | None, row: int, *, lazy_purge: bool) -> Self:
        """Attempts to fetch a block.

        Args:
            late: what is known of handovers; None: nothing.
            row: that holds now.
        """
        attempts = cls()
        attempts._core.SKY_Attempts_InitGet(attempts._at, ctypes.byref(_late(late)), row, lazy_purge)
        return attempts

    @property
    def follows_search(self) -> bool:
        """True from when somebody was asked who is late."""
        return bool(self._raw.is_searched)

    @property
    def status(self) -> Status:
        """How the attempts ended so far; RUNNING before the first."""
        return _STATUSES[self._raw.status]

    @property
    def is_renamed(self) -> bool:
        """The last attempt met another block of the same name."""
        return bool(self._raw.status == _CODES[Status.BAD_KEY])

    @property
    def verdict(self) -> Verdict:
        """What a get that has ended means for the block."""
        return Verdict(self._core.SKY_Attempts_Verdict(self._at))

    def next(self) -> AttemptStep:
        """What comes next. `LOOK` and `DOUBT` count as done when this is called again."""
        return AttemptStep(self._core.SKY_Attempts_Next(self._at))

    def begin(self, rows: Rows, ways: int) -> bool:
        """Before an attempt. False: these ways were asked in vain, and another step comes next.

        Args:
            ways: a number, from 1, that is another one for other ways.
        """
        return bool(self._core.SKY_Attempts_Begin(self._at, ctypes.byref(rows.raw), ways))

    def give_up(self) -> None:
        """No satellite can be asked now."""
        self._core.SKY_Attempts_GiveUp(self._at)

    def ended(self, status: Status, *, at_stand_in: bool, rows: Rows, row: int, is_relaid: bool) -> None:
        """An attempt has ended.

        Args:
            at_stand_in: the satellite that denied a share stands in for another one.
            rows: those whose places would be asked now.
            row: that holds now.
            is_relaid: this host has laid the block for another row meanwhile.
        """
        self._core.SKY_Attempts_Ended(self._at, _CODES[status], at_stand_in, ctypes.byref(rows.raw), row, is_relaid)

    def searched(self, late: Late) -> None:
        """Satellites were asked who is late."""
        self._core.SKY_Attempts_Searched(self._at, ctypes.byref(_late(late)), late.row)

    def confirmed(self, *, is_other: bool, is_blind: bool) -> None:
        """Satellites were asked what they know of the block: `Denied.is_other`, `Denied.is_blind`."""
        self._core.SKY_Attempts_Confirmed(self._at, is_other, is_blind)


def _late(late: Late | None) -> structures.Late:
    return structures.Late() if late is None else structures.Late(True, late.is_over, late.is_certain)
