"""Observer of `SharedSky`, which passes events on to metrics, the estimator and traces."""

import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from prometheus_client import CollectorRegistry

from skymemory.agent.activity import STEPS_MAX, Activity, LastGet
from skymemory.agent.estimate import Decision, Estimator
from skymemory.agent.metrics import AgentMetrics, SkyCollector
from skymemory.agent.tracing import Origin, Tracing
from skymemory.link.block_entry import BlockEntry
from skymemory.link.operations import Outcome, served_of
from skymemory.store.results import GetResult, PutResult
from skymemory.store.runner import Moved
from skymemory.store.sky_store import SkyStore
from skymemory.wire.address import Satellite

_LESSONS_MAX: Final = 8
"""Most lessons that wait to be learned. The observer forgets older ones."""
_LESSON_BLOCKS_MAX: Final = 512
"""Blocks of the longest lesson: if gets follow each other without a pause, there is none."""


class Observer:
    """An observer of gets, puts and lookups, in one event loop.

    Gets that overlap share satellites and links, so the estimator learns from all of them as from one get: from the time when the
    first one begins until none runs any more. It does so when `learn` is called, after the answers, so that no engine waits.
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
        self._busy = _Lesson(time.perf_counter())
        """Gets since the last time when none ran."""
        self._running = 0
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

    def get_begins(self, store: SkyStore | None, keys: Sequence[bytes]) -> "RunningGet":
        """Note that a get begins, and return it.

        Args:
            store: The store that serves the get; None if no constellation is known.
            keys: Keys of the blocks.
        """
        get = RunningGet()
        if not self._running:
            self._busy = _Lesson(get.start_s)
        self._running += 1
        self.estimator.begun(get, [] if store is None else [entry for key in keys if (entry := store.index.get(key)) is not None])
        return get

    def get_ends(self, get: "RunningGet", results: Sequence[GetResult], origin: Origin) -> None:
        """Note that a get has ended.

        Args:
            get: The get.
            results: Its results, in order.
            origin: Origin of the request, for its trace.
        """
        ended_s = time.perf_counter()
        self.estimator.ended(get)
        # A get that lost blocks, or fetched them twice, does not show how long a usual get takes
        moved = [one for move in get.moves for one in move.transfers]
        self._busy.is_usual &= len(moved) == len(results) and all(result.ok for result in results)
        self._busy.transfers += moved
        self._running -= 1
        if not self._running and self._busy.is_usual and 0 < len(self._busy.transfers) <= _LESSON_BLOCKS_MAX:
            self._busy.ended_s = ended_s
            self._lessons.append(self._busy)
        if len(self._busy.transfers) > _LESSON_BLOCKS_MAX:
            self._busy.is_usual = False
            self._busy.transfers.clear()
        self._metrics.ended("get", results, ended_s - get.start_s)
        if get.moves:
            self.activity.last_get = _last(get, results, ended_s - get.start_s)
        if self._tracing is not None:
            self._tracing.got(origin, results, get.began_ns, get.moves, time.time_ns())

    def learn(self) -> bool:
        """Learn of gets that have ended.

        Returns:
            True if there were any.
        """
        try:
            lesson = self._lessons.popleft()
        except IndexError:
            return False
        duration_s = lesson.ended_s - lesson.start_s
        entries = [one.entry for one in lesson.transfers]
        served = served_of(lesson.transfers, min(one.began_us for one in lesson.transfers))
        expected_s = self.estimator.learn(entries, served, duration_s)
        if expected_s is not None:
            self._metrics.fetched(expected_s, duration_s)
        return True

    def put_ended(self, results: Sequence[PutResult], duration_s: float) -> None:
        """Note that a put has ended."""
        self._metrics.ended("put", results, duration_s)

    def found(self, duration_s: float) -> None:
        """Note that a lookup has ended."""
        self._metrics.found(duration_s)

    def moved(self, store: SkyStore, moved: Moved) -> None:
        """Note blocks that the store has moved together; called in the thread that had them moved."""
        self._metrics.moved("put" if moved.up else "get", moved.transfers)
        self.estimator.placed(moved.servers, store.constellation.cache.deadline_ms / 1e3)

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


class RunningGet:
    """A get that has begun."""

    def __init__(self) -> None:
        self.start_s = time.perf_counter()
        self.began_ns = time.time_ns()
        self.moves: list[Moved] = []
        """Blocks that were moved for it."""


def _last(get: RunningGet, results: Sequence[GetResult], duration_s: float) -> LastGet:
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
    """Gets that overlapped, for the estimator to learn from. Times are those of `time.perf_counter`."""

    start_s: float
    ended_s: float = 0.0
    transfers: list[Outcome] = field(default_factory=list)
    is_usual: bool = True
    """False: they do not show how long a usual get takes."""
