"""Counts of this host's agent, for `skymem status`: read from its metrics, if it runs and serves HTTP."""

import urllib.request
from http.client import HTTPException
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families

from skymemory.agent.activity import OUTCOMES, Counts
from skymemory.common.state_folder import agent_socket, http_record

TIMEOUT_S: Final = 2.0
_BYTES_MAX: Final = 4 << 20
_OPENER: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Opener that asks this host itself, whatever $http_proxy says."""


def agent_counts() -> Counts | None:
    """Return the counts of this host's agent; None if none runs, or it serves no HTTP."""
    try:
        url = http_record(agent_socket()).read_text(encoding="utf-8")
        if not url.startswith("http://"):
            return None
        with _OPENER.open(f"{url}/metrics", timeout=TIMEOUT_S) as answer:
            text = answer.read(_BYTES_MAX).decode()
        samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    except (OSError, ValueError, LookupError, HTTPException):  # the agent has gone, or something else has its port
        return None
    found: dict[str, float] = dict.fromkeys(OUTCOMES, 0)
    asked = [sample for sample in samples if sample.name == "skymem_asked_blocks_total"]
    for sample in asked:
        if sample.labels.get("outcome") in found:
            found[sample.labels["outcome"]] += sample.value
    if not asked:
        return None
    tokens = sum(sample.value for sample in samples if sample.name == "skymem_saved_tokens_total")
    return Counts(**{name: int(value) for name, value in found.items()}, tokens=int(tokens))


def told(counts: Counts) -> dict[str, Any]:
    """Return the counts for JSON, with hit rate and delivery; both are None if no block was asked for."""
    return {
        "asked": counts.asked,
        **{name: getattr(counts, name) for name in OUTCOMES},
        "hit_rate": counts.hit_rate,
        "delivery": counts.delivery,
        "tokens": counts.tokens,
    }


def in_words(counts: Counts | None) -> str:
    """Return the counts as one or two lines for people."""
    if counts is None:
        return "no agent of this host tells what engines and clients asked for (`skymem agent --http-port 8090`)"
    believed = counts.hit + counts.not_delivered
    return (
        f"asked of this host's agent: {counts.asked} blocks, hit rate {_percent(counts.hit_rate)}; {counts.not_found} not found, "
        f"{counts.not_fetched} found and not fetched\n"
        f"believed to be in the sky and fetched: {believed} blocks, delivery {_percent(counts.delivery)}; "
        f"{counts.not_delivered} did not come"
    )


def _percent(share: float | None) -> str:
    # Round down: 100 % means that all blocks came.
    return "-" if share is None else f"{int(1000 * share) / 10:g} %"
