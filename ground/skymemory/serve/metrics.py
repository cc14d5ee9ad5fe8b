"""Counters of the server, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from skymemory.segments.gate_metrics import GateMetrics
from skymemory.serve.answers import Usage
from skymemory.serve.api_keys import ApiKey
from skymemory.serve.job_queue import JobQueue
from skymemory.serve.prompt_cache import PromptCache

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


class RequestMetrics:
    """Counters of requests and tokens, of one API key or of all."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Begin at zero, with counters of this registry."""
        self.registry = registry
        self._requests = Counter(
            "skymem_serve_requests_total", "Requests to the API, by path and status", ("path", "status"), registry=registry
        )
        self._prompt_tokens = Counter("skymem_serve_prompt_tokens_total", "Tokens of prompts", registry=registry)
        self._cached_tokens = Counter(
            "skymem_serve_cached_tokens_total",
            "Tokens of prompts that came from the sky, or from a prompt beside",
            registry=registry,
        )
        self._linked_tokens = Counter(
            "skymem_serve_linked_tokens_total", "Tokens of segments that were linked", registry=registry
        )
        self._recomputed_tokens = Counter(
            "skymem_serve_recomputed_tokens_total", "Tokens of linked segments that were computed again", registry=registry
        )
        self._completion_tokens = Counter("skymem_serve_completion_tokens_total", "Tokens of answers", registry=registry)
        self._unknown_parameters = Counter(
            "skymem_serve_unknown_parameters_total",
            "Parameters of requests that are unknown and were left out",
            registry=registry,
        )
        self._cancelled = Counter(
            "skymem_serve_cancelled_total", "Generations whose client went away before the end", registry=registry
        )
        self._first_token = Histogram(
            "skymem_serve_time_to_first_token_seconds",
            "From the request's acceptance to its first text",
            buckets=_SECONDS,
            registry=registry,
        )
        self._duration = Histogram(
            "skymem_serve_request_seconds", "From the request's acceptance to its end", buckets=_SECONDS, registry=registry
        )

    def answered(self, path: str, status: int) -> None:
        """Count a request."""
        self._requests.labels(path, str(status)).inc()

    def left_out(self, count: int) -> None:
        """Count parameters that are unknown."""
        self._unknown_parameters.inc(count)

    def began(self, first_s: float) -> None:
        """Count a generation that has begun to answer."""
        self._first_token.observe(first_s)

    def generated(self, usage: Usage, duration_s: float, *, whole: bool) -> None:
        """Count a generation that has ended; `whole`: it came to its end."""
        self._duration.observe(duration_s)
        self._prompt_tokens.inc(usage.prompt_tokens)
        self._cached_tokens.inc(usage.cached_tokens)
        self._linked_tokens.inc(usage.linked_tokens)
        self._recomputed_tokens.inc(usage.recomputed_tokens)
        self._completion_tokens.inc(usage.completion_tokens)
        self._cancelled.inc(not whole)


class ServeMetrics:
    """Counters of all requests, and of those of each API key. Those of the cache are read when they are asked for."""

    def __init__(self) -> None:
        """Begin at zero."""
        self.registry = CollectorRegistry()
        """Registry of all numbers."""
        self._all = RequestMetrics(self.registry)
        self._own: dict[ApiKey, RequestMetrics] = {}

    def of(self, key: ApiKey | None) -> tuple[RequestMetrics, ...]:
        """Return the counters to which requests with a key belong; None: they came without one."""
        return (self._all,) if key is None or key.is_operator else (self._all, self._own_of(key))

    def seen_by(self, key: ApiKey | None) -> CollectorRegistry:
        """Return the registry of what a key may see; None: no key is asked for."""
        return self.registry if key is None or key.is_operator else self._own_of(key).registry

    def _own_of(self, key: ApiKey) -> RequestMetrics:
        found = self._own.get(key)
        if found is None:
            found = self._own[key] = RequestMetrics(CollectorRegistry())
        return found

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
