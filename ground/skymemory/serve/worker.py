"""The queue before the model."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock

from skymemory.serve.generation import Cancelled, Ended, Job

_WEIGHT = 0.3
"""of the last job in the mean of durations"""


class QueueFullError(RuntimeError):
    """As many requests wait as may."""

    def __init__(self, waiting: int, retry_after_s: int) -> None:
        super().__init__(f"{waiting} requests wait already; this is the limit of this server")
        self.retry_after_s = retry_after_s


class Worker:
    """Runs jobs in order, one at a time, in a thread of its own. Methods are for the event loop."""

    def __init__(self, run: Callable[[Job], None], waiting_max: int) -> None:
        """
        Args:
            run: does a job.
            waiting_max: jobs that may wait beside the one that runs.
        """
        self._run = run
        self._waiting_max = waiting_max
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._futures: dict[int, Future[None]] = {}
        self._lock = Lock()
        self._mean_s = 0.0

    @property
    def running(self) -> int:
        """Jobs that run: 0 or 1."""
        return sum(future.running() for future in self._all())

    @property
    def waiting(self) -> int:
        """Jobs that wait."""
        return sum(not future.running() for future in self._all())

    def check_room(self, coming: int = 0) -> None:
        """Args:
            coming: requests that will become jobs, and have their places already.

        Raises:
            QueueFullError: a job would have to wait, and as many as may do.
        """
        taken = len(self._all()) + coming
        if taken > self._waiting_max:
            raise QueueFullError(taken - 1, max(1, math.ceil(self._mean_s)))

    def submit(self, job: Job) -> None:
        """Have a job done, after those that wait."""
        future = self._pool.submit(self._timed, job)
        with self._lock:
            self._futures[id(job)] = future
        future.add_done_callback(lambda _: self._forget(job))

    def cancel(self, job: Job) -> None:
        """Take a job from the queue, or have it end soon; nothing happens if it has ended."""
        job.cancelled.set()
        with self._lock:
            future = self._futures.get(id(job))
        if future is not None and future.cancel():
            job.tell(Ended(Cancelled()))

    def close(self) -> None:
        """Wait for all jobs."""
        self._pool.shutdown()

    def _timed(self, job: Job) -> None:
        start_s = time.monotonic()
        self._run(job)
        self._mean_s += _WEIGHT * (time.monotonic() - start_s - self._mean_s)

    def _all(self) -> list[Future[None]]:
        with self._lock:
            return [future for future in self._futures.values() if not future.done()]

    def _forget(self, job: Job) -> None:
        with self._lock:
            self._futures.pop(id(job), None)
