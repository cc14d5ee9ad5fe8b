"""Quantiles from the agent's histogram."""

from bisect import bisect_left
from math import inf

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram

from skymemory.agent.watch.latency import HISTOGRAM, Latency, quantile

BOUNDS = [0.001, 0.01, 0.1, 1.0]


def test_gets_since_the_last_question() -> None:
    registry = CollectorRegistry()
    latency = Latency(registry)
    assert latency() is None  # nobody counts yet
    seconds = Histogram(HISTOGRAM, "Calls.", ["operation"], buckets=BOUNDS, registry=registry)
    seconds.labels("put").observe(0.5)
    assert latency() is None
    for _ in range(100):
        seconds.labels("get").observe(0.05)
    found = latency()
    assert found is not None
    assert 0.01 < found[0] < found[1] <= 0.1
    assert latency() is None  # none since
    seconds.labels("get").observe(0.5)
    seconds.labels("get").observe(50.0)
    found = latency()
    assert found is not None
    assert 0.1 < found[0] <= 1.0
    assert found[1] == 1.0  # nothing is known of what is above the last bound


@given(st.lists(st.floats(0, 10), min_size=1, max_size=60), st.floats(0.01, 1))
def test_a_quantile_is_in_the_bucket_of_its_value(values: list[float], share: float) -> None:
    buckets = {bound: float(sum(value <= bound for value in values)) for bound in [*BOUNDS, inf]}
    exact = sorted(values)[max(0, -int(-share * len(values) // 1) - 1)]
    at = bisect_left(BOUNDS, exact)
    low, high = ([0.0, *BOUNDS])[at], ([*BOUNDS, BOUNDS[-1]])[at]
    assert low - 1e-9 <= quantile(buckets, share) <= high + 1e-9
