"""Stragglers in virtual time: whoever takes the first answers of all does not wait for them."""

import pytest

from skymemory.twin.native_twin import TwinError
from skymemory.twin.stragglers import WAYS, Stragglers, compare


def test_the_first_of_all_wait_for_nobody() -> None:
    report = compare(Stragglers(gets=300))
    uncoded, hedged, first = report["ways"]
    assert [way["name"] for way in report["ways"]] == [way.name for way in WAYS]
    assert uncoded["calm"]["p50_ms"] == uncoded["calm"]["most_ms"] > 0
    # A healthy sky sends no parity, only a word to its servers that the block is used
    assert hedged["calm"] == {**uncoded["calm"], "share_of_bytes": pytest.approx(uncoded["calm"]["share_of_bytes"], rel=0.01)}
    assert first["calm"]["share_of_bytes"] == pytest.approx(1.2 * uncoded["calm"]["share_of_bytes"], rel=0.01)
    assert uncoded["stragglers"]["p99_ms"] > uncoded["calm"]["p99_ms"] + 79.99
    assert first["stragglers"]["p50_ms"] < uncoded["calm"]["p50_ms"] + 1
    assert first["stragglers"]["p99_ms"] < uncoded["calm"]["p99_ms"] + 80


def test_what_repeats_is_equal() -> None:
    assert compare(Stragglers(gets=20)) == compare(Stragglers(gets=20))


def test_a_get_that_does_not_come_is_told() -> None:
    with pytest.raises(TwinError, match=r"no code: .* of 102 gets did not bring the block"):
        compare(Stragglers(gets=2, share=1.0, delay_ms=6000))
