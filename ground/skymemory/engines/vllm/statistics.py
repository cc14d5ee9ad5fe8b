"""Statistics of the connector for vLLM: in its log, and in its /metrics."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.metrics import KVConnectorPromMetrics, KVConnectorStats
from vllm.v1.metrics.utils import create_metric_per_engine

_TIMES = {
    "lookup_seconds": "Time from vLLM's first question about a request's blocks to the answer.",
    "load_seconds": "Time that the load of a request's blocks took.",
    "save_seconds": "Time from the end of a step to the satellites' acknowledgement of its blocks.",
}
_COUNTS = {
    "found": "Blocks that were asked for and are in the sky.",
    "missing": "Blocks that were asked for and are not.",
    "declined": "Blocks in the sky that are computed faster than fetched.",
    "lookup_late": "Lookups that were not answered in time.",
    "loaded": "Blocks loaded.",
    "loaded_bytes": "Bytes loaded.",
    "saved": "Blocks stored.",
    "saved_bytes": "Bytes stored.",
    "save_failed": "Blocks that could not be stored.",
    "save_beyond": "Full blocks that were not stored, since the sky holds no more of one prompt.",
    "save_skipped": "Full blocks of finished requests that were not stored, since blocks before them took the room.",
}
_FAILED = "load_failed."
_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class SkyMemoryStatistics(KVConnectorStats):  # type: ignore[misc]  # vLLM is not installed where types are checked
    """Counts, and lists of seconds under names that end in `_seconds` (`tally.Tally.take`)."""

    def reset(self) -> None:
        """Drop all data."""
        self.data: dict[str, Any] = {}

    def is_empty(self) -> bool:
        """Return True if there is no data."""
        return not self.data

    def aggregate(self, other: KVConnectorStats) -> SkyMemoryStatistics:
        """Add another worker's data, or those of a later interval."""
        for name, value in other.data.items():
            self.data[name] = self.data[name] + value if name in self.data else value
        return self

    def reduce(self) -> dict[str, int | float]:
        """Return the data for the log: counts as they are, and number, mean and 99th percentile of times."""
        reduced: dict[str, int | float] = {}
        for name, value in sorted(self.data.items()):
            if isinstance(value, list):
                what = name.removesuffix("_seconds")
                reduced[f"{what}s"] = len(value)
                reduced[f"{what}_mean_ms"] = round(fmean(value) * 1e3, 3)
                reduced[f"{what}_p99_ms"] = round(sorted(value)[int(0.99 * (len(value) - 1) + 0.5)] * 1e3, 3)
            else:
                reduced[name] = value
        return reduced


class SkyMemoryMetrics(KVConnectorPromMetrics):  # type: ignore[misc]  # vLLM is not installed where types are checked
    """The same data as Prometheus metrics, `vllm:skymemory_*`."""

    def __init__(
        self, vllm_config: Any, metric_types: Any, labelnames: list[str], per_engine_labelvalues: dict[int, list[object]]
    ) -> None:
        super().__init__(vllm_config, metric_types, labelnames, per_engine_labelvalues)
        self._times = {
            name: self._per_engine(self._histogram_cls(f"vllm:skymemory_{name}", text, labelnames=labelnames, buckets=_BUCKETS))
            for name, text in _TIMES.items()
        }
        self._counts = {
            name: self._per_engine(self._counter_cls(f"vllm:skymemory_{_metric(name)}_total", text, labelnames=labelnames))
            for name, text in _COUNTS.items()
        }
        self._failed = self._counter_cls(
            "vllm:skymemory_load_failed_blocks_total",
            "Blocks that were to be loaded and are computed, by reason.",
            labelnames=[*labelnames, "reason"],
        )

    def observe(self, transfer_stats_data: dict[str, Any], engine_idx: int = 0) -> None:
        """Add the data of one interval."""
        for name, value in transfer_stats_data.items():
            if name in self._times:
                for duration_s in value:
                    self._times[name][engine_idx].observe(duration_s)
            elif name in self._counts:
                self._counts[name][engine_idx].inc(value)
            elif name.startswith(_FAILED):
                labels = [*self.per_engine_labelvalues[engine_idx], name.removeprefix(_FAILED)]
                self._failed.labels(*labels).inc(value)

    def _per_engine(self, metric: Any) -> dict[int, Any]:
        made: dict[int, Any] = create_metric_per_engine(metric, self.per_engine_labelvalues)
        return made


def _metric(name: str) -> str:
    """Return the name of a metric: counts are of blocks, unless the name says otherwise."""
    return name if name.endswith(("_bytes", "_late")) else f"{name}_blocks"
