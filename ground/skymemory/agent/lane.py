"""One thread for one kind of blocking call. What comes while a call runs goes into the next one together."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Request = TypeVar("Request")
Result = TypeVar("Result")


class Lane(Generic[Request, Result]):
    """Used from one event loop."""

    def __init__(
        self,
        name: str,
        call: Callable[[list[Request]], list[Result]],
        joins: Callable[[list[Request], Request], bool] = lambda batch, request: False,
    ) -> None:
        """
        Args:
            name: of the thread.
            call: runs in the thread; for each request its result, in order. What it raises goes to all who asked.
            joins: may a request go into one call with those before it?
        """
        self._call = call
        self._joins = joins
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._waiting: deque[tuple[Request, asyncio.Future[Result]]] = deque()
        self._runner: asyncio.Task[None] | None = None

    async def run(self, request: Request) -> Result:
        """The result of a request. Who is cancelled while it waits is not asked for; a call that has begun goes on."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        if self._runner is None:
            self._runner = asyncio.create_task(self._run())
        return await future

    async def drained(self) -> None:
        """Wait until nothing runs and nothing waits."""
        while self._runner is not None:
            await asyncio.wait([self._runner])

    def close(self) -> None:
        """Let the thread go once its call has ended. Nothing may be asked any more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while batch := self._batch():
                try:
                    results = await loop.run_in_executor(self._thread, self._call, [request for request, _ in batch])
                except Exception as error:  # those who asked have to know, and the lane goes on
                    for _, future in batch:
                        if not future.done():
                            future.set_exception(error)
                    continue
                for (_, future), result in zip(batch, results, strict=True):
                    if not future.done():
                        future.set_result(result)
                del batch, results  # blocks are not kept until the next call
        finally:
            self._runner = None

    def _batch(self) -> list[tuple[Request, asyncio.Future[Result]]]:
        batch: list[tuple[Request, asyncio.Future[Result]]] = []
        while self._waiting:
            request, future = self._waiting[0]
            if not future.done():
                if batch and not self._joins([one for one, _ in batch], request):
                    break
                batch.append((request, future))
            self._waiting.popleft()
        return batch
