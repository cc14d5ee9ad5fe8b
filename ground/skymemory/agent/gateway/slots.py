"""`Slot`: the place of a command in the order of its connection's answers."""

from __future__ import annotations

import time
from typing import Final, Protocol

from skymemory.agent.gateway.lmcache import error_of_length
from skymemory.agent.gateway.memory import Held
from skymemory.agent.gateway.operations import State
from skymemory.agent.gateway.replies import ONE, ZERO, Pieces, bulk, error, header, integer, null
from skymemory.agent.gateway.session import Session
from skymemory.agent.gateway.tally import Tally

KINDS_OF_ERRORS: Final = frozenset(("ERR", "NOAUTH", "NOPERM", "WRONGPASS", "NOPROTO", "EXECABORT", "LOADING"))


class Owner(Protocol):
    """The connection of a slot."""

    session: Session
    tally: Tally
    held_bytes: int

    def answered(self, slot: Slot) -> None:
        """Take the answer of a slot."""

    def hold(self, slot: Slot, held: Held) -> None:
        """Keep memory until the answer in a slot is sent."""

    def is_due(self, slot: Slot) -> bool:
        """Return whether the client has got all answers before this one."""


class Slot:
    """An answer, or a part of one: answers of several values have a slot for each."""

    __slots__ = ("_owner", "command_bytes", "held", "left_bytes", "loose_bytes", "metered", "pieces", "reads_bytes", "started_s")

    def __init__(self, owner: Owner, reads_bytes: int) -> None:
        """`reads_bytes`: see `Padding`."""
        self._owner = owner
        self.reads_bytes = reads_bytes
        self.metered: str | None = None
        """Name of the command that is done with this slot; None: another slot ends it."""
        self.pieces: Pieces | None = None
        """The answer; None: not known yet."""
        self.held: tuple[Held, ...] = ()
        """Memory, until the answer is sent."""
        self.left_bytes = 0
        """Bytes of the answer that are not sent."""
        self.loose_bytes = 0
        """Bytes of the answer, where they are not in memory that is held."""
        self.command_bytes = 0
        """Bytes of the short arguments of the command that ends with this slot."""
        self.started_s = time.perf_counter()

    @property
    def is_due(self) -> bool:
        """True: it is the next one that its client is to get."""
        return self._owner.is_due(self)

    @property
    def ahead_bytes(self) -> int:
        """Memory that its connection has taken already."""
        return self._owner.held_bytes

    def answer(self, *pieces: bytes | memoryview) -> None:
        """Set the bytes that go out when its turn comes."""
        self.pieces = pieces
        self.left_bytes = sum(map(len, pieces))
        self.loose_bytes = 0 if self.held else self.left_bytes
        self._owner.answered(self)

    def sent(self, count: int) -> None:
        """Drop the beginning of the answer: so many bytes are sent, and some are left."""
        assert self.pieces is not None
        self.left_bytes -= count
        at = 0
        while count >= len(self.pieces[at]):
            count -= len(self.pieces[at])
            at += 1
        self.pieces = memoryview(self.pieces[at])[count:], *self.pieces[at + 1 :]

    def integer(self, number: int) -> None:
        """Answer with a whole number."""
        self.answer(ZERO if number == 0 else ONE if number == 1 else integer(number))

    def null(self) -> None:
        """Answer that there is no value."""
        self.answer(error_of_length(self.reads_bytes) if self.reads_bytes else null(self._owner.session.protocol))

    def error(self, text: str) -> None:
        """Answer with an error; its first word is the kind."""
        kind = text.partition(" ")[0]
        self._owner.tally.failed(kind if kind in KINDS_OF_ERRORS else "ERR")
        self.answer(error_of_length(self.reads_bytes) if self.reads_bytes else error(text))

    def value(self, state: State) -> None:
        """Answer with a value, or that there is none."""
        if state.data is None:
            self.null()
            return
        if state.held is not None:
            self._owner.hold(self, state.held.share())
        self.answer(*bulk(state.data))

    def array(self, count: int) -> None:
        """Answer with the beginning of an array."""
        self.answer(header(b"*", count))
