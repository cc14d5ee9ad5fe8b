"""Meaning of lost servers for the blocks of a window: whether blocks can be fetched, and how many more servers may be lost."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from skymemory.wire.address import Satellite

NAMED_MOST: Final = 12
"""Most satellites that a sentence names."""


class State(StrEnum):
    """State of the rows that lie on all servers of a window."""

    WHOLE = "whole"
    """All servers answer, and none of them began anew of late."""
    DEGRADED = "degraded"
    """Shares are missing, and parity makes up for them."""
    GONE = "gone"
    """More shares are missing than the window has of parity: blocks that lie on all these servers cannot be fetched."""


@dataclass(frozen=True, slots=True)
class WindowState:
    """Servers of a window, and those of them whose shares are missing."""

    servers: int
    """Number of servers."""
    parity: int
    """Number of those that hold parity: so many may be lost."""
    lost: tuple[Satellite, ...]
    """Servers that do not answer, in order."""
    empty: tuple[Satellite, ...] = ()
    """Servers that answer, began anew, and do not have their shares again, in order."""

    @property
    def missing(self) -> int:
        """Number of servers whose shares are missing."""
        return len(self.lost) + len(self.empty)

    @property
    def state(self) -> State:
        """State of a row with a chunk on each server."""
        if not self.missing:
            return State.WHOLE
        return State.DEGRADED if self.missing <= self.parity else State.GONE

    @property
    def spare(self) -> int:
        """Number of servers that may be lost besides those whose shares are missing."""
        return max(0, self.parity - self.missing)

    def words(self) -> str:
        """Return whose shares are missing and what that means, in one or two sentences."""
        if not self.missing:
            may = f"any {self.parity} may be lost" if self.parity else "none may be lost, as there is no parity"
            return f"whole: all {self.servers} servers answer; {may}"
        told = (
            (self.lost, "is lost", "are lost"),
            (self.empty, "began anew and is not filled again", "began anew and are not filled again"),
        )
        some = [
            f"{len(who)} of {self.servers} servers {one if len(who) == 1 else more}: {named(who)}"
            for who, one, more in told
            if who
        ]
        if self.state is State.DEGRADED:
            return f"DEGRADED: {'; '.join(some)}. All blocks can be fetched; {self.spare or 'no'} more may be lost"
        where = f"chunks of a row on more than {self.parity} of them" if self.parity else "a chunk there"
        return (
            f"GONE: {'; '.join(some)}. Parity makes up for {self.parity}: blocks with {where} are misses until they are put again"
        )


def named(satellites: Iterable[Satellite]) -> str:
    """Return the names of satellites; of many the first ones, and how many more there are."""
    names = [str(one) for one in satellites]
    more = f" and {len(names) - NAMED_MOST} more" if len(names) > NAMED_MOST else ""
    return ", ".join(names[:NAMED_MOST]) + more
