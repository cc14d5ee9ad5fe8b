"""`Lanes`: threads that parse bodies and make tokens of them. Small requests do not wait for large ones."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from skymemory.serve.tokens import RequestTokens

SMALL_BYTES: Final = 1 << 14
"""Bytes of the largest body that is small: it is read in a few milliseconds."""

_T = TypeVar("_T")


class FairThread:
    """A thread in which sources take turns, so that each waits for one piece of work of another at most. Used from one loop."""

    def __init__(self, name: str) -> None:
        """`name`: of the thread."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._is_busy = False
        self._last: Hashable = None
        """Source that had the last turn."""
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}

    async def run(self, source: Hashable, work: Callable[[], _T]) -> _T:
        """Return what a function returns in the thread."""
        if self._is_busy:
            await self._turn(source)
        self._is_busy, self._last = True, source
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            self._next()

    def close(self) -> None:
        """End the thread after what it does now."""
        self._thread.shutdown(cancel_futures=True)

    async def _turn(self, source: Hashable) -> None:
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(source, deque()).append(place)
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():  # its turn had come
                self._next()
            raise

    def _next(self) -> None:
        """Give the turn to the source that has waited longest since its last one."""
        self._is_busy = False
        while self._waiting and not self._is_busy:
            sources = iter(self._waiting)
            if (source := next(sources)) == self._last:
                source = next(sources, source)
            places = self._waiting.pop(source)
            place = places.popleft()
            if places:
                self._waiting[source] = places
            if not place.done():
                place.set_result(None)
                self._is_busy = True


class Lanes:
    """Two threads, one for small bodies and one for large ones, each with a tokenizer of its own."""

    def __init__(self, request_tokens: RequestTokens) -> None:
        self._small = request_tokens
        self._large = request_tokens.copy()
        self._small_thread = FairThread("small-bodies")
        self._large_thread = FairThread("large-bodies")

    async def read(self, source: Hashable, body: bytes, read: Callable[[bytes, RequestTokens], _T]) -> _T:
        """Return what a function makes of a body, in the thread for its size. Sources take turns in each thread."""
        is_small = len(body) <= SMALL_BYTES
        thread, tokens = (self._small_thread, self._small) if is_small else (self._large_thread, self._large)
        return await thread.run(source, lambda: read(body, tokens))

    def close(self) -> None:
        """End the threads after what they do now."""
        for thread in (self._small_thread, self._large_thread):
            thread.close()
