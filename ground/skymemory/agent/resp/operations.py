"""What commands do to one value: reads and changes, each from the state that the one before it left.

Operations on a value that wait at the same time are done together: what must be known of it is asked for once, they are done
one after the other on what came back, and only what is left in the end goes to the sky.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from skymemory.agent.resp.memory import Held
from skymemory.agent.resp.requests import Large


class Needs(IntEnum):
    """What must be known of a value before something can be done to it."""

    NOTHING = 0
    TERMS = 1
    """is it there, and until when?"""
    LENGTH = 2
    """and how long is it?"""
    DATA = 3


@dataclass(slots=True)
class State:
    """A value while operations are done to it."""

    is_there: bool = False
    data: memoryview | bytes | None = None
    """None: not known, or not there"""
    length: int = 0
    expires_unix_ms: int = 0
    large: Large | None = None
    """whose memory the data is in, with room for the envelope"""
    held: Held | None = None
    """the data's memory, if it came from the sky"""
    is_changed: bool = False
    lost_length: int | None = None
    """of a value that is known and should be there, and is not"""

    def copy(self) -> State:
        """As it is now, for an answer."""
        return State(self.is_there, self.data, self.length, self.expires_unix_ms, held=self.held, lost_length=self.lost_length)

    def forget(self) -> None:
        """The value goes."""
        self.is_there, self.data, self.large, self.held, self.length, self.expires_unix_ms = False, None, None, None, 0, 0
        self.is_changed = True


class Operation(ABC):
    """Of one command on one value."""

    needs: Needs = Needs.NOTHING
    decides = False
    """nothing before it matters to what comes after it"""
    asks = False
    """satellites are to be asked whether there is a value: what this host knows may be out of date"""
    changes = False
    """it may change the value; if the sky does not take what is left in the end, it has failed"""

    @abstractmethod
    def do(self, state: State) -> None:
        """Do it to the value, and keep what is to be answered."""

    @abstractmethod
    def done(self) -> None:
        """Answer: the sky has what is left in the end."""

    @abstractmethod
    def failed(self, why: str, lost_length: int | None = None) -> None:
        """Answer: it has not. What was read of a change that came to nothing is a miss (`State.lost_length`)."""


Respond = Callable[[State], None]
"""takes what was found"""
Count = Callable[[int], None]
Refuse = Callable[[str], None]


class Read(Operation):
    """GET, EXISTS, STRLEN, TTL and their like."""

    __slots__ = ("_found", "_respond", "needs")

    def __init__(self, needs: Needs, respond: Respond) -> None:
        self.needs = needs
        self._respond = respond
        self._found = State()

    def do(self, state: State) -> None:
        """Remember what is there."""
        self._found = state.copy()

    def done(self) -> None:
        """Answer with it."""
        self._respond(self._found)

    def failed(self, why: str, lost_length: int | None = None) -> None:
        """Answer with a miss."""
        self._respond(State(lost_length=lost_length))


class Write(Operation):
    """SET and its like."""

    __slots__ = (
        "_before",
        "_data",
        "_expires_unix_ms",
        "_if_there",
        "_keeps_terms",
        "_large",
        "_refuse",
        "_respond",
        "_was_done",
        "asks",
        "decides",
        "needs",
    )
    changes = True

    def __init__(
        self,
        data: bytes | Large,
        respond: Callable[[bool, State | None], None],
        refuse: Refuse,
        *,
        expires_unix_ms: int = 0,
        if_there: bool | None = None,
        keeps_terms: bool = False,
        returns: bool = False,
    ) -> None:
        """
        Args:
            respond: takes whether it was done, and what was there before if it `returns` that.
            if_there: only if there is a value, or only if there is none.
            keeps_terms: of the value before.
        """
        self._large = data if isinstance(data, Large) else None
        self._data: memoryview | bytes = data.data if isinstance(data, Large) else data
        self._respond = respond
        self._refuse = refuse
        self._expires_unix_ms = expires_unix_ms
        self._if_there = if_there
        self._keeps_terms = keeps_terms
        self._before: State | None = None
        self._was_done = False
        self.asks = if_there is not None
        self.decides = if_there is None and not keeps_terms and not returns
        self.needs = Needs.DATA if returns else Needs.NOTHING if self.decides else Needs.TERMS

    def do(self, state: State) -> None:
        """Put the value in place of what is there."""
        if self.needs is Needs.DATA and state.is_there:
            self._before = state.copy()
        if self._if_there not in (None, state.is_there):
            return
        self._was_done = True
        terms = state.expires_unix_ms if self._keeps_terms and state.is_there else self._expires_unix_ms
        state.is_there, state.data, state.large, state.held = True, self._data, self._large, None
        state.length, state.expires_unix_ms, state.is_changed = len(self._data), terms, True

    def done(self) -> None:
        """Answer whether it was done."""
        self._respond(self._was_done, self._before)

    def failed(self, why: str, lost_length: int | None = None) -> None:
        """Answer why not."""
        self._refuse(why)


class Delete(Operation):
    """DEL and FLUSHDB."""

    __slots__ = ("_count", "_refuse", "was_there")
    needs = Needs.TERMS
    changes = True

    def __init__(self, count: Count, refuse: Refuse) -> None:
        self._count = count
        self._refuse = refuse
        self.was_there = False

    def do(self, state: State) -> None:
        """Take the value away."""
        self.was_there = state.is_there
        if state.is_there:
            state.forget()

    def done(self) -> None:
        """Answer with the number of values that went."""
        self._count(int(self.was_there))

    def failed(self, why: str, lost_length: int | None = None) -> None:
        """Answer why not."""
        self._refuse(why)


class SetTerms(Operation):
    """EXPIRE, PERSIST and their like: the value is stored anew with other terms, as terms are part of it."""

    __slots__ = ("_count", "_expires_unix_ms", "_is_allowed", "_refuse", "_was_done", "now_unix_ms")
    needs = Needs.DATA
    changes = True

    def __init__(
        self, expires_unix_ms: int, now_unix_ms: int, is_allowed: Callable[[int], bool], count: Count, refuse: Refuse
    ) -> None:
        """
        Args:
            expires_unix_ms: 0: never. A time that is past takes the value away.
            is_allowed: given the terms that the value has.
        """
        self._expires_unix_ms = expires_unix_ms
        self.now_unix_ms = now_unix_ms
        self._is_allowed = is_allowed
        self._count = count
        self._refuse = refuse
        self._was_done = False

    def do(self, state: State) -> None:
        """Change the terms of what is there."""
        if not state.is_there or not self._is_allowed(state.expires_unix_ms):
            return
        self._was_done = True
        if 0 != self._expires_unix_ms <= self.now_unix_ms:
            state.forget()
        elif state.expires_unix_ms != self._expires_unix_ms:
            state.expires_unix_ms, state.is_changed = self._expires_unix_ms, True

    def done(self) -> None:
        """Answer with 1 if it was done."""
        self._count(int(self._was_done))

    def failed(self, why: str, lost_length: int | None = None) -> None:
        """Answer why not."""
        self._refuse(why)
