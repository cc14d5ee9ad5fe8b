"""What happens in `Sky`, told to those who want to know: metrics, the estimator, traces."""

import time
from collections.abc import Callable, Hashable, Mapping, Sequence

from prometheus_client import CollectorRegistry

from skymemory.agent.estimate import Decision, Estimator
from skymemory.agent.metrics import Metrics, SkyCollector
from skymemory.agent.tracing import Asked, Tracing
from skymemory.block_entry import BlockEntry
from skymemory.link.native import TransferState
from skymemory.placement.torus import Satellite
from skymemory.results import GetResult, PutResult
from skymemory.store import SkyStore
from skymemory.transfers import Moved


class Observer:
    """Gets are told of in one thread, those aside in another, puts and lookups each in another.

    What is fetched aside says nothing of how long engines wait: it counts in metrics and traces only.
    """

    def __init__(
        self, registry: CollectorRegistry, rtt_s: Callable[[], Mapping[Satellite, float]], tracing: Tracing | None = None
    ) -> None:
        """`rtt_s`: of the satellites that answered when they were asked last. `tracing`: None: no traces are made."""
        self.estimator = Estimator()
        self._metrics = Metrics(registry)
        self._sky = SkyCollector(registry, rtt_s)
        self._tracing = tracing
        self._gets: dict[bool, _Get] = {}  # that run; True: aside

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
        self._sky.serves(store)
        self.estimator.forget_sky()

    # ---- gets and puts ----------------------------------------------------------------------------------------------

    def get_begins(self, store: SkyStore | None, keys: Sequence[bytes], *, aside: bool = False) -> None:
        """In the thread of gets."""
        if aside:
            self._gets[True] = _Get(None)
            return
        entries = [] if store is None else [entry for key in keys if (entry := store.index.get(key)) is not None]
        expected_s = self.estimator.begun(entries) if entries else None
        self._gets[False] = _Get(expected_s if len(entries) == len(keys) else None)

    def get_ends(self, results: Sequence[GetResult], asked: Callable[[], Sequence[Asked]], *, aside: bool = False) -> None:
        """In the thread of gets. `asked`: the requests, for traces."""
        get = self._gets.pop(aside, None)
        if get is None:
            return
        duration_s = time.perf_counter() - get.start_s
        if not aside:
            whole = get.moves[0].transfers if len(get.moves) == 1 and all(result.ok for result in results) else []
            entries = [transfer.entry for transfer in whole]
            self.estimator.fetched(entries, duration_s if len(whole) == len(results) > 0 else None)
            if whole and get.expected_s is not None:
                self._metrics.fetched(get.expected_s, duration_s)
        self._metrics.ended("get", results, duration_s)
        if self._tracing is not None:
            self._tracing.got(asked(), get.began_ns, get.moves, time.time_ns())

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
        if moved.up:
            return
        get = self._gets.get(moved.aside)
        if get is not None:
            get.moves.append(moved)
        if not moved.aside and all(transfer.state is TransferState.DONE for transfer in moved.transfers):
            self.estimator.served([transfer.entry for transfer in moved.transfers], moved.call.served)

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

    def __init__(self, expected_s: float | None) -> None:
        self.expected_s = expected_s
        self.start_s = time.perf_counter()
        self.began_ns = time.time_ns()
        self.moves: list[Moved] = []
