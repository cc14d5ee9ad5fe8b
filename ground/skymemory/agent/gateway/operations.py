"""Reads and changes that commands do to one value, each from the state that the one before it left.

Operations on a value that wait at the same time are done together: what must be known of the value is asked for once, they are
done one after the other on what came back, and only what is left in the end goes to the sky.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from skymemory.agent.gateway.memory import Held
from skymemory.agent.gateway.replies import CommandError
from skymemory.agent.gateway.requests import Large


class Needs(IntEnum):
    """Knowledge of a value that an operation needs."""

    NOTHING = 0
    TERMS = 1
    """That it is there, and until when."""
    LENGTH = 2
    """Its length, too."""
    DATA = 3


@dataclass(slots=True)
class State:
    """A value while operations are done to it."""

    is_there: bool = False
    data: memoryview | bytes | None = None
    """Bytes of the value; None: not known, or not there."""
    length: int = 0
    expires_unix_ms: int = 0
    large: Large | None = None
    """Argument whose memory the data is in, with room for the envelope."""
    held: Held | None = None
    """Memory of the data, if it came from the sky."""
    is_changed: bool = False
    lost_length: int | None = None
    """Length of a value that is known and should be there, and is not."""

    def copy(self) -> State:
        """Return the state as it is now, for an answer."""
        return State(self.is_there, self.data, self.length, self.expires_unix_ms, held=self.held, lost_length=self.lost_length)

    def put(self, data: bytes | Large, expires_unix_ms: int) -> None:
        """Put another value in its place."""
        self.large = data if isinstance(data, Large) else None
        self.data = data.data if isinstance(data, Large) else data
        self.is_there, self.held, self.is_changed = True, None, True
        self.length, self.expires_unix_ms = len(self.data), expires_unix_ms

    def forget(self) -> None:
        """Take the value away."""
        self.is_there, self.data, self.large, self.held, self.length, self.expires_unix_ms = False, None, None, None, 0, 0
        self.is_changed = True


Respond = Callable[[Any], None]
Refuse = Callable[[str], None]


class Operation:
    """One operation of one command on one value."""

    __slots__ = ("_act", "_refuse", "_respond", "asks", "decides", "deletes", "needs", "outcome")

    def __init__(
        self,
        needs: Needs,
        act: Callable[[State], Any],
        respond: Respond,
        refuse: Refuse | None = None,
        *,
        decides: bool = False,
        asks: bool = False,
        deletes: bool = False,
    ) -> None:
        """Make an operation that is done later.

        Args:
            needs: Knowledge of the value that must come before.
            act: Done to the value; returns what `respond` is given. May raise `CommandError`.
            respond: Called with that once the sky has what is left in the end.
            refuse: Called with why, if it cannot be done. None: it only reads, and responds with a miss then.
            decides: Nothing before it matters to what comes after it.
            asks: Satellites are to be asked whether there is a value: what this host knows may be out of date.
            deletes: It takes the value away, whatever it is; the outcome is the number of values that went.
        """
        self.needs = needs
        self._act = act
        self._respond = respond
        self._refuse = refuse
        self.decides = decides
        self.asks = asks
        self.deletes = deletes
        self.outcome: Any = None
        """Result of `act`, or the error that it raised."""

    @property
    def changes(self) -> bool:
        """True: it may change the value."""
        return self._refuse is not None

    def do(self, state: State) -> None:
        """Do it to the value, and keep what is to be answered."""
        try:
            self.outcome = self._act(state)
        except CommandError as error:
            self.outcome = error

    def done(self) -> None:
        """Answer: the sky has what is left in the end."""
        if self._refuse is not None and isinstance(self.outcome, CommandError):
            self._refuse(str(self.outcome))
        else:
            self._respond(self.outcome)

    def failed(self, why: str, lost_length: int | None = None) -> None:
        """Answer: the sky does not have it. A change that came to nothing reads as a miss (`State.lost_length`)."""
        if self._refuse is None:
            self._respond(State(lost_length=lost_length))
        else:
            self._refuse(why)


def read(needs: Needs, respond: Callable[[State], None], *, asks: bool = False) -> Operation:
    """Make the operation of GET, EXISTS, STRLEN, TTL and their like; `asks` is that of `Operation`."""
    return Operation(needs, State.copy, respond, asks=asks)


def store(data: bytes | Large, respond: Respond, refuse: Refuse, expires_unix_ms: int = 0) -> Operation:
    """Make the operation of SET, SETEX and MSET, whatever was there before."""
    return Operation(Needs.NOTHING, lambda state: state.put(data, expires_unix_ms), respond, refuse, decides=True)


def store_if(
    data: bytes | Large,
    respond: Callable[[tuple[bool, State | None]], None],
    refuse: Refuse,
    *,
    expires_unix_ms: int = 0,
    if_there: bool | None = None,
    keeps_terms: bool = False,
    returns: bool = False,
) -> Operation:
    """Make the operation of SETNX, and of SET with options.

    Args:
        data: The new value.
        respond: Called with whether it was done, and with what was there before if it `returns` that.
        refuse: As in `Operation`.
        expires_unix_ms: Time when the value expires; 0: never.
        if_there: True: only if there is a value; False: only if there is none.
        keeps_terms: The value has the terms of the one before.
        returns: The value before is wanted.
    """

    def act(state: State) -> tuple[bool, State | None]:
        before = state.copy() if returns and state.is_there else None
        if if_there not in (None, state.is_there):
            return False, before
        state.put(data, state.expires_unix_ms if keeps_terms and state.is_there else expires_unix_ms)
        return True, before

    decides = if_there is None and not keeps_terms and not returns
    needs = Needs.DATA if returns else Needs.NOTHING if decides else Needs.TERMS
    return Operation(needs, act, respond, refuse, decides=decides, asks=if_there is not None)


def delete(count: Callable[[int], None], refuse: Refuse) -> Operation:
    """Make the operation of DEL and FLUSHDB; `count` is called with the number of values that went."""

    def act(state: State) -> int:
        was_there = state.is_there
        if was_there:
            state.forget()
        return int(was_there)

    return Operation(Needs.TERMS, act, count, refuse, deletes=True)


def set_terms(state: State, expires_unix_ms: int, now_unix_ms: int) -> None:
    """Let a value expire at another time; 0: never. A time that is past takes the value away."""
    if 0 != expires_unix_ms <= now_unix_ms:
        state.forget()
    elif state.expires_unix_ms != expires_unix_ms:
        state.expires_unix_ms, state.is_changed = expires_unix_ms, True
