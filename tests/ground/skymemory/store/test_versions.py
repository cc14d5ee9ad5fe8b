"""Versions of values: they rise, whatever clocks do, and older ones are told."""

from hypothesis import given
from hypothesis import strategies as st

from skymemory.store.versions import Versions
from skymemory.wire.envelope import VALUE_VERSION_MAX

KEY, OTHER = bytes(32), bytes(31) + b"\1"


@given(clock=st.lists(st.integers(0, 1000), min_size=1, max_size=30))
def test_a_hosts_versions_rise_whatever_its_clock_does(clock: list[int]) -> None:
    times = iter(clock)
    versions = Versions(lambda: next(times))
    chosen = [versions.choose(KEY if number % 2 else OTHER) for number in range(len(clock))]
    assert chosen == sorted(set(chosen))
    assert all(version >= time for version, time in zip(chosen, clock, strict=True))


def test_what_is_put_over_a_value_that_was_seen_is_newer() -> None:
    """The host that put it has a clock that is ahead."""
    versions = Versions(lambda: 100)
    assert versions.seen(KEY, 5000)
    assert versions.choose(OTHER) == 100
    assert versions.choose(KEY) == 5001
    versions.stored(KEY, 5001)
    assert not versions.seen(KEY, 5000)
    assert versions.seen(KEY, 5001)
    assert versions.seen(KEY, 7000)
    assert not versions.seen(KEY, 5001)


def test_a_version_that_was_not_stored_makes_nothing_old() -> None:
    versions = Versions(lambda: 100)
    versions.stored(KEY, versions.choose(KEY))
    assert versions.choose(KEY) == 101
    assert versions.seen(KEY, 100)


def test_the_value_unused_for_the_longest_time_is_forgotten() -> None:
    versions = Versions(lambda: 100, values_max=2)
    keys = [bytes([number]) * 32 for number in range(3)]
    for key in (keys[0], keys[1], keys[0], keys[2]):
        assert versions.seen(key, 50)
    assert not versions.seen(keys[0], 49)
    assert not versions.seen(keys[2], 49)
    assert versions.seen(keys[1], 49)


def test_a_version_above_the_one_that_is_held_lifts_no_other() -> None:
    versions = Versions(lambda: 100)
    assert versions.choose_above(KEY, 50) == 100
    assert versions.choose_above(KEY, 5000) == 5001
    assert versions.choose(KEY) < 200  # it was not stored
    assert versions.choose_above(KEY, VALUE_VERSION_MAX - 1) == VALUE_VERSION_MAX
    assert versions.choose_above(KEY, VALUE_VERSION_MAX) is None
    versions.stored(KEY, VALUE_VERSION_MAX)
    assert versions.choose(OTHER) < 200
    assert versions.choose(KEY) == VALUE_VERSION_MAX  # once it is purged, a value may have the largest version again
    assert not versions.seen(KEY, VALUE_VERSION_MAX - 1)
    assert versions.choose(OTHER) < 200
