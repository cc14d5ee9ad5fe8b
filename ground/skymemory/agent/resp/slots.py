"""A command's place in the order of its connection's answers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from skymemory.agent.resp.replies import ONE, ZERO, Pieces, bulk, error, header, integer, null

if TYPE_CHECKING:
    from skymemory.agent.resp.connection import Connection
    from skymemory.agent.resp.memory import Held
    from skymemory.agent.resp.operations import State

KINDS_OF_ERRORS: Final = frozenset(("ERR", "NOAUTH", "WRONGPASS", "NOPROTO"))


class Slot:
    """An answer, or a part of one: answers of several values have a slot for each."""

    __slots__ = ("_connection", "_meter", "command_bytes", "held", "loose_bytes", "pieces", "started_s")

    def __init__(self, connection: Connection, meter: str | None) -> None:
        """`meter`: the command that is counted as done with this slot; None: another one ends it."""
        self._connection = connection
        self._meter = meter
        self.pieces: Pieces | None = None
        """None: not known yet"""
        self.held: tuple[Held, ...] = ()
        """memory, until it is sent"""
        self.loose_bytes = 0
        """of the answer, where they are not in memory that is held"""
        self.command_bytes = 0
        """of the command that ends with this slot: its short arguments"""
        self.started_s = time.perf_counter()

    @property
    def is_due(self) -> bool:
        """Is it the next one that its client is to get?"""
        return self._connection.is_due(self)

    @property
    def ahead_bytes(self) -> int:
        """What its connection has taken already."""
        return self._connection.held_bytes

    @property
    def meter(self) -> str | None:
        """The command that ends with this slot."""
        return self._meter

    def answer(self, *pieces: bytes | memoryview) -> None:
        """What goes out when its turn comes."""
        self.pieces = pieces
        self.loose_bytes = 0 if self.held else sum(map(len, pieces))
        self._connection.answered(self)

    def integer(self, number: int) -> None:
        """A whole number."""
        self.answer(ZERO if number == 0 else ONE if number == 1 else integer(number))

    def null(self) -> None:
        """No value."""
        self.answer(null(self._connection.session.protocol))

    def error(self, text: str) -> None:
        """An error; its first word is the kind."""
        kind = text.partition(" ")[0]
        self._connection.meter.failed(kind if kind in KINDS_OF_ERRORS else "ERR")
        self.answer(error(text))

    def value(self, state: State) -> None:
        """A value, or none."""
        if state.data is None:
            self.null()
            return
        if state.held is not None:
            self._connection.hold(self, state.held.share())
        self.answer(*bulk(state.data))

    def array(self, count: int) -> None:
        """The beginning of an array."""
        self.answer(header(b"*", count))
