"""`Meter`: the counters of the gateway for Prometheus, over all its tenants."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from skymemory.agent.gateway.tally import BUCKETS_S, Tally


class Meter(Collector):
    """Sums of the tallies of one gateway, for who operates it."""

    def __init__(self, tallies: Iterable[Tally], connections: Callable[[], int], memory_bytes: Callable[[], int]) -> None:
        """Begin at zero.

        Args:
            tallies: Numbers of each tenant, and of clients that are none's.
            connections: Returns the number of clients.
            memory_bytes: Returns the memory in use.
        """
        self._tallies = list(tallies)
        self._connections, self._memory_bytes = connections, memory_bytes
        self.accepted = 0
        """Clients that were let in."""
        self.rejected = 0
        """Clients that were too many."""

    @property
    def received_bytes(self) -> int:
        """Bytes from clients."""
        return sum(one.received_bytes for one in self._tallies)

    @property
    def sent_bytes(self) -> int:
        """Bytes to clients."""
        return sum(one.sent_bytes for one in self._tallies)

    def sample(self, now_s: float) -> None:
        """Note the numbers of all tenants as they are now, for their rates."""
        for one in self._tallies:
            one.sample(now_s)

    def describe(self) -> list[Metric]:
        """Return nothing: names are known from `collect`."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield all counters."""
        durations: dict[str, list[int]] = {}
        sums_s: dict[str, float] = {}
        errors: Counter[str] = Counter()
        for one in self._tallies:
            for command, counts in one.durations.items():
                before = durations.get(command)
                durations[command] = counts if before is None else [sum(pair) for pair in zip(before, counts, strict=True)]
                sums_s[command] = sums_s.get(command, 0.0) + one.sums_s[command]
            errors += one.errors
        yield from _commands(durations, sums_s)
        failed = CounterMetricFamily("skymem_resp_errors", "Errors that clients were told.", labels=["kind"])
        for kind, count in sorted(errors.items()):
            failed.add_metric([kind], count)
        yield failed
        yield GaugeMetricFamily("skymem_resp_connections", "Clients that are connected.", self._connections())
        yield CounterMetricFamily("skymem_resp_connections_accepted", "Clients that were let in.", self.accepted)
        yield CounterMetricFamily("skymem_resp_connections_rejected", "Clients that were too many.", self.rejected)
        yield CounterMetricFamily("skymem_resp_received_bytes", "From clients.", self.received_bytes)
        yield CounterMetricFamily("skymem_resp_sent_bytes", "To clients.", self.sent_bytes)
        hits, misses = sum(one.hits for one in self._tallies), sum(one.misses for one in self._tallies)
        yield CounterMetricFamily("skymem_resp_keyspace_hits", "Reads that found a value.", hits)
        yield CounterMetricFamily("skymem_resp_keyspace_misses", "Reads that found none.", misses)
        yield GaugeMetricFamily("skymem_resp_memory_bytes", "Of commands and values on their way.", self._memory_bytes())


def _commands(durations: dict[str, list[int]], sums_s: dict[str, float]) -> Iterator[Metric]:
    commands = CounterMetricFamily("skymem_resp_commands", "Commands of Redis clients.", labels=["command"])
    taken = HistogramMetricFamily(
        "skymem_resp_command_duration_seconds", "From a command's arrival to its answer.", labels=["command"]
    )
    for command, counts in sorted(durations.items()):
        total, buckets = 0, []
        for count, bound in zip(counts, (*(str(bound) for bound in BUCKETS_S), "+Inf"), strict=True):
            total += count
            buckets.append((bound, total))
        commands.add_metric([command], total)
        taken.add_metric([command], buckets, sum_value=sums_s[command])
    yield from (commands, taken)
