"""Memory of values on their way between clients and the sky, over all connections: how much, and whose turn it is.

A value that a client sends is refused when there is no room for it; one that a client asks for waits. What a client that reads
slowly has waiting for it must not keep others waiting for good: so only half may be taken by answers that are not yet due. An
answer that is due needs the other half, and whoever does not take it is cut off after a while (`Connection`).

Commands with short arguments are here once they are read. They are counted, and who has many under way is not read from while
that half is full.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from skymemory.agent.gateway.requests import BULK_BYTES_MAX, LARGE_BYTES

MEMORY_BYTES: Final = 2 * (BULK_BYTES_MAX + (1 << 20))
"""its half holds the longest value, and the rest of that one's command"""
ANSWERS_BYTES_MAX: Final = 64 << 20
"""of one connection that are fetched before they are due"""


class Answer(Protocol):
    """What a client waits for."""

    @property
    def is_due(self) -> bool:
        """Is it the next one that its client is to get?"""

    @property
    def ahead_bytes(self) -> int:
        """What its connection has taken already."""


class Held:
    """Memory that several answers share; it is given back when the last one is sent."""

    __slots__ = ("_memory", "_users", "count")

    def __init__(self, memory: Memory, count: int) -> None:
        """Of one user; the memory is taken already."""
        self._memory = memory
        self._users = 1
        self.count = count
        """bytes"""

    def share(self) -> Held:
        """For another user."""
        self._users += 1
        return self

    def release(self) -> None:
        """One user less."""
        self._users -= 1
        if self._users == 0:
            self._memory.release(self.count)


class Memory:
    """Used from one event loop."""

    def __init__(self, limit_bytes: int = MEMORY_BYTES) -> None:
        """`limit_bytes`: for all values together; the half of it is to hold the longest one."""
        self.limit_bytes = limit_bytes
        self.values_bytes = 0
        """without commands"""
        self._commands_bytes = 0
        self._waiting: deque[tuple[Answer, int, Callable[[], None]]] = deque()

    @property
    def used_bytes(self) -> int:
        """Of values, and of commands that are under way."""
        return self.values_bytes + self._commands_bytes

    @property
    def is_full(self) -> bool:
        """Is there no memory now for a short argument to be stored?"""
        return self.values_bytes + self._commands_bytes + LARGE_BYTES > self.limit_bytes // 2

    def commands_came(self, count: int) -> None:
        """Short arguments are here."""
        self._commands_bytes += count

    def commands_ended(self, count: int) -> None:
        """They are not needed any more."""
        self._commands_bytes -= count
        self.retry()

    def admit(self, count: int) -> bool:
        """Take memory for something to be stored, if there is some."""
        if not self.has_room(count):
            return False
        self.values_bytes += count
        return True

    def has_room(self, count: int) -> bool:
        """Is there memory now for something to be stored?"""
        return self.used_bytes + count <= self.limit_bytes // 2 or self.used_bytes == 0

    def fetch(self, answer: Answer, count: int, go: Callable[[], None]) -> None:
        """Call `go` as soon as there is memory for an answer, at once if there is; it counts as taken then."""
        if not self._waiting and self._fits(answer, count):
            self.values_bytes += count
            go()
        else:
            self._waiting.append((answer, count, go))
            self.retry()

    def release(self, count: int) -> None:
        """Give memory back."""
        self.values_bytes -= count
        self.retry()

    def retry(self) -> None:
        """Let go on for whom there is memory now, or whose turn it is."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, deque()
        ready = []
        for one in waiting:
            if self._fits(one[0], one[1]):
                self.values_bytes += one[1]
                ready.append(one[2])
            else:
                self._waiting.append(one)
        for go in ready:
            go()

    def _fits(self, answer: Answer, count: int) -> bool:
        if self.used_bytes + count <= self.limit_bytes // 2 and answer.ahead_bytes + count <= ANSWERS_BYTES_MAX:
            return True
        return answer.is_due and (self.used_bytes + count <= self.limit_bytes or self.values_bytes == 0)
