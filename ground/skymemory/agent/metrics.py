"""Prometheus metrics of the agent's core: blocks, satellites, and the choice between fetching and computing.

Labels have few values: no key, tenant or user is ever one. Satellites are labels only while they serve this host or were
asked whether they are there, which is as many as the window has and a few more, however large the constellation is.
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
from skymemory.link.native import Transfer
from skymemory.placement.torus import Satellite
from skymemory.results import GetResult, PutResult, Status, StoreStatistics
from skymemory.store import SkyStore

LATENCY_S: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""from a block that lies on this host to the longest deadline that makes sense"""
RATIO: Final = (0.1, 0.25, 0.5, 0.67, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 4.0, 10.0)
"""within 20 %: from 0.8 to 1.25"""
_LOOKUPS: Final = {
    "purges": "Blocks purged, broken ones included.",
    "touches": "Blocks made younger on the satellites than those behind them in their chains.",
    "questions": "Blocks that satellites were asked for.",
    "unanswered": "Lookups to which no answer came, or that were not made because no satellite answers.",
    "satellites_lost": "Times that a satellite was found not to answer while others did.",
}


class Metrics:
    """Counts what the agent does. Thread-safe."""

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
            self._decisions.labels(decision)  # a rate begins at 0
        for operation in self._moved:
            self._blocks.labels(operation, Status.DONE)

    def moved(self, operation: str, transfers: Sequence[Transfer]) -> None:
        """One call has moved chunks of blocks."""
        chunks, lengths, retries = self._moved[operation]
        chunks.inc(sum(transfer.chunks for transfer in transfers))
        lengths.inc(sum(transfer.bytes for transfer in transfers))
        retries.inc(sum(transfer.repeats for transfer in transfers))
        self._corrupt.inc(sum(transfer.corrupt for transfer in transfers))

    def ended(self, operation: str, results: Sequence[GetResult | PutResult], duration_s: float) -> None:
        """A get or a put of the store's has ended."""
        for status, count in Counter(result.status for result in results).items():
            self._blocks.labels(operation, status).inc(count)
        self._seconds[operation].observe(duration_s)

    def found(self, duration_s: float) -> None:
        """A lookup has ended."""
        self._seconds["find"].observe(duration_s)

    def decided(self, decision: Decision) -> None:
        """An engine was told what to do."""
        self._decisions.labels(decision.kind).inc()
        if decision.fetch_s is not None:
            self._fetch_s.observe(decision.fetch_s)
        if decision.recompute_s is not None:
            self._recompute_s.observe(decision.recompute_s)

    def fetched(self, expected_s: float, duration_s: float) -> None:
        """A get took so long."""
        self._fetch_ratio.observe(expected_s / max(duration_s, 1e-9))

    def prefilled(self, expected_s: float, duration_s: float) -> None:
        """A prefill took so long."""
        self._prefill_ratio.observe(expected_s / max(duration_s, 1e-9))


class SkyCollector:
    """What is so at the moment of asking, and what the store counts itself."""

    def __init__(self, registry: CollectorRegistry, rtt_s: Callable[[], Mapping[Satellite, float]]) -> None:
        """`rtt_s`: of the satellites that answered when they were asked last."""
        self._rtt_s = rtt_s
        self._lock = threading.Lock()
        self._store: SkyStore | None = None
        self._before = StoreStatistics()
        registry.register(self)

    def serves(self, store: SkyStore | None) -> None:
        """Another store serves from now on. Counters never go back: what the one before has counted stays."""
        with self._lock:
            if self._store is not None:
                self._before = _sum(self._before, self._store.stats())
            self._store = store

    def collect(self) -> Iterable[Metric]:
        """For Prometheus."""
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
