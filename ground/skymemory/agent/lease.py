"""Leases of pieces of an arena, and the count of their uses by the engine and the agent."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from mmap import mmap
from types import TracebackType
from typing import Self

from skymemory.agent import protocol
from skymemory.agent.arena import Allocator


class Lease:
    """A piece of the arena; a context manager. Thread-safe."""

    def __init__(self, holder: "Holder", offset: int, length: int) -> None:
        self.view = memoryview(holder.memory)[offset : offset + length]
        """Memory of the piece, until `release`."""
        self.holder = holder
        self._offset = offset
        self._length = length
        self.uses = 1
        """Number of uses: the engine's until it releases, and unanswered requests."""
        self.released = False
        """True once the engine has released it."""
        self.taking: Taking | None = None
        """Record of the get that filled the piece, if the agent makes traces."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self.release()

    def release(self) -> None:
        """Give the piece back; safe to call twice. Others get it once the agent has answered the requests that use it."""
        with self.holder.room:
            if self.released:
                return
            self.released = True
            with suppress(BufferError):  # an array of the engine still refers to the memory
                self.view.release()
            self.drop()
            taken = self.taking is not None and self.taking.one_less()
        if taken and self.taking is not None:
            self.taking.tell()

    def place(self, key: bytes) -> protocol.Place:
        """Return the place for a block in the arena, for a request to the agent."""
        return key, self._offset, self._length

    def drop(self) -> None:
        """End a use; the last one frees the memory. The caller holds the holder's `room`."""
        self.uses -= 1
        if self.uses == 0:
            self.holder.allocator.give_back(self._offset, self._length)
            self.holder.room.notify_all()


class Taking:
    """The time in which an engine checks and copies the blocks of a get, until it has released all their leases."""

    def __init__(self, number: int, leases: Sequence[Lease], tell: Callable[[protocol.EngineMessage], None]) -> None:
        self._number = number
        self._tell = tell
        self._began_ns = time.time_ns()
        self._left = len(leases)
        for lease in leases:
            lease.taking = self

    def one_less(self) -> bool:
        """Note that a lease was released; return True if it was the last one."""
        self._left -= 1
        return self._left == 0

    def tell(self) -> None:
        """Tell the agent that all leases are released."""
        self._tell(protocol.Taken(self._number, self._began_ns, time.time_ns()))


class Holder:
    """An arena and its leases. Each connection has its own, so that late writes of an agent never hit memory in use."""

    def __init__(self, memory: mmap) -> None:
        self.memory = memory
        self.allocator = Allocator(len(memory))
        self.room = threading.Condition()
