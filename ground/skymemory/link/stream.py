"""`Stream`: a get whose blocks begin one after another, and that tells which have an end while it runs."""

import ctypes
from collections.abc import Sequence
from typing import Any, Final

from skymemory.link.native import Call, NativeClient, Server, Transfer, blocks_of, fill_in, library, view_of
from skymemory.wire import icd

_WAIT_US: Final = 100_000
"""Longest wait in one piece, because an interrupt waits as long."""


class Stream:
    """Blocks of one call. One thread runs the call. Another one allows blocks, waits for them, and closes the stream."""

    def __init__(self, client: NativeClient, transfers: Sequence[Transfer], servers: Sequence[Server], deadline_ms: int) -> None:
        """Allow nothing yet.

        Args:
            client: The client whose socket is used.
            transfers: Blocks to fetch, at least one. Their `data` need not be there yet.
            servers: Servers for the transfers that name no places of their own; at least one.
            deadline_ms: Milliseconds for each block from its beginning, at least 1.

        Raises:
            ValueError: There is no server, or the deadline is out of range.
            MemoryError: There is no memory.
        """
        self._client = client
        self._library = library()
        self._transfers = transfers
        self._blocks = blocks_of(transfers, servers, deadline_ms, is_get=True)
        for block in self._blocks:
            block.status = icd.STATUS_RUNNING
        self._views: list[Any] = [None] * len(transfers)
        self._allowed = 0
        self._is_over = False
        self._handle: int | None = self._library.SKYC_Stream_New(self._blocks, len(self._blocks))
        if not self._handle:
            raise MemoryError("no memory for a stream of blocks")

    def close(self) -> None:
        """Free what the library holds; safe to call twice. The call must have ended."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._library.SKYC_Stream_Free(handle)

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(self._transfers)

    def allow(self) -> bool:
        """Let the next block begin, whose `data` is there now. Return False if the call is over, so that it does not begin."""
        view = view_of(self._transfers[self._allowed], writable=True)
        self._views[self._allowed] = view
        if not self._library.SKYC_Stream_Allow(self._handle, view.ctypes.data):
            self._views[self._allowed] = None
            return False
        self._allowed += 1
        return True

    def wait(self, index: int) -> bool:
        """Wait until a block and all before it have an end, and take its outcome. Return False if the call ends before that."""
        is_over = ctypes.c_bool()
        while True:
            was_over = self._is_over
            if self._library.SKYC_Stream_Await(self._handle, index + 1, _WAIT_US, ctypes.byref(is_over)) > index:
                self._take(index)
                return True
            if is_over.value or was_over:
                return False

    def stop(self) -> None:
        """Have the call end; at any time before `close`. What runs is CANCELLED."""
        self._library.SKYC_Stream_Stop(self._handle)

    def run(self) -> Call:
        """Run the call, once. It ends when all blocks that were allowed have an end; the others stay RUNNING.

        Raises:
            ValueError: Lengths contradict each other, or the client was closed.
            MemoryError: There is no memory.
        """
        try:
            return self._client.call(
                lambda handle: self._library.SKYC_Stream_Run(handle, self._handle), self._transfers, self._blocks
            )
        finally:
            for index, block in enumerate(self._blocks):
                if block.status != icd.STATUS_RUNNING:
                    self._take(index)
            self._is_over = True

    def _take(self, index: int) -> None:
        fill_in(self._transfers[index], self._blocks[index])
        self._views[index] = None  # its memory is the caller's again
