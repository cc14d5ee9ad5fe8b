"""Observer of `SharedSky`, which passes events on to metrics, the estimator and traces."""

import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import get_ident
from typing import Final

from prometheus_client import CollectorRegistry

from skymemory.agent.activity import STEPS_MAX, Activity, LastGet
from skymemory.agent.estimate import Decision, Estimator
from skymemory.agent.metrics import AgentMetrics, SkyCollector
from skymemory.agent.tracing import Asked, Tracing
from skymemory.link.block_entry import BlockEntry
from skymemory.link.operations import Served
from skymemory.store.results import GetResult, PutResult
from skymemory.store.runner import Moved
from skymemory.store.sky_store import SkyStore
from skymemory.wire.address import Satellite

_LESSONS_MAX: Final = 8
"""Most ended gets that wait to be learned from. The observer forgets older ones."""


class Observer:
    """An observer of gets, puts and lookups. Each of them calls it in a thread of its own, and so do gets aside.

    The estimator learns of a get when `learn` is called, after the answers, so that no engine waits for that. Gets aside count in
    metrics and traces only, because they do not show how long engines wait.
    """

    def __init__(
        self, registry: CollectorRegistry, rtt_s: Callable[[], Mapping[Satellite, float]], tracing: Tracing | None = None
    ) -> None:
        """Register metrics.

        Args:
            registry: The registry for the metrics.
            rtt_s: Function that returns the round trips of the satellites that answered when they were asked last.
            tracing: Maker of traces; None for no traces.
        """
        self.estimator = Estimator()
        self.activity = Activity()
        registry.register(self.activity)
        self._metrics = AgentMetrics(registry)
        self._sky = SkyCollector(registry, rtt_s)
        self._tracing = tracing
        self._gets: dict[int, _RunningGet] = {}  # the running gets, by their threads
        self._lessons: deque[_Lesson] = deque(maxlen=_LESSONS_MAX)

    @property
    def traces(self) -> bool:
        """True if the agent makes traces."""
        return self._tracing is not None

    def taken(self, tag: Hashable, began_ns: int, ended_ns: int) -> None:
        """Note that an engine has taken what a get brought (`Origin.tag`)."""
        if self._tracing is not None:
            self._tracing.taken(tag, began_ns, ended_ns)

    def close(self) -> None:
        """Export the traces that are left."""
        if self._tracing is not None:
            self._tracing.close()

    def serves(self, store: SkyStore | None) -> None:
        """Note that another constellation is up, or none: forget all that was learned of the one before."""
        self._lessons.clear()
        self._sky.serves(store)
        self.estimator.forget_sky()

    # ---- gets and puts ----------------------------------------------------------------------------------------------

    def get_begins(self, store: SkyStore | None, keys: Sequence[bytes], asked_s: float, *, aside: bool = False) -> None:
        """Note that a get begins. Call it in the get's thread.

        Args:
            store: The store that serves the get; None if no constellation is known.
            keys: Keys of the blocks.
            asked_s: Time from which the get could have begun (`time.perf_counter`); to start in a thread takes time too.
            aside: True for a get aside.
        """
        if not aside:
            self.estimator.begun([] if store is None else [entry for key in keys if (entry := store.index.get(key)) is not None])
        self._gets[get_ident()] = _RunningGet(asked_s)

    def get_ends(self, results: Sequence[GetResult], asked: Callable[[], Sequence[Asked]], *, aside: bool = False) -> None:
        """Note that a get has ended. Call it in the get's thread.

        Args:
            results: Results of the get, in order.
            asked: Function that returns the requests of the get, for traces.
            aside: True for a get aside.
        """
        get = self._gets.pop(get_ident(), None)
        if get is None:
            return
        ended_s = time.perf_counter()
        if not aside:
            self.estimator.ended()
            # A get that lost blocks, or made several calls, does not show how long a usual get takes
            transfers = get.moves[0].transfers if len(get.moves) == 1 and all(result.ok for result in results) else []
            if len(transfers) == len(results) > 0:
                entries = [transfer.entry for transfer in transfers]
                self._lessons.append(_Lesson(entries, get.moves[0].call.served, get.asked_s, ended_s))
        self._metrics.ended("get", results, ended_s - get.start_s)
        if get.moves:
            self.activity.last_get = _last(get, results, ended_s - get.start_s)
        if self._tracing is not None:
            self._tracing.got(asked(), get.began_ns, get.moves, time.time_ns())

    def get_answered(self) -> None:
        """Note that the asking thread has the answer of the get that ended last. Call it in that thread, at once."""
        with suppress(IndexError):
            lesson = self._lessons[-1]
            lesson.answered_s = lesson.answered_s or time.perf_counter()

    def learn(self) -> bool:
        """Learn of one get that has ended.

        Returns:
            True if there was one.
        """
        try:
            lesson = self._lessons.popleft()
        except IndexError:
            return False
        duration_s = (lesson.answered_s or lesson.ended_s) - lesson.asked_s
        expected_s = self.estimator.learn(lesson.entries, lesson.served, duration_s)
        if expected_s is not None:
            self._metrics.fetched(expected_s, duration_s)
        return True

    def put_ended(self, results: Sequence[PutResult], duration_s: float) -> None:
        """Note that a put has ended. Call it in the thread of puts."""
        self._metrics.ended("put", results, duration_s)

    def found(self, duration_s: float) -> None:
        """Note that a lookup has ended."""
        self._metrics.found(duration_s)

    def moved(self, store: SkyStore, moved: Moved) -> None:
        """Note blocks that the store has moved together. Call it in the thread that had them moved."""
        self._metrics.moved("put" if moved.up else "get", moved.transfers)
        self.estimator.placed(moved.servers, store.constellation.cache.deadline_ms / 1e3)
        get = None if moved.up else self._gets.get(get_ident())
        if get is not None:
            get.moves.append(moved)

    # ---- for engines ------------------------------------------------------------------------------------------------

    def worth(self, engine: str, entries: Sequence[BlockEntry], tokens_before: int, block_tokens: int) -> Decision:
        """Return the decision of `Estimator.worth`, and count it."""
        decision = self.estimator.worth(engine, entries, tokens_before, block_tokens)
        self._metrics.decided(decision)
        return decision

    def prefilled(self, engine: str, tokens: int, duration_s: float, before: int) -> None:
        """Have the estimator learn of a prefill (`Estimator.prefilled`), and note the error of its estimate."""
        expected_s = self.estimator.prefill_s(engine, tokens, before)
        if expected_s is not None:
            self._metrics.prefilled(expected_s, duration_s)
        self.estimator.prefilled(engine, tokens, duration_s, before)


class _RunningGet:
    """A get that has begun and not ended."""

    def __init__(self, asked_s: float) -> None:
        self.asked_s = asked_s
        self.start_s = time.perf_counter()
        self.began_ns = time.time_ns()
        self.moves: list[Moved] = []


def _last(get: _RunningGet, results: Sequence[GetResult], duration_s: float) -> LastGet:
    """Return a get in the form that the page shows."""
    steps = [(one, (moved.call.started_ns - get.began_ns) / 1e9) for moved in get.moves for one in moved.call.served]
    steps.sort(key=lambda step: step[1] + (step[0].last_s or 0.0), reverse=True)
    return LastGet(
        began_ms=get.began_ns // 1_000_000,
        duration_s=duration_s,
        blocks=len(results),
        hits=sum(result.ok for result in results),
        bytes=sum(one.bytes for one, _ in steps),
        steps=tuple(steps[:STEPS_MAX]),
    )


@dataclass(slots=True)
class _Lesson:
    """A get for the estimator to learn from, without the blocks' memory. Times are those of `time.perf_counter`."""

    entries: Sequence[BlockEntry]
    served: Sequence[Served]
    asked_s: float
    ended_s: float
    answered_s: float | None = None
