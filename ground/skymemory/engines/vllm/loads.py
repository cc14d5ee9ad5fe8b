"""Loads of blocks from the sky into the paged cache, beside the engine's steps."""

from __future__ import annotations

import logging
import queue
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Lock, Thread

from skymemory.agent.client import AgentClient, Outcome, Question
from skymemory.agent.lease import Lease
from skymemory.engines.vllm.plans import LoadPlan, PagedBlock
from skymemory.engines.vllm.tally import Tally
from skymemory.wire.envelope import BlockError
from skymemory.wire.icd import Status

_log = logging.getLogger(__name__)

_RUN_BLOCKS = 8
"""Blocks in one request to the agent: the first ones are copied while the next ones come."""
_CONNECT_S = 5.0
"""Seconds that a new client has to find its agent."""
_TICK_S = 0.02
"""Seconds between checks for room and for loads that take too long."""


@dataclass(slots=True)
class _Job:
    plan: LoadPlan
    started: float
    waiting: deque[PagedBlock]
    asked: set[int] = field(default_factory=set)
    """Places of blocks on their way."""
    failed: set[int] = field(default_factory=set)
    over: bool = False
    runs: list[Question[list[Outcome]]] = field(default_factory=list)
    """Requests to the agent; those that are answered are left out now and then."""


_Run = list[tuple[_Job, PagedBlock, Lease]]


