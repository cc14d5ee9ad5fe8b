"""The queue before the model."""

from __future__ import annotations

import math
import time
from collections import deque
from threading import Condition, Thread

from skymemory.serve.generation import Cancelled, Ended, Generator, Job

_WEIGHT = 0.3
"""Weight of the last job in the mean of durations."""


class QueueFullError(RuntimeError):
    """The queue is full."""

    def __init__(self, waiting: int, retry_after_s: int) -> None:
        super().__init__(f"{waiting} requests wait already; this is the limit of this server")
        self.retry_after_s = retry_after_s


class JobQueue:
    """Hands jobs to the generator in the order in which they came, and runs it in a thread of its own.

    Methods are for the event loop.
    """

    def __init__(self, generator: Generator, waiting_max: int) -> None:
        """Start the thread.

        Args:
            waiting_max: Most jobs that wait beside those for which the generator has room.
        """
        self._generator = generator
        self._waiting_max = waiting_max
        self._waiting: deque[Job] = deque()
        self._begun_s: dict[Job, float] = {}
        """Times when the running jobs began."""
        self._changed = Condition()
        self._closed = False
        self._mean_s = 0.0
        self._thread = Thread(target=self._run, name="model")
        self._thread.start()

    @property
    def running(self) -> int:
        """Number of running jobs."""
        return len(self._begun_s)

    @property
    def waiting(self) -> int:
        """Number of waiting jobs."""
        return len(self._waiting)

    def check_room(self, coming: int = 0) -> None:
        """Raise if the queue has no room for one more job.

        Args:
            coming: Requests that will become jobs, and have their places already.

        Raises:
            QueueFullError: The job would have to wait, and the queue is full.
        """
        with self._changed:
            taken = self.running + self.waiting + coming
            if taken >= self._waiting_max + self._generator.answers_max:
                raise QueueFullError(taken - self.running, max(1, math.ceil(self._mean_s)))

    def submit(self, job: Job) -> None:
        """Queue a job."""
        with self._changed:
            self._waiting.append(job)
            self._changed.notify_all()

    def cancel(self, job: Job) -> None:
        """Take a job from the queue, or make it end soon; do nothing if it has ended."""
        job.cancelled.set()
        with self._changed:
            if job not in self._waiting:
                return
            self._waiting.remove(job)
        job.tell(Ended(Cancelled()))

    def close(self) -> None:
        """Wait for all jobs, and end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()
        self._generator.close()

    def _run(self) -> None:
        generator = self._generator
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or generator.busy or self._closed)
                if not self._waiting and not generator.busy:
                    return
                while self._waiting and generator.room:
                    job = self._waiting.popleft()
                    self._begun_s[job] = time.monotonic()
                    generator.admit(job)
            ended = generator.turn()
            with self._changed:
                for job in ended:
                    self._mean_s += _WEIGHT * (time.monotonic() - self._begun_s.pop(job) - self._mean_s)
