"""Memory of values on their way between clients and the sky, over all connections: how much, and whose turn it is.

A value that a client sends is refused when there is no room for it; one that a client asks for waits. What a client that reads
slowly has waiting for it must not keep others waiting for good: so only half may be taken by answers that are not yet due. An
answer that is due needs the other half, and whoever does not take it is cut off after a while (`Connection`).

Commands with short arguments are here once they are read. They are counted, and who has many under way is not read from while
that half is full.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from skymemory.agent.gateway.requests import BULK_BYTES_MAX, LARGE_BYTES

MEMORY_BYTES: Final = 2 * (BULK_BYTES_MAX + (1 << 20))
"""Limit whose half holds the longest value, and the rest of its command."""
ANSWERS_BYTES_MAX: Final = 64 << 20
"""Bytes of one connection that are fetched before they are due."""
JOINED_BYTES_MAX: Final = 128 << 20
"""Bytes of answers that a client has not taken, before its further commands wait: many send all commands before they read."""


class Answer(Protocol):
    """An answer that a client waits for."""

    @property
    def is_due(self) -> bool:
        """True: it is the next one that its client is to get."""

    @property
    def ahead_bytes(self) -> int:
        """Memory that its connection has taken already."""


class Held:
    """Memory that several answers share; it is given back when the last one is sent."""

    __slots__ = ("_memory", "_users", "count")

    def __init__(self, memory: Memory, count: int) -> None:
        """Begin with one user; the memory is taken already."""
        self._memory = memory
        self._users = 1
        self.count = count
        """Number of bytes."""

    def share(self) -> Held:
        """Return it for another user."""
        self._users += 1
        return self

    def release(self) -> None:
        """Take one user away."""
        self._users -= 1
        if self._users == 0:
            self._memory.release(self.count)


class Memory:
    """Memory of one gateway. Used from one event loop."""

    def __init__(self, limit_bytes: int = MEMORY_BYTES) -> None:
        """`limit_bytes`: for all values together; half of it must hold the longest one."""
        self.limit_bytes = limit_bytes
        self.values_bytes = 0
        """Bytes of values."""
        self._commands_bytes = 0
        self._waiting: deque[tuple[Answer, int, Callable[[], None]]] = deque()
        self._retries = False

    @property
    def used_bytes(self) -> int:
        """Bytes of values, and of commands that are under way."""
        return self.values_bytes + self._commands_bytes

    @property
    def is_full(self) -> bool:
        """True: there is no memory now for a short argument to be stored."""
        return self.values_bytes + self._commands_bytes + LARGE_BYTES > self.limit_bytes // 2

    def commands_came(self, count: int) -> None:
        """Count the short arguments of commands that came."""
        self._commands_bytes += count

    def commands_ended(self, count: int) -> None:
        """Give back the memory of short arguments."""
        self._commands_bytes -= count
        self.retry()

    def admit(self, count: int) -> bool:
        """Take memory for something to be stored; return whether there is some."""
        if not self.has_room(count):
            return False
        self.values_bytes += count
        return True

    def has_room(self, count: int) -> bool:
        """Return whether there is memory now for something to be stored."""
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
        """Let answers go on soon that there is memory for, or that are due: once for all that is given back until then."""
        if self._waiting and not self._retries:
            self._retries = True
            asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        self._retries = False
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
