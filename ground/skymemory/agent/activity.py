"""Counts of what engines and clients asked for and got, what that saved, the way of the last get, and the log of events.

The page and Prometheus read this. Its memory is bounded, whatever engines do.
"""

import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import Final, Literal

from prometheus_client.core import CounterMetricFamily, Metric

from skymemory.link.operations import Served
from skymemory.store.results import GetResult
from skymemory.wire.address import Satellite

Client = Literal["engine", "redis"]
Outcome = Literal["hit", "not_found", "not_fetched", "not_delivered"]

CLIENTS: Final[tuple[Client, ...]] = ("engine", "redis")
OUTCOMES: Final[tuple[Outcome, ...]] = ("hit", "not_found", "not_fetched", "not_delivered")
FETCHED_WITHIN_S: Final = 30.0
"""Seconds after which a block that an engine has found but not fetched counts as `not_fetched`."""
FOUND_MAX: Final = 1 << 14
"""Found blocks that are remembered until they are fetched; beyond that the oldest count as `not_fetched`."""
EVENTS_MAX: Final = 256
"""Number of events that are kept; older ones are forgotten."""
TEXT_MAX: Final = 200
"""Characters of an event's text; longer texts are cut."""
STEPS_MAX: Final = 64
"""Number of satellites of the last get that are kept: those that took longest."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Blocks by outcome, and what the hits saved, since the agent started."""

    hit: int = 0
    """Blocks that came."""
    not_found: int = 0
    """Blocks that nobody believed to be in the sky: cold keys."""
    not_fetched: int = 0
    """Blocks that were found but not fetched by the engine, mostly because computing them was faster."""
    not_delivered: int = 0
    """Blocks that were believed to be in the sky but did not come."""
    tokens: int = 0
    """Tokens of the blocks that came to engines."""
    compute_s: float = 0.0
    """Time in which the engines would have computed these tokens, by their own estimates."""
    fetch_s: float = 0.0
    """Time that the gets of these tokens took."""

    @property
    def asked(self) -> int:
        """Blocks that were asked for."""
        return self.hit + self.not_found + self.not_fetched + self.not_delivered

    @property
    def hit_rate(self) -> float | None:
        """Share of what was asked for that came; None: nothing was asked for."""
        return self.hit / self.asked if self.asked else None

    @property
    def delivery(self) -> float | None:
        """Share of what was believed to be in the sky, and fetched, that came; None: nothing was fetched."""
        believed = self.hit + self.not_delivered
        return self.hit / believed if believed else None


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened."""

    number: int
    """Number that counts up from 1."""
    time_ms: int
    """Unix time."""
    kind: str
    """One word, for example `handover`, `lost`, `back`, `restarted`."""
    text: str
    satellites: tuple[Satellite, ...] = ()


class EventLog:
    """The log of events: the newest ones. Thread-safe; whoever sees something happen adds it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: deque[Event] = deque(maxlen=EVENTS_MAX)
        self._number = 0

    def add(self, kind: str, text: str, satellites: Iterable[Satellite] = (), *, time_s: float | None = None) -> None:
        """Add an event.

        Args:
            satellites: Satellites that it happened to; the page marks them.
            time_s: Unix time. Default: now.
        """
        time_ms = round(1000 * (time.time() if time_s is None else time_s))
        with self._lock:
            self._number += 1
            self._kept.append(Event(self._number, time_ms, kind, text[:TEXT_MAX], tuple(islice(satellites, STEPS_MAX))))

    def newest(self) -> list[Event]:
        """Return the events that are kept, the oldest first."""
        with self._lock:
            return list(self._kept)


@dataclass(frozen=True, slots=True)
class LastGet:
    """The last get of an engine or a client that moved anything, and the way it took."""

    began_ms: int
    """Unix time."""
    duration_s: float
    blocks: int
    hits: int
    bytes: int
    steps: tuple[tuple[Served, float], ...]
    """Work of each satellite, and the start of its call in seconds after the get's; the longest first."""


@dataclass(slots=True)
class _FoundBlock:
    """A block that was found and not fetched yet."""

    until_s: float
    client: Client
    times: int
    compute_s: float | None


@dataclass(slots=True)
class _Saved:
    tokens: int = 0
    compute_s: float = 0.0
    fetch_s: float = 0.0


