"""`Meter`: counters of the gateway for Prometheus, as plain numbers, because every command passes here."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

BUCKETS_S: Final = (0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Meter(Collector):
    """Counters of one gateway. Commands that do not exist are counted as `unknown`."""

    def __init__(self) -> None:
        """Begin at zero."""
        self._durations: dict[str, list[int]] = {}
        self._sums_s: dict[str, float] = {}
        self._errors: Counter[str] = Counter()
        self.connections_total = 0
        self.rejected_total = 0
        self.received_bytes = 0
        self.sent_bytes = 0
        self._connections: Callable[[], int] = int
        self._memory_bytes: Callable[[], int] = int

    def gauges(self, connections: Callable[[], int], memory_bytes: Callable[[], int]) -> None:
        """Set functions that return the number of clients, and the memory in use."""
        self._connections, self._memory_bytes = connections, memory_bytes

    @property
    def commands(self) -> int:
        """Number of commands so far."""
        return sum(sum(counts) for counts in self._durations.values())

    def done(self, command: str, duration_s: float) -> None:
        """Count a command that was answered."""
        counts = self._durations.get(command)
        if counts is None:
            counts = self._durations[command] = [0] * (len(BUCKETS_S) + 1)
            self._sums_s[command] = 0.0
        counts[bisect_left(BUCKETS_S, duration_s)] += 1
        self._sums_s[command] += duration_s

    def failed(self, kind: str) -> None:
        """Count an error that a client was told, or its end.

        Kinds: the error's first word, and `protocol`, `browser`, `stalled`, `crowded`, `memory`.
        """
        self._errors[kind] += 1

    def describe(self) -> list[Metric]:
        """Return nothing: names are known from `collect`."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield all counters."""
        commands = CounterMetricFamily("skymem_resp_commands", "Commands of Redis clients.", labels=["command"])
        durations = HistogramMetricFamily(
            "skymem_resp_command_duration_seconds", "From a command's arrival to its answer.", labels=["command"]
        )
        for command, counts in sorted(self._durations.items()):
            total, buckets = 0, []
            for count, bound in zip(counts, (*(str(bound) for bound in BUCKETS_S), "+Inf"), strict=True):
                total += count
                buckets.append((bound, total))
            commands.add_metric([command], total)
            durations.add_metric([command], buckets, sum_value=self._sums_s[command])
        errors = CounterMetricFamily("skymem_resp_errors", "Errors that clients were told.", labels=["kind"])
        for kind, count in sorted(self._errors.items()):
            errors.add_metric([kind], count)
        yield from (commands, durations, errors)
        yield GaugeMetricFamily("skymem_resp_connections", "Clients that are connected.", self._connections())
        yield CounterMetricFamily("skymem_resp_connections_accepted", "Clients that were let in.", self.connections_total)
        yield CounterMetricFamily("skymem_resp_connections_rejected", "Clients that were too many.", self.rejected_total)
        yield CounterMetricFamily("skymem_resp_received_bytes", "From clients.", self.received_bytes)
        yield CounterMetricFamily("skymem_resp_sent_bytes", "To clients.", self.sent_bytes)
        yield GaugeMetricFamily("skymem_resp_memory_bytes", "Of commands and values on their way.", self._memory_bytes())
