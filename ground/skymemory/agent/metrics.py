"""Prometheus metrics of the agent's core: blocks, satellites, and the choice between fetching and computing.

Labels have few values: never keys, tenants or users. Only the satellites that answered last or are lost are labels: about as many
as the window has, however large the constellation is.
"""

import platform
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from importlib.metadata import version
from typing import Final

from prometheus_client import CollectorRegistry, Histogram, Info
from prometheus_client import Counter as Total
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from skymemory.agent.estimate import Decision
from skymemory.link.operations import Outcome
from skymemory.store.results import GetResult, PutResult, Status, StoreStatistics
from skymemory.store.sky_store import SkyStore
from skymemory.wire.address import Satellite

LATENCY_S: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Buckets in seconds, from the get of a block on this host to the longest sensible deadline."""
RATIO: Final = (0.1, 0.25, 0.5, 0.67, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 4.0, 10.0)
"""Buckets of a ratio of estimate and truth. Estimates within 20 % lie from 0.8 to 1.25."""
_LOOKUPS: Final = {
    "purges": "Blocks purged, broken ones included.",
    "touches": "Blocks made younger on the satellites than those behind them in their chains.",
    "questions": "Blocks that satellites were asked for.",
    "unanswered": "Lookups to which no answer came, or that were not made because no satellite answers.",
    "degraded": "Blocks that were fetched though chunks of them were missing.",
    "puts_again": "Blocks of which chunks were missing, and that were put again after they were fetched.",
    "wrong": "Blocks with wrong chunks of one satellite, which were right without these.",
    "satellites_lost": "Times that a satellite was found not to answer while others did.",
}


class AgentMetrics:
    """Counters and histograms of the agent. Thread-safe."""

    def __init__(self, registry: CollectorRegistry) -> None:
        Info("skymem_build", "The agent's version.", registry=registry).info(
            {"version": version("skymemory"), "python": platform.python_version()}
        )
        self._blocks = Total(
            "skymem_store_blocks", "Blocks that were to be moved, by how that ended.", ["operation", "status"], registry=registry
        )
        lengths = Total("skymem_store_bytes", "Bytes of chunks that arrived.", ["operation"], registry=registry)
        chunks = Total("skymem_store_chunks", "Chunks that arrived.", ["operation"], registry=registry)
        retries = Total("skymem_store_retries", "Chunks asked for, or sent, once more.", ["operation"], registry=registry)
        self._moved = {one: (chunks.labels(one), lengths.labels(one), retries.labels(one)) for one in ("get", "put")}
        self._corrupt = Total("skymem_store_corrupt_chunks", "Chunks that came with a wrong CRC-32C.", registry=registry)
        self._lost = Total(
            "skymem_store_lost_chunks",
            "Chunks of blocks with parity that were moved without them.",
            ["operation"],
            registry=registry,
        )
        self._decoded = Total(
            "skymem_store_decoded_chunks", "Chunks of fetched blocks that were made of others.", registry=registry
        )
        seconds = Histogram(
            "skymem_store_seconds",
            "Calls of the store, each of one request or of several that came together.",
            ["operation"],
            buckets=LATENCY_S,
            registry=registry,
        )
        self._seconds = {one: seconds.labels(one) for one in ("get", "put", "find")}
        self._decisions = Total(
            "skymem_fetch_decisions", "What engines were told to do with blocks that were found.", ["decision"], registry=registry
        )
        self._fetch_s = Histogram(
            "skymem_fetch_estimate_seconds", "Estimates for fetching what was found.", buckets=LATENCY_S, registry=registry
        )
        self._recompute_s = Histogram(
            "skymem_recompute_estimate_seconds", "Estimates for computing the same.", buckets=LATENCY_S, registry=registry
        )
        self._fetch_ratio = Histogram(
            "skymem_fetch_estimate_ratio",
            "Estimate for a get, by what was known before it, over what it took.",
            buckets=RATIO,
            registry=registry,
        )
        self._prefill_ratio = Histogram(
            "skymem_recompute_estimate_ratio", "Estimate for a prefill over what it took.", buckets=RATIO, registry=registry
        )
        for decision in ("fetch", "recompute", "explore"):
            self._decisions.labels(decision)  # the counter begins at 0, so that a rate shows the first decision
        for operation in self._moved:
            self._blocks.labels(operation, Status.DONE)

    def moved(self, operation: str, transfers: Sequence[Outcome]) -> None:
        """Count the chunks of blocks that one call has moved."""
        chunks, lengths, retries = self._moved[operation]
        chunks.inc(sum(transfer.chunks for transfer in transfers))
        lengths.inc(sum(transfer.bytes for transfer in transfers))
        retries.inc(sum(transfer.repeats for transfer in transfers))
        self._corrupt.inc(sum(transfer.corrupt for transfer in transfers))
        self._lost.labels(operation).inc(sum(transfer.lost for transfer in transfers if transfer.status is Status.DONE))
        self._decoded.inc(sum(transfer.decoded for transfer in transfers))

    def ended(self, operation: str, results: Sequence[GetResult | PutResult], duration_s: float) -> None:
        """Count a get or a put of the store that has ended."""
        for status, count in Counter(result.status for result in results).items():
            self._blocks.labels(operation, status).inc(count)
        self._seconds[operation].observe(duration_s)

    def found(self, duration_s: float) -> None:
        """Count a lookup that has ended."""
        self._seconds["find"].observe(duration_s)

    def decided(self, decision: Decision) -> None:
        """Count a decision that went to an engine."""
        self._decisions.labels(decision.kind).inc()
        if decision.fetch_s is not None:
            self._fetch_s.observe(decision.fetch_s)
        if decision.recompute_s is not None:
            self._recompute_s.observe(decision.recompute_s)

    def fetched(self, expected_s: float, duration_s: float) -> None:
        """Note how long a get took."""
        self._fetch_ratio.observe(expected_s / max(duration_s, 1e-9))

    def prefilled(self, expected_s: float, duration_s: float) -> None:
        """Note how long a prefill took."""
        self._prefill_ratio.observe(expected_s / max(duration_s, 1e-9))


class SkyCollector:
    """A Prometheus collector of present gauges and of the store's counters."""

    def __init__(self, registry: CollectorRegistry, rtt_s: Callable[[], Mapping[Satellite, float]]) -> None:
        """Register with a registry.

        Args:
            registry: The registry to register with.
            rtt_s: Function that returns the round trips of the satellites that answered when they were asked last.
        """
        self._rtt_s = rtt_s
        self._lock = threading.Lock()
        self._store: SkyStore | None = None
        self._before = StoreStatistics()
        registry.register(self)

    def serves(self, store: SkyStore | None) -> None:
        """Collect from another store from now on, and keep the counts of the one before, because counters never go back."""
        with self._lock:
            if self._store is not None:
                self._before = _sum(self._before, self._store.stats())
            self._store = store

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics for Prometheus."""
        with self._lock:
            store = self._store
            counted = self._before if store is None else _sum(self._before, store.stats())
        entries = GaugeMetricFamily("skymem_index_entries", "Blocks that this host believes to be in the sky.")
        entries.add_metric([], 0 if store is None else len(store.index))
        yield entries
        lost: Collection[Satellite] = () if store is None else store.lost
        answering = {satellite: rtt_s for satellite, rtt_s in self._rtt_s().items() if satellite not in lost}
        rtt = GaugeMetricFamily(
            "skymem_satellite_rtt_seconds", "Round trip to a satellite, when it was asked last.", labels=["plane", "slot"]
        )
        up = GaugeMetricFamily(
            "skymem_satellite_lost",
            "1: it does not answer while others do, and others stand in for it.",
            labels=["plane", "slot"],
        )
        for satellite, rtt_s in answering.items():
            rtt.add_metric([str(satellite.plane), str(satellite.slot)], rtt_s)
            up.add_metric([str(satellite.plane), str(satellite.slot)], 0)
        for satellite in lost:
            up.add_metric([str(satellite.plane), str(satellite.slot)], 1)
        yield rtt
        yield up
        for name, text in _LOOKUPS.items():
            yield CounterMetricFamily(f"skymem_store_{name}", text, value=getattr(counted, name))


def _sum(one: StoreStatistics, other: StoreStatistics) -> StoreStatistics:
    return StoreStatistics(*(getattr(one, field.name) + getattr(other, field.name) for field in fields(StoreStatistics)))
