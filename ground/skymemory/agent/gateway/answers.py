"""`Answers`: the answers of one connection, in the order of its commands, until its client has taken them.

First come bytes of answers that were joined because the client takes none, then a slot for each further command.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import Final

from skymemory.agent.gateway.memory import Memory
from skymemory.agent.gateway.replies import Piece
from skymemory.agent.gateway.slots import Slot

PIPELINE_MAX: Final = 1024
"""Answers of one connection that are under way; further commands wait, and at last in the client."""
UNSENT_BYTES_MAX: Final = 1 << 20
"""Bytes of answers that the client has not taken, before further commands wait for memory of the gateway: as much at a time."""
_SHORT_BYTES: Final = 1 << 16
"""Length of answers that are joined while the client takes none."""
_PIECES_MAX: Final = 256
"""Pieces of one system call."""


class Answers:
    """Used from one event loop."""

    def __init__(self, memory: Memory, joined_bytes_max: int, ended: Callable[[Slot, float], None]) -> None:
        """Begin without answers.

        Args:
            memory: Memory of the gateway.
            joined_bytes_max: Bytes of answers that the client has not taken, before its further commands wait.
            ended: Called with each slot whose answer is sent or joined, and the time by `time.perf_counter`.
        """
        self.slots: deque[Slot] = deque()
        """Slots of all commands that are run and whose answers are not sent."""
        self.unsent_bytes = 0
        """Bytes of answers that are known and not sent; those in the gateway's memory are counted there."""
        self._memory = memory
        self._joined_bytes_max = joined_bytes_max
        self._ended = ended
        self._joined: deque[memoryview] = deque()
        self._unsent_bytes_max = UNSENT_BYTES_MAX  # all above that is the gateway's memory

    @property
    def are_sent(self) -> bool:
        """True: no command waits for its answer."""
        return not self.slots and not self._joined

    @property
    def has_room(self) -> bool:
        """True: there may be more answers now."""
        return not self.is_full and self.unsent_bytes < self._unsent_bytes_max

    @property
    def is_full(self) -> bool:
        """True: as many answers are under way as there may be."""
        return len(self.slots) >= PIPELINE_MAX

    def is_first(self, slot: Slot) -> bool:
        """Return whether the client has got all answers before this one."""
        return self.slots[0] is slot and not self._joined

    def pieces(self) -> list[Piece]:
        """Return the pieces that can be sent: up to the first answer that is not known."""
        pieces: list[Piece] = list(islice(self._joined, _PIECES_MAX))
        for slot in self.slots:
            if slot.pieces is None or len(pieces) >= _PIECES_MAX:
                break
            pieces += slot.pieces
        return pieces

    def took(self, count: int) -> int:
        """Drop the answers that are sent; return how many bytes are left of the one that is sent in part."""
        while count and self._joined:
            first = self._joined.popleft()
            taken = min(count, len(first))
            self.unsent_bytes -= taken
            count -= taken
            if taken < len(first):
                self._joined.appendleft(first[taken:])
                return len(first) - taken
        if self._unsent_bytes_max > UNSENT_BYTES_MAX and not self._joined:
            self._give_back()
        now_s = time.perf_counter()
        while count:
            slot = self.slots[0]
            if slot.left_bytes > count:
                slot.sent(count)
                return slot.left_bytes
            count -= slot.left_bytes
            self.slots.popleft()
            self._end(slot, now_s)
        return 0

    def join(self) -> bool:
        """Make one of the short answers that wait for the client; return whether there were some."""
        ready: list[Slot] = []
        joined_bytes = 0
        while self.slots and self.slots[0].pieces is not None and self.slots[0].left_bytes <= _SHORT_BYTES:
            joined_bytes += self.slots[0].left_bytes
            if not self.may_wait(joined_bytes):
                break
            ready.append(self.slots.popleft())
        if not ready:
            return False
        joined = b"".join([piece for slot in ready for piece in slot.pieces or ()])
        self.unsent_bytes += len(joined)
        self._joined.append(memoryview(joined))
        now_s = time.perf_counter()
        for slot in ready:
            self._end(slot, now_s)
        return True

    def may_wait(self, count: int) -> bool:
        """Return whether so many further bytes may wait for the client. Memory of the gateway is taken for them."""
        while self.unsent_bytes + count > self._unsent_bytes_max:
            if self._unsent_bytes_max >= self._joined_bytes_max or not self._memory.admit(UNSENT_BYTES_MAX):
                return False
            self._unsent_bytes_max += UNSENT_BYTES_MAX
        return True

    def drop(self) -> None:
        """Forget what was joined, and give its memory back: nobody takes it."""
        self._joined.clear()
        self._give_back()

    def _end(self, slot: Slot, now_s: float) -> None:
        self.unsent_bytes -= slot.loose_bytes
        self._ended(slot, now_s)

    def _give_back(self) -> None:
        self._memory.release(self._unsent_bytes_max - UNSENT_BYTES_MAX)
        self._unsent_bytes_max = UNSENT_BYTES_MAX
