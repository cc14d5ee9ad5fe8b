"""Durations of recent gets from the agent's own histogram: the page shows what Prometheus sees."""

from math import inf, isinf
from typing import Final

from prometheus_client import CollectorRegistry

HISTOGRAM: Final = "skymem_store_seconds"
OPERATION: Final = "get"


class Latency:
    """Reads the histogram's buckets; what was added since the last reading are the gets of late."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._before: dict[float, float] = {}

    def __call__(self) -> tuple[float, float] | None:
        """p50 and p99 in seconds of the gets since the last call; None: there were none."""
        now = self._buckets()
        added = {bound: count - self._before.get(bound, 0.0) for bound, count in now.items()}
        self._before = now
        if not added or added[max(added)] <= 0:
            return None
        return quantile(added, 0.5), quantile(added, 0.99)

    def _buckets(self) -> dict[float, float]:
        """Upper bounds, and how many were not above."""
        found: dict[float, float] = {}
        for metric in self._registry.restricted_registry([f"{HISTOGRAM}_bucket"]).collect():
            for sample in metric.samples:
                if sample.name.endswith("_bucket") and sample.labels.get("operation") == OPERATION:
                    found[float(sample.labels["le"])] = sample.value
        return found


def quantile(buckets: dict[float, float], share: float) -> float:
    """Return a quantile as Prometheus does: linear within a bucket, and the last bound for what is above it.

    Args:
        buckets: Upper bounds, the last one infinite, and how many were not above; not all 0.
    """
    wanted = share * buckets[inf]
    low, below = 0.0, 0.0
    for bound in sorted(buckets):
        count = buckets[bound]
        if count >= wanted and count > below:
            return low if isinf(bound) else low + (bound - low) * (wanted - below) / (count - below)
        low, below = (low if isinf(bound) else bound), count
    return low
