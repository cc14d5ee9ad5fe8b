"""Pieces of the arena that an engine has, and what the agent still does with them."""

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
        """its memory; of use until `release`"""
        self.holder = holder
        self._offset = offset
        self._length = length
        self.uses = 1
        """by the engine until it releases, and by requests that are not answered"""
        self.released = False
        """by the engine"""
        self.taking: Taking | None = None
        """the get that brought it, until it is released; where the agent traces"""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self.release()

    def release(self) -> None:
        """The engine needs it no more; safe to call twice. Others get it once the agent has answered what it was used for."""
        with self.holder.room:
            if self.released:
                return
            self.released = True
            with suppress(BufferError):  # an array of the engine's still refers to it
                self.view.release()
            self.drop()
            taken = self.taking is not None and self.taking.one_less()
        if taken and self.taking is not None:
            self.taking.tell()

    def place(self, key: bytes) -> protocol.Place:
        """Return where a block is to go, for a request to the agent."""
        return key, self._offset, self._length

    def drop(self) -> None:
        """End a use; the memory is free after the last one. The holder's `room` is held."""
        self.uses -= 1
        if self.uses == 0:
            self.holder.allocator.give_back(self._offset, self._length)
            self.holder.room.notify_all()


class Taking:
    """An engine checks and copies what a get has brought, until it has released all of it."""

    def __init__(self, number: int, leases: Sequence[Lease], tell: Callable[[protocol.Message], None]) -> None:
        self._number = number
        self._tell = tell
        self._began_ns = time.time_ns()
        self._left = len(leases)
        for lease in leases:
            lease.taking = self

    def one_less(self) -> bool:
        """A lease was released. True: it was the last one."""
        self._left -= 1
        return self._left == 0

    def tell(self) -> None:
        """All are."""
        self._tell(protocol.Taken(self._number, self._began_ns, time.time_ns()))


class Holder:
    """An arena and what of it is leased. Each connection has its own: late writes of an agent hit nothing in use."""

    def __init__(self, memory: mmap) -> None:
        self.memory = memory
        self.allocator = Allocator(len(memory))
        self.room = threading.Condition()