class Activity:
    """Counts and events of one agent; a Prometheus collector. Thread-safe.

    A block is counted once each time that somebody asks for it: when a lookup does not find it, or when the get that follows
    the lookup has ended. A lookup that only asks what is left to be stored counts nothing.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.events = EventLog()
        self.last_get: LastGet | None = None
        """The last get; None if nothing was fetched yet."""
        self._clock = clock
        self._lock = Lock()
        self._blocks: Counter[tuple[Client, Outcome]] = Counter()
        self._saved = _Saved()
        self._found: OrderedDict[bytes, _FoundBlock] = OrderedDict()

    # ---- what happens ---------------------------------------------------------------------------------------------------

    def looked_up(
        self, client: Client, keys: Sequence[bytes], found: int, fetch: int = 0, compute_s: float | None = None
    ) -> None:
        """Count a lookup.

        Args:
            found: Number of keys, from the first one on, that are in the sky.
            fetch: Number of these keys whose blocks the engine was told to fetch.
            compute_s: Estimated time to compute the blocks that the engine was told to fetch; None if unknown.
        """
        until_s = self._clock() + FETCHED_WITHIN_S
        each_s = None if compute_s is None or fetch == 0 else compute_s / fetch
        with self._lock:
            self._blocks[client, "not_found"] += len(keys) - found
            for at, key in enumerate(keys[:found]):
                before = self._found.pop(key, None)
                times = 1 if before is None else before.times + 1
                self._found[key] = _FoundBlock(until_s, client, times, each_s if at < fetch else None)
            self._expire()

    def got(self, client: Client, results: Sequence[GetResult], *, block_tokens: int = 0, duration_s: float = 0.0) -> None:
        """Count a get.

        Args:
            block_tokens: Tokens of each block; 0: nobody knows.
            duration_s: Duration of the get.
        """
        computed_s = 0.0
        with self._lock:
            for result in results:
                found = self._found.get(result.key)
                if found is not None:
                    found.times -= 1
                    if found.times == 0:
                        del self._found[result.key]
                if not result.ok:
                    self._blocks[client, "not_delivered" if result.known or found is not None else "not_found"] += 1
                    continue
                self._blocks[client, "hit"] += 1
                self._saved.tokens += block_tokens
                if found is not None and found.compute_s is not None:
                    computed_s += found.compute_s
            if computed_s > 0:
                self._saved.compute_s += computed_s
                self._saved.fetch_s += duration_s
            self._expire()

    def read(self, client: Client, outcome: Outcome) -> None:
        """Count a value that a client asked for by name."""
        with self._lock:
            self._blocks[client, outcome] += 1

    # ---- what is told ---------------------------------------------------------------------------------------------------

    def counts(self) -> Counts:
        """Return what was counted so far."""
        with self._lock:
            self._expire()
            blocks = {one: sum(self._blocks[client, one] for client in CLIENTS) for one in OUTCOMES}
            saved = self._saved
            return Counts(**blocks, tokens=saved.tokens, compute_s=saved.compute_s, fetch_s=saved.fetch_s)

    def collect(self) -> Iterable[Metric]:
        """Return the same for Prometheus."""
        with self._lock:
            self._expire()
            blocks, saved = Counter(self._blocks), _Saved(self._saved.tokens, self._saved.compute_s, self._saved.fetch_s)
        asked = CounterMetricFamily(
            "skymem_asked_blocks", "Blocks that engines and clients asked for, by outcome.", labels=["client", "outcome"]
        )
        for client in CLIENTS:
            for outcome in OUTCOMES:
                asked.add_metric([client, outcome], blocks[client, outcome])
        yield asked
        yield CounterMetricFamily("skymem_saved_tokens", "Tokens that engines fetched.", value=saved.tokens)
        yield CounterMetricFamily(
            "skymem_saved_compute_seconds",
            "How long engines would have computed what they fetched, by their estimates.",
            value=saved.compute_s,
        )
        yield CounterMetricFamily(
            "skymem_saved_fetch_seconds", "How long it took to fetch what these estimates are for.", value=saved.fetch_s
        )

    def _expire(self) -> None:
        """Count blocks that were found and that nobody fetches any more. With the lock held."""
        now_s = self._clock()
        while self._found:
            first = next(iter(self._found.values()))
            if first.until_s > now_s and len(self._found) <= FOUND_MAX:
                return
            self._found.popitem(last=False)
            self._blocks[first.client, "not_fetched"] += first.times
