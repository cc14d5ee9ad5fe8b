"""`Lanes`: threads that parse bodies and make tokens of them. Small requests do not wait for large ones."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from skymemory.serve.tokens import RequestTokens

SMALL_BYTES: Final = 1 << 14
"""Bytes of the largest body that is small: it is read in a few milliseconds."""

_T = TypeVar("_T")


class Lanes:
    """Two threads, one for small bodies and one for large ones, each with a tokenizer of its own."""

    def __init__(self, request_tokens: RequestTokens) -> None:
        self._small = request_tokens
        self._large = request_tokens.copy()
        self._small_thread = ThreadPoolExecutor(1, thread_name_prefix="small-bodies")
        self._large_thread = ThreadPoolExecutor(1, thread_name_prefix="large-bodies")

    async def read(self, body: bytes, read: Callable[[bytes, RequestTokens], _T]) -> _T:
        """Return what a function makes of a body, in the thread for its size."""
        is_small = len(body) <= SMALL_BYTES
        thread, tokens = (self._small_thread, self._small) if is_small else (self._large_thread, self._large)
        return await asyncio.get_running_loop().run_in_executor(thread, read, body, tokens)

    def close(self) -> None:
        """End the threads after what they do now."""
        for thread in (self._small_thread, self._large_thread):
            thread.shutdown(cancel_futures=True)
