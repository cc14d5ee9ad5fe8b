"""Prometheus metrics of the gate: what the records in the state folder say of each point."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from skymemory.common.state_folder import default_folder
from skymemory.segments.gate import Gate, Verdict
from skymemory.segments.gate_file import RECORDS, read_file

_LABELS: Final = ("model", "codec", "strategy", "switch_layer")
_MODEL_CHARACTERS: Final = 16


class GateMetrics(Collector):
    """Collector that reads the host's records at every scrape. What cannot be read has no series."""

    def __init__(self, folder: Path | None = None) -> None:
        """Use a folder; the state folder by default."""
        self._folder = folder or default_folder()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the figures of all points."""
        is_open = GaugeMetricFamily("skymem_gate_open", "1 where segments may be linked.", labels=_LABELS)
        generation = GaugeMetricFamily("skymem_gate_generation", "Times that all evidence was dropped.", labels=_LABELS)
        bound = GaugeMetricFamily(
            "skymem_gate_agreement_bound_ratio", "Lower bound of the share of tokens that agree in checks.", labels=_LABELS
        )
        labels = (*_LABELS, "kind")
        prompts = GaugeMetricFamily(
            "skymem_gate_prompts", "Prompts of checks, of checks with shuffled keys and values, and canaries.", labels=labels
        )
        agreement = GaugeMetricFamily("skymem_gate_agreement_ratio", "Share of tokens whose likeliest one agrees.", labels=labels)
        kl = GaugeMetricFamily("skymem_gate_kl_nats", "Mean KL(full || linked) of a token.", labels=labels)
        covered = GaugeMetricFamily(
            "skymem_gate_covered", "Size of the largest prompts that the evidence is of.", labels=(*_LABELS, "what")
        )
        for verdict in self._verdicts():
            point = verdict.point
            values = (point.fingerprint[:_MODEL_CHARACTERS], point.codec, point.strategy, str(point.switch_layer))
            is_open.add_metric(values, verdict.open)
            generation.add_metric(values, verdict.generation)
            bound.add_metric(values, verdict.bound)
            for what, number in verdict.covered._asdict().items():
                covered.add_metric((*values, what), number)
            counts = verdict.counts
            for kind, tally in (("check", counts.checks), ("shuffled", counts.shuffled), ("canary", counts.canaries)):
                prompts.add_metric((*values, kind), tally.prompts)
                agreement.add_metric((*values, kind), tally.agreement)
                kl.add_metric((*values, kind), tally.mean_kl)
        yield from (is_open, generation, bound, covered, prompts, agreement, kl)

    def _verdicts(self) -> Iterator[Verdict]:
        """Yield what is decided about each point; of two tenants' records of one model, only the later one counts."""
        seen: set[str] = set()
        for path in sorted(self._folder.glob(RECORDS), key=_changed_s, reverse=True):
            gate = Gate("")
            try:
                fingerprint = gate.join(read_file(path))
            except (OSError, ValueError):  # who uses the record tells of it
                continue
            if fingerprint not in seen:
                seen.add(fingerprint)
                yield from gate.verdicts(fingerprint)


def _changed_s(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
