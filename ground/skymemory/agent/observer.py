"""What happens in `Sky`, told to those who want to know: metrics, the estimator, traces."""

import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry

from skymemory.agent.activity import STEPS_MAX, Activity, LastGet
from skymemory.agent.estimate import Decision, Estimator
from skymemory.agent.metrics import Metrics, SkyCollector
from skymemory.agent.tracing import Asked, Tracing
from skymemory.block_entry import BlockEntry
from skymemory.link.native import Served
from skymemory.placement.torus import Satellite
from skymemory.results import GetResult, PutResult
from skymemory.store import SkyStore
from skymemory.transfers import Moved

_LESSONS_MAX: Final = 8
"""gets that have ended and were not learned from yet; older ones are forgotten"""


class Observer:
    """Gets are told of in one thread, those aside in another, puts and lookups each in another.

    Nobody waits for what the estimator learns of a get: that is done when `learn` is called, after the answers. What is fetched
    aside says nothing of how long engines wait: it counts in metrics and traces only.
    """

    def __init__(
        self, registry: CollectorRegistry, rtt_s: Callable[[], Mapping[Satellite, float]], tracing: Tracing | None = None
    ) -> None:
        """`rtt_s`: of the satellites that answered when they were asked last. `tracing`: None: no traces are made."""
        self.estimator = Estimator()
        self.activity = Activity()
        registry.register(self.activity)
        self._metrics = Metrics(registry)
        self._sky = SkyCollector(registry, rtt_s)
        self._tracing = tracing
        self._gets: dict[bool, _Get] = {}  # that run; True: aside
        self._lessons: deque[_Lesson] = deque(maxlen=_LESSONS_MAX)

    @property
    def traces(self) -> bool:
        """Somebody wants traces."""
        return self._tracing is not None

    def taken(self, tag: Hashable, began_ns: int, ended_ns: int) -> None:
        """An engine has taken what a get brought (`Origin.tag`)."""
        if self._tracing is not None:
            self._tracing.taken(tag, began_ns, ended_ns)

    def close(self) -> None:
        """Export what traces are left."""
        if self._tracing is not None:
            self._tracing.close()

    def serves(self, store: SkyStore | None) -> None:
        """Another constellation, or none."""
        self._lessons.clear()
        self._sky.serves(store)
        self.estimator.forget_sky()

    # ---- gets and puts ----------------------------------------------------------------------------------------------

    def get_begins(self, store: SkyStore | None, keys: Sequence[bytes], asked_s: float, *, aside: bool = False) -> None:
        """In the thread of gets. `asked_s`: since when it could have begun (`time.perf_counter`): threads take time, too."""
        if not aside:
            self.estimator.begun([] if store is None else [entry for key in keys if (entry := store.index.get(key)) is not None])
        self._gets[aside] = _Get(asked_s)

    def get_ends(self, results: Sequence[GetResult], asked: Callable[[], Sequence[Asked]], *, aside: bool = False) -> None:
        """In the thread of gets. `asked`: the requests, for traces."""
        get = self._gets.pop(aside, None)
        if get is None:
            return
        ended_s = time.perf_counter()
        if not aside:
            self.estimator.ended()
            # How long those take that do not come, or not at once, says nothing of those that do
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
        """In the thread that asked, as soon as it has the answer of the get that ended last."""
        with suppress(IndexError):
            lesson = self._lessons[-1]
            lesson.answered_s = lesson.answered_s or time.perf_counter()

    def learn(self) -> bool:
        """Learn of one get that has ended.

        Returns:
            There was one.
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
        """In the thread of puts."""
        self._metrics.ended("put", results, duration_s)

    def found(self, duration_s: float) -> None:
        """A lookup has ended."""
        self._metrics.found(duration_s)

    def moved(self, store: SkyStore, moved: Moved) -> None:
        """One call of the store's native clients, in the thread that made it."""
        self._metrics.moved("put" if moved.up else "get", moved.transfers)
        self.estimator.placed(moved.servers, store.constellation.cache.deadline_ms / 1e3)
        get = None if moved.up else self._gets.get(moved.aside)
        if get is not None:
            get.moves.append(moved)

    # ---- for engines ------------------------------------------------------------------------------------------------

    def worth(self, engine: str, entries: Sequence[BlockEntry], tokens_before: int, block_tokens: int) -> Decision:
        """`Estimator.worth`, counted."""
        decision = self.estimator.worth(engine, entries, tokens_before, block_tokens)
        self._metrics.decided(decision)
        return decision

    def prefilled(self, engine: str, tokens: int, duration_s: float, before: int) -> None:
        """`Estimator.prefilled`, and how far off the estimate would have been."""
        expected_s = self.estimator.prefill_s(engine, tokens, before)
        if expected_s is not None:
            self._metrics.prefilled(expected_s, duration_s)
        self.estimator.prefilled(engine, tokens, duration_s, before)


class _Get:
    """A get that runs."""

    def __init__(self, asked_s: float) -> None:
        self.asked_s = asked_s
        self.start_s = time.perf_counter()
        self.began_ns = time.time_ns()
        self.moves: list[Moved] = []


def _last(get: _Get, results: Sequence[GetResult], duration_s: float) -> LastGet:
    """Return a get as the page tells it."""
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
    """A get to learn from; keeps no block's memory. Times are those of `time.perf_counter`."""

    entries: Sequence[BlockEntry]
    served: Sequence[Served]
    asked_s: float
    ended_s: float
    answered_s: float | None = None