class Loader:
    """A thread that fetches, checks and copies. It reports blocks that fail with their request, so that vLLM computes them."""

    def __init__(
        self,
        client: AgentClient,
        *,
        block_bytes: int,
        key_of: Callable[[bytes], bytes],
        take: Callable[[memoryview, bytes, int], None],
        timeout_s: float,
        tally: Tally,
    ) -> None:
        """Start the thread.

        Args:
            block_bytes: Bytes of a block as it is stored.
            key_of: Returns the key in the sky for a plan's key.
            take: Checks a block and copies it to its place; raises BlockError if it is not what was stored.
            timeout_s: Time limit of the load of one request.
        """
        self._client = client
        self._block_bytes = block_bytes
        self._key_of = key_of
        self._take = take
        self._timeout_s = timeout_s
        self._tally = tally
        self._jobs: list[_Job] = []
        self._events: queue.SimpleQueue[LoadPlan | frozenset[str] | tuple[_Run, Question[list[Outcome]]] | None]
        self._events = queue.SimpleQueue()
        self._lock = Lock()
        self._finished: set[str] = set()
        self._errors: set[int] = set()
        self._opened = time.monotonic()
        self._came_up = False
        self._thread = Thread(target=self._work, name="skymemory-load", daemon=True)
        self._thread.start()

    def submit(self, plan: LoadPlan) -> None:
        """Begin to load the blocks of a request."""
        self._events.put(plan)

    def abort(self, requests: Iterable[str]) -> None:
        """Call back the loads of requests that are finished: nobody waits for their blocks any more."""
        if aborted := frozenset(requests):
            self._events.put(aborted)

    def results(self) -> tuple[set[str], set[int]]:
        """Return the requests whose loads have ended since the last call, and the places that hold nothing."""
        with self._lock:
            finished, self._finished = self._finished, set()
            errors, self._errors = self._errors, set()
            return finished, errors

    def close(self) -> None:
        """End the thread."""
        self._events.put(None)
        self._thread.join()

    def _work(self) -> None:
        while True:
            with suppress(queue.Empty):
                event = self._events.get(timeout=_TICK_S if self._jobs else None)
                if event is None:
                    return
                if isinstance(event, LoadPlan):
                    self._jobs.append(_Job(event, time.monotonic(), deque(event.blocks)))
                elif isinstance(event, frozenset):
                    for job in [job for job in self._jobs if job.plan.request in event]:
                        self._leave(job)
                else:
                    self._came(*event)
            self._give_up()
            self._ask()
            self._end()

    def _ask(self) -> None:
        """Ask for as many blocks as there is room for, those of the oldest request first."""
        for job in self._jobs:
            while job.waiting:
                run: _Run = []
                while job.waiting and len(run) < _RUN_BLOCKS:
                    lease = self._client.lease(self._block_bytes)
                    if lease is None:
                        break
                    run.append((job, job.waiting.popleft(), lease))
                if not run:
                    return self._without_room()
                self._came_up = True
                job.asked.update(block.block_id for _, block, _ in run)
                left_s = max(_TICK_S, job.started + self._timeout_s - time.monotonic())
                future = self._client.get([(self._key_of(block.key), lease) for _, block, lease in run], deadline_s=left_s)
                job.runs = [one for one in job.runs if not one.done()] + [future]
                future.add_done_callback(partial(self._tell, run, future))
        return None

    def _tell(self, run: _Run, future: Question[list[Outcome]], done: object) -> None:
        self._events.put((run, future))

    def _without_room(self) -> None:
        if self._client.connected:
            self._came_up = True
            return  # room comes when a running load has come
        if not self._came_up and time.monotonic() - self._opened < _CONNECT_S:
            return  # the scheduler has just found the agent, and this client is about to
        for job in self._jobs:
            self._fail(job, job.waiting, Status.NO_AGENT)
            job.waiting.clear()

    def _came(self, run: _Run, future: Question[list[Outcome]]) -> None:
        outcomes: Sequence[Outcome | None] = future.result() if future.exception() is None else [None] * len(run)
        for (job, block, lease), outcome in zip(run, outcomes, strict=True):
            with lease:
                if job.over:
                    continue  # vLLM may use the place for something else by now
                job.asked.discard(block.block_id)
                why: str = outcome.status if outcome is not None else Status.NO_AGENT
                if outcome is not None and outcome.ok:
                    try:
                        self._take(lease.view, block.key, block.block_id)
                    except BlockError as error:
                        why = "corrupt"
                        self._client.purge([self._key_of(block.key)])  # now the block can be stored anew
                        _log.warning("block %s is computed again: %s", self._key_of(block.key).hex()[:16], error)
                    except Exception:
                        why = "error"
                        _log.exception("block %s is computed again", self._key_of(block.key).hex()[:16])
                    else:
                        self._tally.count("loaded")
                        self._tally.count("loaded_bytes", self._block_bytes)
                        continue
                self._fail(job, [block], why)
                self._leave(job, future.number)  # blocks behind a gap are useless

    def _leave(self, job: _Job, after: int = 0) -> None:
        """Ask for no more blocks of a request, and call back the runs with larger numbers than `after`."""
        self._fail(job, job.waiting, None)
        job.waiting.clear()
        for run in job.runs:
            if run.number > after:
                self._client.call_back(run)
        job.runs = [run for run in job.runs if run.number <= after]

    def _give_up(self) -> None:
        now = time.monotonic()
        for job in self._jobs:
            if now - job.started > self._timeout_s:
                name = job.plan.request
                _log.warning("blocks of request %s did not come within %g s: they are computed", name, self._timeout_s)
                late = [block for block in job.plan.blocks if block.block_id in job.asked]
                self._fail(job, [*late, *job.waiting], "late")
                job.waiting.clear()
                job.asked.clear()
                self._leave(job)

    def _fail(self, job: _Job, blocks: Sequence[PagedBlock] | deque[PagedBlock], why: str | None) -> None:
        job.failed.update(block.block_id for block in blocks)
        self._tally.count(f"load_failed.{why or 'behind_a_gap'}", len(blocks))

    def _end(self) -> None:
        for job in [job for job in self._jobs if not job.waiting and not job.asked]:
            job.over = True
            self._jobs.remove(job)
            self._tally.time("load", time.monotonic() - job.started)
            with self._lock:
                self._finished.add(job.plan.request)
                self._errors |= job.failed
