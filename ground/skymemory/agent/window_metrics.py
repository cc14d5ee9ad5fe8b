"""Prometheus metrics of the window's state: how many servers are lost, and how many may be."""

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric

from skymemory.agent.window_watch import WindowWatch


class WindowMetrics:
    """A Prometheus collector of the window's state. While no satellite answers it tells of versions alone."""

    def __init__(self, registry: CollectorRegistry, window: Callable[[], WindowWatch | None]) -> None:
        """Register with a registry.

        Args:
            registry: The registry to register with.
            window: Function that returns what watches the window; None: no constellation is known.
        """
        self._window = window
        registry.register(self)

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics for Prometheus."""
        watch = self._window()
        if watch is None:
            return
        yield GaugeMetricFamily(
            "skymem_other_version_satellites",
            "Satellites that were asked and speak another version of the packets.",
            value=watch.other_versions,
        )
        if (state := watch.state) is None:
            return
        yield GaugeMetricFamily("skymem_window_servers", "Servers of the window.", value=state.servers)
        yield GaugeMetricFamily("skymem_window_servers_lost", "Servers of the window that do not answer.", value=len(state.lost))
        yield GaugeMetricFamily("skymem_window_parity", "Servers that may be lost: those with parity.", value=state.parity)
