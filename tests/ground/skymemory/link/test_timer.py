"""When a request is sent again."""

from hypothesis import given
from hypothesis import strategies as st

from skymemory.link.timer import Timer

ROUND_TRIPS_S = st.lists(st.floats(1e-6, 10.0), min_size=1, max_size=50)


def test_without_a_round_trip_it_waits_for_long_and_doubles() -> None:
    timer = Timer()
    assert not timer.measured
    assert [timer.timeout_s(attempt) for attempt in range(4)] == [0.25, 0.5, 1.0, 1.0]


@given(ROUND_TRIPS_S)
def test_waits_lie_between_bounds_and_rise(round_trips_s: list[float]) -> None:
    timer = Timer()
    for rtt_s in round_trips_s:
        timer.measure(rtt_s)
    assert timer.measured
    assert min(round_trips_s) * (1 - 1e-9) <= timer.srtt_s <= max(round_trips_s) * (1 + 1e-9)
    waits_s = [timer.timeout_s(attempt) for attempt in range(5)]
    assert waits_s == sorted(waits_s)
    assert waits_s[0] >= 0.02
    assert waits_s[-1] <= 1.0


def test_a_steady_round_trip_is_waited_for_and_not_much_more() -> None:
    timer = Timer()
    for _ in range(100):
        timer.measure(0.1)
    assert 0.1 <= timer.timeout_s(0) < 0.101
