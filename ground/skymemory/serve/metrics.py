"""Counters of the server, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from skymemory.segments.gate_metrics import GateMetrics
from skymemory.serve.job_queue import JobQueue
from skymemory.serve.prompt_cache import PromptCache

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


class ServeMetrics:
    """Counters of requests and tokens. Those of the cache are read when they are asked for."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter(
            "skymem_serve_requests_total", "Requests to the API, by path and status", ("path", "status"), registry=registry
        )
        self.prompt_tokens = Counter("skymem_serve_prompt_tokens_total", "Tokens of prompts", registry=registry)
        self.cached_tokens = Counter(
            "skymem_serve_cached_tokens_total",
            "Tokens of prompts that came from the sky, or from a prompt beside",
            registry=registry,
        )
        self.linked_tokens = Counter("skymem_serve_linked_tokens_total", "Tokens of segments that were linked", registry=registry)
        self.recomputed_tokens = Counter(
            "skymem_serve_recomputed_tokens_total", "Tokens of linked segments that were computed again", registry=registry
        )
        self.completion_tokens = Counter("skymem_serve_completion_tokens_total", "Tokens of answers", registry=registry)
        self.unknown_parameters = Counter(
            "skymem_serve_unknown_parameters_total",
            "Parameters of requests that are unknown and were left out",
            registry=registry,
        )
        self.cancelled = Counter(
            "skymem_serve_cancelled_total", "Generations whose client went away before the end", registry=registry
        )
        self.first_token = Histogram(
            "skymem_serve_time_to_first_token_seconds",
            "From the request's acceptance to its first text",
            buckets=_SECONDS,
            registry=registry,
        )
        self.duration = Histogram(
            "skymem_serve_request_seconds", "From the request's acceptance to its end", buckets=_SECONDS, registry=registry
        )

    def watch(self, queue: JobQueue, cache: PromptCache) -> None:
        """Read the state of these at every scrape."""
        for name, text, read in (
            ("skymem_serve_running", "Requests that are generated", lambda: queue.running),
            ("skymem_serve_waiting", "Requests that wait for the model", lambda: queue.waiting),
            ("skymem_serve_storing", "Answers that are not stored yet", lambda: cache.waiting),
            ("skymem_serve_not_stored", "Answers not stored, because too many were waiting for it", lambda: cache.dropped),
        ):
            Gauge(name, text, registry=self.registry).set_function(read)
        self.registry.register(_CacheCollector(cache))
        self.registry.register(GateMetrics())


class _CacheCollector(Collector):
    """Collector of `KVCStatistics`."""

    def __init__(self, cache: PromptCache) -> None:
        self._cache = cache

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Yield a counter for each entry."""
        statistics = self._cache.statistics
        errors = CounterMetricFamily("skymem_serve_cache_errors", "Misses of the cache by cause", labels=("cause",))
        for cause, count in statistics.errors.items():
            errors.add_metric((cause,), count)
        yield errors
        for name in (one.name for one in fields(statistics) if one.name != "errors"):
            words = f"{name[:-2]}_seconds" if name.endswith("_s") else name
            count = getattr(statistics, name)
            yield CounterMetricFamily(f"skymem_serve_cache_{words}", f"KVCStatistics.{name}", value=count)
