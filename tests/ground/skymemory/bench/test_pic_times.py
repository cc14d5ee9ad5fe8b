"""What follows from times: crossings, break-even points, aims."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skymemory.bench.pic_times import (
    AUTO,
    FULL,
    PREFIX,
    Link,
    Point,
    Run,
    aims,
    at_rate,
    break_even,
    crossing,
    curves,
    delayed_sentence,
    delayed_share,
)

RATES = (5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
SERIAL_LEGO = "serial lego:16"
LEGO = "lego:16, m = 0"
BLEND = "blend:15, m = 1"

times = st.floats(1e-3, 1e3)
curve_times = st.lists(times, min_size=len(RATES), max_size=len(RATES))


def point(rate: float, codec: str = "raw", round_trip_ms: float = 30, **seconds: float) -> Point:
    names = {"full": FULL, "prefix": PREFIX, "serial": SERIAL_LEGO, "lego": LEGO, "blend": BLEND, "auto": AUTO}
    runs = {names[word]: [Run(value, value, 0, "what was taken")] for word, value in seconds.items()}
    return Point(Link(rate, round_trip_ms), codec, runs)


def loaded(rate: float, **more: float) -> Point:
    """A prefill of 2 s, and 16 Mbit to load; half of what computes after a load fits beside it."""
    load_s = 16 / rate
    words = {"full": 2.0, "prefix": load_s, "serial": load_s + 0.5, "lego": max(load_s, 0.5), "blend": max(load_s, 0.8)}
    best = min(words["full"], words["lego"], words["blend"])
    return point(rate, **{**words, "auto": best, **more})


@given(curve_times, curve_times)
def test_from_a_crossing_on_the_first_is_not_slower(first, other) -> None:
    rate = crossing(RATES, first, other)
    if rate is None:
        assert first[-1] > other[-1]
        return
    assert RATES[0] <= rate <= RATES[-1]
    for at, one, two in zip(RATES, first, other, strict=True):
        assert at < rate or one <= two * (1 + 1e-9)
    if rate > RATES[0]:
        assert at_rate(rate, RATES, first) == pytest.approx(at_rate(rate, RATES, other), rel=1e-6)


@given(curve_times, curve_times, st.floats(1e-2, 1e2))
def test_a_crossing_does_not_depend_on_units(first, other, factor) -> None:
    scaled = crossing([rate * factor for rate in RATES], [factor * one for one in first], [factor * one for one in other])
    rate = crossing(RATES, first, other)
    assert (scaled is None) == (rate is None)
    assert rate is None or scaled == pytest.approx(rate * factor, rel=1e-6)


@given(curve_times, st.floats(1, 2000))
def test_times_between_rates_lie_between_their_times(seconds, rate) -> None:
    found = at_rate(rate, RATES, seconds)
    assert min(seconds) * (1 - 1e-9) <= found <= max(seconds) * (1 + 1e-9)
    assert at_rate(RATES[3], RATES, seconds) == pytest.approx(seconds[3])


def test_a_load_breaks_even_where_it_takes_as_long_as_a_prefill() -> None:
    [row] = break_even([loaded(rate) for rate in RATES])
    assert (row["codec"], row["round_trip_ms"]) == ("raw", 30)
    rates = row["rates_mbit_s"]
    assert FULL not in rates
    assert AUTO not in rates
    assert rates[PREFIX] == pytest.approx(8, rel=0.01)
    assert rates[SERIAL_LEGO] == pytest.approx(16 / 1.5, rel=0.1)
    assert rates[LEGO] == pytest.approx(8, rel=0.01)


def test_what_is_never_or_always_faster_says_so() -> None:
    [row] = break_even([loaded(rate, prefix=3.0, lego=0.1) for rate in RATES])
    assert row["rates_mbit_s"][PREFIX] is None
    assert row["rates_mbit_s"][LEGO] == RATES[0]


def test_each_codec_and_round_trip_has_its_curve() -> None:
    points = [loaded(rate) for rate in (50.0, 5.0)] + [point(5, "int8", full=1), point(5, round_trip_ms=5, full=1), loaded(0.001)]
    points[-1].link = Link(0, 0)
    [curve] = curves(points)
    assert [one.link.rate_mbit_s for one in curve.points] == [5, 50]
    assert (curve.codec, curve.round_trip_ms) == ("raw", 30)


def found(points: list[Point]) -> dict[str, dict[str, object]]:
    return {one["aim"]: one for one in aims(points)}


def unlimited(**seconds: float) -> Point:
    one = point(0, **seconds)
    one.link = Link(0, 0)
    return one


def test_aims_that_are_met() -> None:
    points = [loaded(rate) for rate in RATES]
    points.append(unlimited(full=2.0, prefix=0.1, serial=0.5, lego=0.4, blend=0.8, auto=0.41))
    said = aims(points)
    assert [one["met"] for one in said] == [True, False, True, True]
    assert [one["ratio"] for one in said] == [1.02, pytest.approx(1.33, abs=0.02), 2.5, 5.0]
    assert "9 of 9 points" in said[0]["where"]


def test_aims_that_are_missed() -> None:
    points = [loaded(rate) for rate in RATES]
    points[2] = loaded(20.0, auto=1.2)  # 1.5 times the 0.8 s of lego
    points.append(unlimited(full=2.0, prefix=0.1, serial=0.6, lego=0.6, blend=1.0, auto=0.6))
    said = aims(points)
    assert [one["met"] for one in said] == [False, False, False, False]
    assert said[0]["ratio"] == 1.5
    assert "20 Mbit/s" in said[0]["where"]
    assert "what was taken (1 x)" in said[0]["where"]


def test_the_best_open_choice_is_what_auto_may_take() -> None:
    one = point(10, full=3.0, prefix=0.1, serial=0.2, lego=2.0, blend=2.5, auto=2.2)
    assert one.best_open() == LEGO
    assert one.auto_ratio == pytest.approx(1.1)
    one.runs[LEGO] += [Run(9.0, 9.0), Run(8.0, 8.0)]
    assert one.best_open() == BLEND
    assert math.isclose(one.row()["ways"][LEGO]["median_s"], 8.0)


def test_what_other_processes_took_is_told() -> None:
    calm, disturbed = Run(10.0, 10.0, 0.0), Run(30.0, 10.0, 20.0)
    assert not calm.is_disturbed
    assert disturbed.is_disturbed
    share = delayed_share([Point(Link(5, 5), "raw", {FULL: [calm], AUTO: [disturbed]})])
    assert share == pytest.approx(0.5)
    assert delayed_sentence({"delayed_share": share}) == "Other processes had the processors for 50 % of the time."
    assert delayed_sentence({"delayed_share": 0.01}) == ""
