"""What is learned of durations: by properties, and how fast, how calmly."""

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skymemory.common.fit import FEW, HALF_S, Fit, SizedFit

anything = st.one_of(st.floats(), st.floats(0, 1e9), st.integers(-10, 1 << 70).map(float))


def line(fit: Fit, samples: int, round_s: float, megabyte_s: float, rng: random.Random, noise: float = 0.1) -> None:
    for _ in range(samples):
        size = rng.uniform(0.05, 3)
        fit.learn((1, size), (round_s + megabyte_s * size) * rng.uniform(1 - noise, 1 + noise))


def test_knows_nothing_at_first() -> None:
    fit = Fit(2)
    assert fit.duration_s((1, 5)) == 0
    assert (fit.samples, fit.knows) == (0, False)
    line(fit, FEW, 0.03, 0.02, random.Random(1))
    assert fit.knows


def test_the_first_cause_is_taken_first() -> None:
    fit = Fit(2)
    fit.learn((1, 1), 0.03)
    assert fit.costs == pytest.approx([0.03, 0.0])


@given(st.lists(st.tuples(anything, anything, anything, anything), max_size=60), st.floats(0, 1e6), st.floats(0, 1e6))
def test_whatever_it_is_told_more_work_takes_longer(samples: list[tuple[float, ...]], one: float, more: float) -> None:
    fit = Fit(3)
    for first, second, third, duration_s in samples:
        fit.learn((first, second, third), duration_s)
    assert all(cost >= 0 and math.isfinite(cost) for cost in fit.costs)
    assert 0 <= fit.duration_s((one, 1, 0)) <= fit.duration_s((one + more, 1, 0)) < math.inf


@given(st.floats(0.001, 1), st.floats(0.001, 1), st.integers(0, 1000))
def test_a_line_is_learned(round_s: float, megabyte_s: float, seed: int) -> None:
    fit = Fit(2)
    line(fit, 40, round_s, megabyte_s, random.Random(seed), noise=0)
    for size in (0.1, 1, 3):
        assert fit.duration_s((1, size)) == pytest.approx(round_s + megabyte_s * size)


@pytest.mark.parametrize("outlier_s", [5.0, 1e-5])
def test_one_that_surprises_changes_little(outlier_s: float) -> None:
    fit = Fit(2)
    line(fit, 40, 0.03, 0.02, random.Random(1))
    before_s = fit.duration_s((1, 1))
    fit.learn((1, 1), outlier_s)
    assert fit.duration_s((1, 1)) == pytest.approx(before_s, rel=0.2)


@pytest.mark.parametrize("factor", [0.1, 0.5, 2.0, 10.0])
def test_a_link_that_is_another_one_is_learned_anew(factor: float) -> None:
    fit, rng = Fit(2), random.Random(2)
    line(fit, 200, 0.03, 0.02, rng)
    line(fit, 8, 0.03 * factor, 0.02 * factor, rng)
    assert fit.duration_s((1, 1)) == pytest.approx(0.05 * factor, rel=0.3)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("share", "factor"), [(0.3, 3.0), (0.25, 50.0), (0.2, 0.3)])
def test_what_happens_mostly_is_what_counts(seed: int, share: float, factor: float) -> None:
    """Some take much longer, or far less."""
    fit, rng = Fit(2), random.Random(seed)
    off = []
    for sample in range(400):
        size = rng.uniform(0.05, 3)
        usual_s = 0.03 + 0.02 * size
        if sample >= 50:
            off.append(fit.duration_s((1, size)) / usual_s)
        fit.learn((1, size), usual_s * (factor if rng.random() < share else 1))
    assert statistics.median(abs(one - 1) for one in off) < 0.1


def test_what_cannot_be_is_passed_over() -> None:
    fit = Fit(2)
    for features, duration_s in (((0, 0), 1), ((-1, 1), 1), ((1, math.nan), 1), ((1, 1), -1), ((1, 1), math.inf), ((1e10, 1), 1)):
        fit.learn(features, duration_s)
    assert fit.samples == 0


def test_the_past_counts_less_after_a_pause() -> None:
    def after(pause_s: float) -> float:
        fit, rng = Fit(1), random.Random(4)
        for second in range(50):
            fit.learn((1,), rng.uniform(0.8, 1.2), second)
        fit.learn((1,), 1.25, 49 + pause_s)
        return fit.duration_s((1,))

    assert after(0) < after(HALF_S) < after(3 * HALF_S) < 1.25


def test_one_that_is_slow_after_a_pause_does_not_count_for_all() -> None:
    fit = Fit(2)
    line(fit, 40, 0.03, 0.02, random.Random(1))
    fit.learn((1, 1), 5.0, 1e9)
    assert fit.duration_s((1, 1)) < 0.1


def test_one_that_is_fast_after_a_pause_is_believed() -> None:
    fit = Fit(2)
    line(fit, 40, 30, 20, random.Random(1))
    fit.learn((1, 1), 0.05, HALF_S)
    assert fit.duration_s((1, 1)) == pytest.approx(0.05, rel=0.2)


def test_small_and_large_work_are_learned_apart() -> None:
    fit = SizedFit(2, large=100)
    assert not fit.knows(1)
    for _ in range(FEW):
        fit.learn(1, (1, 0.001), 0.5)
    assert (fit.knows(1), fit.knows(100)) == (True, False)
    assert fit.duration_s(100, (1, 0.001)) == pytest.approx(0.5), "as long as nothing better is known"
    for _ in range(FEW):
        fit.learn(100, (1, 1), 0.1)
    assert fit.knows(100)
    assert fit.duration_s(99, (1, 0.001)) == pytest.approx(0.5)
    assert fit.duration_s(100, (1, 1)) == pytest.approx(0.1)
    assert fit.samples == 2 * FEW
    large_only = SizedFit(1, large=100)
    for _ in range(FEW):
        large_only.learn(200, (2,), 0.4)
    assert large_only.knows(1)
    assert large_only.duration_s(1, (1,)) == pytest.approx(0.2)
