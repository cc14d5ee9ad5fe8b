"""Prometheus metrics of the sky, from the survey that the page needs anyway: no satellite is asked for them.

All hosts under one sky tell the same of it. Satellites' own counters begin anew when they restart, so growth is added up here.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric


@dataclass(frozen=True, slots=True)
class SkyTotals:
    """Sums over the satellites that answered when they were asked last."""

    answering: int = 0
    silent: int = 0
    """Satellites that did not answer."""
    unasked: int = 0
    """Satellites that were not asked yet: of a large constellation, some at a time are asked."""
    chunks: int = 0
    bytes: int = 0
    used_bytes: int = 0
    """Bytes of their stores that are in use: chunks, entries, and what is lost between them."""
    store_bytes: int = 0
    evictions: int = 0
    """Evictions since the survey began."""
    degraded: int = 0
    """Degraded blocks that satellites have found since the survey began."""
    repaired: int = 0
    """Chunks that satellites have rebuilt since the survey began."""


_GAUGES: Final = {
    "chunks": "Chunks that the satellites hold which answer.",
    "bytes": "Bytes of the chunks that these satellites hold.",
    "used_bytes": "Bytes of the stores of these satellites that are in use.",
    "store_bytes": "Bytes of the stores of these satellites.",
}
_COUNTERS: Final = {
    "evictions": "Chunks that satellites have evicted since the survey began.",
    "degraded": "Degraded blocks that satellites have found since the survey began.",
    "repaired": "Chunks that satellites have rebuilt since the survey began.",
}


class SurveyMetrics:
    """A Prometheus collector of the newest survey. Without a constellation it has nothing to tell."""

    def __init__(self, registry: CollectorRegistry, totals: Callable[[], SkyTotals | None]) -> None:
        """Register with a registry.

        Args:
            registry: The registry to register with.
            totals: Function that returns the sums of the newest survey; None: there was none.
        """
        self._totals = totals
        registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics for Prometheus."""
        totals = self._totals()
        if totals is None:
            return
        satellites = GaugeMetricFamily(
            "skymem_sky_satellites",
            "Satellites of the constellation, by what they said when they were asked last.",
            labels=["state"],
        )
        for state in ("answering", "silent", "unasked"):
            satellites.add_metric([state], getattr(totals, state))
        yield satellites
        for name, text in _GAUGES.items():
            yield GaugeMetricFamily(f"skymem_sky_{name}", text, value=getattr(totals, name))
        for name, text in _COUNTERS.items():
            yield CounterMetricFamily(f"skymem_sky_{name}", text, value=getattr(totals, name))
