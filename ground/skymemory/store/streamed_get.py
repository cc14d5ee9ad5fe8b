"""`StreamedGet`: blocks that are asked for in order, with a bound on the memory of those that nobody has taken yet."""

from collections.abc import Sequence
from typing import Final

from skymemory.link.native import Transfer
from skymemory.store.decisions import TransferAttempts
from skymemory.store.routes import Ways
from skymemory.store.transfers import StreamCall, Transfers, memory_for

AHEAD_BYTES: Final = 1 << 24
"""Bytes of blocks that were asked for and not taken yet. A block begins as soon as there is room for it."""
_CALL_BYTES: Final = 1 << 28
"""Bytes of blocks of one call, which takes memory for parity and for its own use of all of them."""


class StreamedGet:
    """First attempts to get blocks. It is used from one thread, and closed at the end.

    The socket carries one call at a time. While others wait for their turn the stream begins nothing more. A call ends when all
    that was begun has an end. So a caller that takes blocks slowly, or not at all, holds up nobody.
    """

    def __init__(self, transfers: Transfers, wanted: Sequence[Transfer]) -> None:
        """Ask for nothing yet.

        Args:
            transfers: The transfers of the store.
            wanted: Blocks in the order in which they will be taken. Those without memory get it when they are asked for.
        """
        self._transfers = transfers
        self._wanted = wanted
        self._has_memory = [memoryview(one.data).nbytes > 0 for one in wanted]
        self._attempts: dict[int, TransferAttempts] = {}
        self._call: StreamCall | None = None
        self._call_first = self._call_end = 0
        self._allowed = 0
        self._taken = 0
        self._ahead_bytes = 0
        self._is_filled = False
        self.tried: list[Ways] = []
        """Ways that attempts have gone."""

    def finish(self) -> None:
        """Wait until what runs has ended."""
        self._end_call()

    def close(self) -> None:
        """End what runs; safe to call twice."""
        if self._call is not None:
            self._call.stream.stop()
        self._end_call(raises=False)

    def take(self, index: int) -> Transfer | None:
        """Wait for the end of the first block that was not taken yet, and take it. None: it could not be asked for now."""
        self._ask()
        if index >= self._allowed:
            return None
        if self._call is not None and index >= self._call_first and not self._call.stream.wait(index - self._call_first):
            self._end_call()
            return None
        self._taken = index + 1
        self._ahead_bytes -= self._bytes(index)
        self._ask()
        return self._wanted[index]

    def drain(self, index: int) -> dict[int, tuple[TransferAttempts, Transfer]]:
        """Wait until all that was asked for has an end, and take the rest.

        Args:
            index: A block that could not be asked for, or that was taken last and is to be taken again.

        Returns:
            This block, and those behind it that were asked for.
        """
        self._end_call()
        self._allowed = self._taken = max(self._allowed, index + 1)
        self._ahead_bytes = 0
        return {one: (self._attempts[one], self._wanted[one]) for one in range(index, self._allowed)}

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        """Ask for as many blocks as there is room for, in the call that runs or in a new one."""
        while self._allowed < len(self._wanted) and self._fits(self._allowed):
            if self._call is not None:
                is_wanted = self._is_filled and self._transfers.down_turn.waiting > 0
                if not is_wanted and self._allowed < self._call_end and self._allow(self._call):
                    continue
                if self._taken < self._allowed and (is_wanted or self._allowed == self._call_end):
                    return  # the call goes on
                self._end_call()
            if not self._begin_call():
                return
        self._is_filled = True

    def _fits(self, index: int) -> bool:
        return self._allowed == self._taken or self._ahead_bytes + self._bytes(index) <= AHEAD_BYTES

    def _bytes(self, index: int) -> int:
        return 0 if self._has_memory[index] else self._wanted[index].entry.block_len

    def _allow(self, call: StreamCall) -> bool:
        one = self._wanted[self._allowed]
        if memoryview(one.data).nbytes == 0:
            one.data = memory_for(one.entry.block_len)
        if not call.stream.allow():
            return False
        self._ahead_bytes += self._bytes(self._allowed)
        self._allowed += 1
        return True

    def _begin_call(self) -> bool:
        """Begin a call with the next block. Return False if it cannot be asked for, or if others have their turn now."""
        turn = self._transfers.down_turn
        if self._taken == self._allowed:
            turn.take()
        elif self._ahead_bytes > AHEAD_BYTES // 2 or not turn.take_now():
            return False  # to begin calls costs time: a caller that takes blocks slowly makes few
        try:
            begun = self._start_call()
        except BaseException:
            turn.give_back()
            raise
        if not begun:
            turn.give_back()
        return begun

    def _start_call(self) -> bool:
        asked, size = self._allowed, 0
        while asked < len(self._wanted) and (asked == self._allowed or size + self._wanted[asked].entry.block_len <= _CALL_BYTES):
            size += self._wanted[asked].entry.block_len
            self._attempts[asked] = self._transfers.to_get()
            asked += 1
        asking = [(self._attempts[index], self._wanted[index]) for index in range(self._allowed, asked)]
        call = self._transfers.begin_stream(asking, self.tried)
        if call is None:
            return False
        try:
            self._call_first, self._call_end = self._allowed, self._allowed + call.stream.blocks
            self._allow(call)  # else it would be over at once
            call.start()
        except BaseException:
            call.stream.close()
            raise
        self._call, self._is_filled = call, False
        return True

    def _end_call(self, *, raises: bool = True) -> None:
        call, self._call = self._call, None
        if call is not None:
            call.join()
            if call.error is not None and raises and not self._transfers.is_closed:
                raise call.error
