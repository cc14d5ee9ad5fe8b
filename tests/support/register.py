"""A check of what clients saw: each key is a register, of which a read returns the newest acknowledged write or a later one.

This is the promise of docs/design.md ("What a put, a get and a deletion mean"). An error says nothing, and is always allowed. A
write that was not acknowledged may be there or not. Of two writes the later one is the newer one:

- the one with the larger version, if both versions are known;
- the one that began after the other had ended, well or not: a version is chosen before a write ends, by one clock.

A write whose end nobody knows is older than none: its host may still be about to choose a version.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import inf
from typing import Final, Literal

ABSENT: Final = ""
"""What a deletion leaves. No value has this name."""
PRESENT: Final = "*"
"""What is seen if only the existence of a value is told. No value has this name."""

Kind = Literal["older", "never written"]


@dataclass(frozen=True)
class Operation:
    """What a client did to one key. Times are seconds by one clock."""

    client: str
    key: str
    what: str
    """Name of the call."""
    begin: float
    end: float = inf
    """Time of the answer, or of the client's death. Infinite: the operation may still go on."""
    saw: str | None = None
    """Name of the value that was there, `ABSENT` or `PRESENT`. None: the answer tells nothing of it."""
    wrote: str | None = None
    """Name of the value that was to be there, or `ABSENT`. None: it is no write."""
    is_acknowledged: bool = False
    """True: the write was confirmed."""
    version: int = 0
    """Version of the write, 0 if it is not known."""
    answer: str = ""
    """What was answered, for people."""


@dataclass(frozen=True)
class Violation:
    """A read that saw what nobody may see any more, or what nobody wrote."""

    kind: Kind
    read: Operation
    newest: Operation | None
    """The acknowledged write that the read had to see, or a later one; None if there was none before it."""
    seen: Sequence[Operation]
    """Writes of what it saw."""


@dataclass(frozen=True)
class _Bar:
    """What was acknowledged before a moment."""

    began: float = -inf
    """Latest begin of these writes: what had ended before is older."""
    version: int = 0
    """Largest version of these writes."""
    newest: Operation | None = None
    """The write that began last."""

    def raised(self, write: Operation) -> "_Bar":
        version = max(self.version, write.version)
        return _Bar(write.begin, version, write) if write.begin > self.began else _Bar(self.began, version, self.newest)

    def is_above(self, write: Operation) -> bool:
        """Return True if a write is older than one of these."""
        return write.end < self.began or 0 < write.version < self.version


class Register:
    """All that was done to one key. It is absent at first."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._operations = sorted(operations, key=lambda one: one.begin)

    @cached_property
    def _writes(self) -> dict[str, list[Operation]]:
        """By the name of what was written."""
        begin = Operation("nobody", "", "begin", -inf, -inf, wrote=ABSENT, is_acknowledged=True)
        writes = defaultdict(list, {ABSENT: [begin]})
        for one in self._operations:
            if one.wrote is not None:
                writes[one.wrote].append(one)
        return writes

    @cached_property
    def _bars(self) -> tuple[list[float], list[_Bar]]:
        """Ends of acknowledged writes in order, and the bar after each; the first bar is that before all."""
        acknowledged = sorted((one for one in self._operations if one.is_acknowledged), key=lambda one: one.end)
        return [one.end for one in acknowledged], list(accumulate(acknowledged, _Bar.raised, initial=_Bar()))

    def bar(self, time: float) -> _Bar:
        """Return what had been acknowledged before a time."""
        ends, bars = self._bars
        return bars[bisect_left(ends, time)]

    def violations(self) -> list[Violation]:
        """Return the reads that are wrong, in order of time."""
        return [wrong for one in self._operations if one.saw is not None and (wrong := self._judged(one)) is not None]

    def _judged(self, read: Operation) -> Violation | None:
        bar, saw = self.bar(read.begin), read.saw
        if saw == PRESENT:
            seen = [one for name, writes in self._writes.items() if name != ABSENT for one in writes]
        else:
            seen = self._writes.get(saw or ABSENT, [])
        begun = [one for one in seen if one.begin < read.end and one is not read]
        if not begun:
            return Violation("never written", read, bar.newest, seen)
        if all(bar.is_above(one) for one in begun):
            return Violation("older", read, bar.newest, begun)
        return None


def violations(operations: Iterable[Operation]) -> list[Violation]:
    """Return the reads that are wrong, of all keys, in order of time."""
    keys = defaultdict(list)
    for one in operations:
        keys[one.key].append(one)
    found = [wrong for some in keys.values() for wrong in Register(some).violations()]
    return sorted(found, key=lambda wrong: wrong.read.begin)
