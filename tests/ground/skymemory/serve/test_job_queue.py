"""Jobs in order, and not too many."""

import threading
from collections.abc import Callable, Iterator

import pytest

from skymemory.serve.generation import Cancelled, Ended, Event, Job
from skymemory.serve.job_queue import JobQueue, QueueFullError
from skymemory.serve.sampling import Sampling


class Gate:
    """A generator of one answer at a time, which waits to be let through."""

    answers_max = 1

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.pass_one = threading.Semaphore(0)
        self.done: list[Job] = []
        self._job: Job | None = None

    @property
    def busy(self) -> bool:
        return self._job is not None

    @property
    def room(self) -> bool:
        return self._job is None

    def admit(self, job: Job) -> None:
        self._job = job
        self.begun.release()

    def turn(self) -> list[Job]:
        job = self._job
        if job is None or not self.pass_one.acquire(timeout=0.01):
            return []
        self._job = None
        self.done.append(job)
        job.tell(Ended())
        return [job]

    def close(self) -> None:
        pass


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def make_queue(gate: Gate) -> Iterator[Callable[[int], JobQueue]]:
    queues: list[JobQueue] = []

    def make(waiting_max: int) -> JobQueue:
        queues.append(JobQueue(gate, waiting_max))
        return queues[-1]

    yield make
    for queue in queues:
        gate.pass_one.release(100)
        queue.close()


def job(events: list[Event] | None = None) -> Job:
    sampling = Sampling(max_tokens=1, temperature=0, top_p=1, seed=None, stop=(), choices=1)
    return Job([[1]], sampling, (events if events is not None else []).append)


def test_jobs_run_in_order(gate: Gate, make_queue: Callable[[int], JobQueue]) -> None:
    queue = make_queue(5)
    jobs = [job() for _ in range(5)]
    for one in jobs:
        queue.submit(one)
    gate.begun.acquire()
    assert (queue.running, queue.waiting) == (1, 4)
    gate.pass_one.release(5)
    queue.close()
    assert [id(one) for one in gate.done] == [id(one) for one in jobs]
    assert (queue.running, queue.waiting) == (0, 0)


@pytest.mark.parametrize("waiting_max", [0, 1, 3])
def test_so_many_may_wait(gate: Gate, make_queue: Callable[[int], JobQueue], waiting_max: int) -> None:
    queue = make_queue(waiting_max)
    for _ in range(1 + waiting_max):
        queue.check_room()
        queue.submit(job())
    with pytest.raises(QueueFullError) as caught:
        queue.check_room()
    assert caught.value.retry_after_s >= 1


def test_who_is_cancelled_while_waiting_leaves_at_once(gate: Gate, make_queue: Callable[[int], JobQueue]) -> None:
    queue = make_queue(1)
    events: list[Event] = []
    first, second = job(), job(events)
    queue.submit(first)
    gate.begun.acquire()
    queue.submit(second)
    queue.cancel(second)
    assert [type(event.error) for event in events if isinstance(event, Ended)] == [Cancelled]
    queue.check_room()
    gate.pass_one.release()
    queue.close()
    assert [id(one) for one in gate.done] == [id(first)]


def test_who_is_cancelled_while_running_is_told_so(gate: Gate, make_queue: Callable[[int], JobQueue]) -> None:
    queue = make_queue(1)
    only = job()
    queue.submit(only)
    gate.begun.acquire()
    queue.cancel(only)
    assert only.cancelled.is_set()
    gate.pass_one.release()
    queue.close()
    queue.cancel(only)  # is over: nothing happens
