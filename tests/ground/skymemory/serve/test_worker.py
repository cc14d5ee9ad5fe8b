"""Jobs in order, and not too many."""

import threading
from collections.abc import Callable, Iterator

import pytest

from skymemory.serve.generation import Cancelled, Ended, Event, Job
from skymemory.serve.sampling import Sampling
from skymemory.serve.worker import QueueFullError, Worker


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
def make_worker(gate: Gate) -> Iterator[Callable[[int], Worker]]:
    workers: list[Worker] = []

    def make(waiting_max: int) -> Worker:
        workers.append(Worker(gate, waiting_max))
        return workers[-1]

    yield make
    for worker in workers:
        gate.pass_one.release(100)
        worker.close()


def job(events: list[Event] | None = None) -> Job:
    sampling = Sampling(max_tokens=1, temperature=0, top_p=1, seed=None, stop=(), choices=1)
    return Job([[1]], sampling, (events if events is not None else []).append)


def test_jobs_run_in_order(gate: Gate, make_worker: Callable[[int], Worker]) -> None:
    worker = make_worker(5)
    jobs = [job() for _ in range(5)]
    for one in jobs:
        worker.submit(one)
    gate.begun.acquire()
    assert (worker.running, worker.waiting) == (1, 4)
    gate.pass_one.release(5)
    worker.close()
    assert [id(one) for one in gate.done] == [id(one) for one in jobs]
    assert (worker.running, worker.waiting) == (0, 0)


@pytest.mark.parametrize("waiting_max", [0, 1, 3])
def test_so_many_may_wait(gate: Gate, make_worker: Callable[[int], Worker], waiting_max: int) -> None:
    worker = make_worker(waiting_max)
    for _ in range(1 + waiting_max):
        worker.check_room()
        worker.submit(job())
    with pytest.raises(QueueFullError) as caught:
        worker.check_room()
    assert caught.value.retry_after_s >= 1


def test_who_is_cancelled_while_waiting_leaves_at_once(gate: Gate, make_worker: Callable[[int], Worker]) -> None:
    worker = make_worker(1)
    events: list[Event] = []
    first, second = job(), job(events)
    worker.submit(first)
    gate.begun.acquire()
    worker.submit(second)
    worker.cancel(second)
    assert [type(event.error) for event in events if isinstance(event, Ended)] == [Cancelled]
    worker.check_room()
    gate.pass_one.release()
    worker.close()
    assert [id(one) for one in gate.done] == [id(first)]


def test_who_is_cancelled_while_running_is_told_so(gate: Gate, make_worker: Callable[[int], Worker]) -> None:
    worker = make_worker(1)
    only = job()
    worker.submit(only)
    gate.begun.acquire()
    worker.cancel(only)
    assert only.cancelled.is_set()
    gate.pass_one.release()
    worker.close()
    worker.cancel(only)  # is over: nothing happens
