"""One thread for one kind of blocking call. What comes while a call runs goes into the next one together.

A call may answer its requests one after another.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Request = TypeVar("Request")
Result = TypeVar("Result")


@dataclass(slots=True, eq=False)
class _WaitingRequest(Generic[Request, Result]):
    request: Request
    future: asyncio.Future[Result]
    begun: bool = False
    given_up: bool = False


class Lane(Generic[Request, Result]):
    """Used from one event loop."""

    def __init__(
        self,
        name: str,
        call: Callable[[list[Request]], Iterable[Result]],
        joins: Callable[[list[Request], Request], bool] = lambda batch, request: False,
    ) -> None:
        """Start no thread yet.

        Args:
            name: Name of the thread.
            call: Runs in the thread and returns a result for each request, in order. If it returns an iterator, each caller has
                its result as soon as the iterator yields it. An exception goes to all callers that have none.
            joins: Returns True if a request may go into one call with those before it.
        """
        self._call = call
        self._joins = joins
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._waiting: deque[_WaitingRequest[Request, Result]] = deque()
        self._runner: asyncio.Task[None] | None = None
        self._closed = False

    async def run(self, request: Request) -> Result:
        """Return the result of a request.

        If the caller is cancelled before the call has begun, the request is dropped. Later the call goes on, and the cancellation
        takes effect when the call has ended and no longer uses the request's memory.
        """
        if self._closed:
            return next(iter(self._call([request])))
        asked: _WaitingRequest[Request, Result] = _WaitingRequest(request, asyncio.get_running_loop().create_future())
        self._waiting.append(asked)
        if self._runner is None:
            self._runner = asyncio.create_task(self._run())
        try:
            return await asyncio.shield(asked.future)
        except asyncio.CancelledError:
            asked.given_up = True
            if asked.begun:
                await asyncio.wait([asked.future])
                if not asked.future.cancelled():
                    asked.future.exception()  # nobody else asks for the error
            raise

    @property
    def waiting(self) -> list[Request]:
        """Return the requests that will go into the next call, or into those after it."""
        return [asked.request for asked in self._waiting if not asked.given_up]

    async def drained(self) -> None:
        """Wait until nothing runs and nothing waits."""
        while self._runner is not None:
            await asyncio.wait([self._runner])

    def close(self) -> None:
        """Let the thread go once its call has ended. What is asked from then on is called in place, and must not wait."""
        self._closed = True
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _run(self) -> None:
        try:
            while batch := self._batch():
                await self._call_for(batch)
                del batch  # blocks are not kept until the next call
        finally:
            self._runner = None

    async def _call_for(self, batch: list[_WaitingRequest[Request, Result]]) -> None:
        loop = asyncio.get_running_loop()

        def call() -> Iterable[Result]:
            results = self._call([asked.request for asked in batch])
            if isinstance(results, Iterator):
                for asked, result in zip(batch, results, strict=True):
                    loop.call_soon_threadsafe(_answer, asked, result)
                return ()
            return results

        try:
            results = await loop.run_in_executor(self._thread, call)
        except asyncio.CancelledError:  # the loop ends: nobody may wait for a call that will not come back
            for asked in batch:
                asked.future.cancel()
            raise
        except Exception as error:  # all callers get the error, and the thread goes on
            for asked in batch:
                if not asked.future.done():
                    asked.future.set_exception(error)
            return
        for asked, result in zip(batch, results, strict=False):
            _answer(asked, result)

    def _batch(self) -> list[_WaitingRequest[Request, Result]]:
        batch: list[_WaitingRequest[Request, Result]] = []
        while self._waiting:
            asked = self._waiting[0]
            if not asked.given_up:
                if batch and not self._joins([one.request for one in batch], asked.request):
                    break
                asked.begun = True
                batch.append(asked)
            self._waiting.popleft()
        return batch


def _answer(asked: _WaitingRequest[Any, Result], result: Result) -> None:
    if not asked.future.done():
        asked.future.set_result(result)
