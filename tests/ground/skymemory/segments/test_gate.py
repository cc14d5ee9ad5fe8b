import json
import math
import random
from dataclasses import dataclass
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skymemory.segments.evidence import LARGEST, UNSIZED, Point, PromptSize, Sample, read_record
from skymemory.segments.gate import (
    PROMPTS_MIN,
    WINDOW,
    Gate,
    is_canary,
    wilson_bounds,
)

MODEL = "ab" * 32
POINT = Point(MODEL, "int8", "blend:15", 2)
GOOD, BAD, RUINED = Sample(0.001, 1.0), Sample(4.0, 0.0), Sample(2.0, 0.1)
SIZE = PromptSize(segments=6, segment_tokens=32, tokens=197)


def opened(gate: Gate, point: Point = POINT) -> Gate:
    for _ in range(PROMPTS_MIN):
        gate.checked(point, GOOD, SIZE)
    for _ in range(40):
        gate.checked_shuffled(point, RUINED)
    assert gate.is_open(point)
    return gate


# ---- bounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hits", "cases", "lower", "upper"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_bounds_are_those_of_the_literature(hits, cases, lower, upper) -> None:
    """Compare with the score intervals without correction in table I of Newcombe, Statistics in Medicine 17 (1998)."""
    assert wilson_bounds(hits / cases, cases, 1.959964) == pytest.approx((lower, upper), abs=5e-5)


def test_one_sided_bounds_follow_from_their_equation() -> None:
    for hits, cases in ((198, 200), (197, 200), (200, 200), (0, 7), (20, 40)):
        for bound in wilson_bounds(hits / cases, cases):
            if 0 < bound < 1:
                assert abs(hits / cases - bound) == pytest.approx(1.6448536269514722 * math.sqrt(bound * (1 - bound) / cases))
    assert wilson_bounds(0.99, 200)[0] == pytest.approx(0.9702, abs=1e-4)
    assert wilson_bounds(0.985, 200)[0] < 0.97
    assert wilson_bounds(0.5, 0) == (0.0, 1.0)


# ---- opening ---------------------------------------------------------------------------------------------------------


def test_a_point_opens_with_200_prompts_and_not_with_199() -> None:
    gate = Gate("a")
    for _ in range(40):
        gate.checked_shuffled(POINT, RUINED)
    for _ in range(199):
        gate.checked(POINT, GOOD, SIZE)
    assert not gate.is_open(POINT)
    assert gate.verdict(POINT).why == "199 of 200 prompts were checked"
    gate.checked(POINT, GOOD, SIZE)
    assert gate.is_open(POINT)
    assert gate.verdict(POINT).why == "open"


def test_two_wrong_prompts_of_200_are_allowed_and_three_are_not() -> None:
    gate = Gate("a")
    for _ in range(40):
        gate.checked_shuffled(POINT, RUINED)
    for sample in [Sample(0.5, 0.0)] * 2 + [GOOD] * 198:
        gate.checked(POINT, sample, SIZE)
    assert gate.is_open(POINT)
    gate.checked(POINT, Sample(0.5, 0.0), SIZE)
    assert not gate.is_open(POINT)
    assert "98.51% of the tokens of 201 prompts agree" in gate.verdict(POINT).why


def test_a_large_kl_keeps_a_point_closed_though_all_tokens_agree() -> None:
    gate = Gate("a")
    for _ in range(300):
        gate.checked(POINT, Sample(0.0101, 1.0), SIZE)
        gate.checked_shuffled(POINT, RUINED)
    assert not gate.is_open(POINT)
    assert "KL 0.0101" in gate.verdict(POINT).why


@pytest.mark.parametrize("kl", [math.nan, math.inf, -math.inf])
def test_one_kl_that_is_no_number_keeps_a_point_closed(kl) -> None:
    gate = Gate("a")
    for sample in [Sample(kl, 1.0)] + [GOOD] * 5000:
        gate.checked(POINT, sample, SIZE)
        gate.checked_shuffled(POINT, RUINED)
    assert not gate.is_open(POINT)
    again = Gate("b")
    again.join(gate.record(MODEL, shared=True))
    assert not again.is_open(POINT)


def test_an_agreement_that_is_no_number_counts_as_none() -> None:
    assert Sample(0.0, math.nan).loss == 1.0
    assert Sample(-1e-9, 1.0).finite_kl == 0.0


@pytest.mark.parametrize(
    "other",
    [
        Point("cd" * 32, "int8", "blend:15", 2),
        Point(MODEL, "int4", "blend:15", 2),
        Point(MODEL, "int8", "blend:5", 2),
        Point(MODEL, "int8", "naive", 2),
        Point(MODEL, "int8", "blend:15", 1),
        Point(MODEL, "int8", "blend:15", 2, block_tokens=64),
    ],
)
def test_evidence_for_one_point_opens_no_other(other) -> None:
    gate = opened(Gate("a"))
    assert not gate.is_open(other)
    assert gate.verdict(other).why == "0 of 200 prompts were checked"
    assert [verdict.point for verdict in gate.verdicts(MODEL)] == [POINT]


def test_prompts_that_cannot_tell_open_nothing() -> None:
    gate = Gate("a")
    for _ in range(500):
        gate.checked(POINT, GOOD, SIZE)
    assert gate.verdict(POINT).why == "0 of 40 prompts were checked with shuffled keys and values"
    for _ in range(39):
        gate.checked_shuffled(POINT, RUINED)
    assert not gate.is_open(POINT)
    blind = Gate("b")
    for _ in range(500):
        blind.checked(POINT, GOOD, SIZE)
        blind.checked_shuffled(POINT, Sample(0.02, 0.96))
    assert blind.verdict(POINT).why.startswith("the prompts cannot tell: 96.00% ")
    assert not blind.is_open(POINT)


def test_a_point_is_open_for_prompts_like_those_of_its_evidence() -> None:
    gate = opened(Gate("a"))
    assert gate.verdict(POINT).covered == SIZE
    assert gate.is_open(POINT, SIZE)
    assert gate.is_open(POINT, PromptSize(1, 1, 2))
    for beyond in (PromptSize(28, 32, 197), PromptSize(6, 33, 197), PromptSize(6, 32, 198), PromptSize(28, 32, 901)):
        assert not gate.is_open(POINT, beyond)


def test_a_few_large_prompts_are_no_evidence_for_large_ones() -> None:
    gate = opened(Gate("a"))
    many, long = PromptSize(28, 10, 300), PromptSize(2, 500, 2000)
    for number in range(1, LARGEST):
        gate.checked(POINT, GOOD, many)
        gate.checked(POINT, GOOD, long)
        assert gate.verdict(POINT).covered == SIZE._replace(tokens=300 if 2 * number >= LARGEST else 197)
    gate.checked(POINT, GOOD, many)
    assert gate.verdict(POINT).covered == PromptSize(28, 32, 300)
    gate.checked(POINT, GOOD, long)
    assert gate.verdict(POINT).covered == PromptSize(28, 500, 2000)


def test_hosts_cover_together_what_their_prompts_reach() -> None:
    one, other = opened(Gate("a")), Gate("b")
    for gate in one, other:
        for _ in range(LARGEST // 2):
            gate.checked(POINT, GOOD, PromptSize(28, 32, 901))
    assert not one.is_open(POINT, PromptSize(28, 32, 901))
    for _ in range(3):
        one.join(other.record(MODEL, shared=True))
    assert one.is_open(POINT, PromptSize(28, 32, 901))
    again = Gate("c")
    again.join(one.record(MODEL, shared=True))
    assert again.verdicts(MODEL) == one.verdicts(MODEL)


def test_what_an_earlier_version_checked_counts_for_nothing_and_its_canaries_do() -> None:
    gate = opened(Gate("a"))
    gate.canary(POINT, BAD)
    record = json.loads(gate.record(MODEL, shared=False))
    for point in record["points"]:
        del point["evidence"]["hosts"]["a"]["sizes"]
    after = Gate("b")
    after.join(json.dumps({**record, "version": 1}).encode())
    verdict = after.verdict(POINT)
    assert not verdict.open
    assert verdict.why == f"0 of 200 prompts were checked, since {UNSIZED}"
    assert verdict.counts.canaries.prompts == 1
    opened(after)
    # A text of this version that leaves sizes out is no better
    other = Gate("c")
    other.join(json.dumps(record).encode())
    assert not other.verdict(POINT).open
    assert other.verdict(POINT).why == "its evidence does not tell of which prompts it is"


def test_it_is_told_when_a_point_cannot_open_any_more() -> None:
    gate = Gate("a")
    assert gate.can_open(POINT, 200)
    for _ in range(2):
        gate.checked(POINT, Sample(0.1, 0.0), SIZE)
    assert gate.can_open(POINT, 198)
    assert not gate.can_open(POINT, 197)
    gate.checked(POINT, Sample(3.0, 1.0), SIZE)
    assert not gate.can_open(POINT, 200)
    blind = Gate("b")
    for _ in range(40):
        assert blind.can_open(POINT, 1000)
        blind.checked(POINT, GOOD, SIZE)
        blind.checked_shuffled(POINT, GOOD)
    assert not blind.can_open(POINT, 1000)
    assert blind.verdict(POINT).why.startswith("the prompts cannot tell: 100.00% ")


# ---- canaries --------------------------------------------------------------------------------------------------------


def test_two_percent_of_requests_are_canaries_and_always_the_same() -> None:
    chosen = [number for number in range(100_000) if is_canary(number.to_bytes(8, "big"))]
    assert 1850 < len(chosen) < 2150  # the standard deviation is 44
    assert all(is_canary(number.to_bytes(8, "big")) for number in chosen)


def test_one_bad_prompt_closes_nothing_nor_do_two_and_the_third_does() -> None:
    gate = opened(Gate("a"))
    assert gate.canary(POINT, BAD) == ""
    assert gate.canary(POINT, Sample(math.nan, 0.0)) == ""
    assert gate.is_open(POINT)
    assert "lost" in gate.canary(POINT, BAD)
    assert not gate.is_open(POINT)
    assert "0 of 200 prompts were checked, since the last 3 canaries lost 3.00 answers" in gate.verdict(POINT).why


def test_bad_prompts_that_are_far_apart_close_nothing() -> None:
    gate = opened(Gate("a"))
    for number in range(20 * WINDOW):
        assert gate.canary(POINT, BAD if number % 101 == 0 else Sample(0.0, 1.0)) == ""
    assert gate.is_open(POINT)


def test_kl_closes_though_all_tokens_agree() -> None:
    gate = opened(Gate("a"))
    reasons = [gate.canary(POINT, Sample(0.011, 1.0)) for _ in range(WINDOW)]
    assert not any(reasons[:180])
    assert any("KL" in reason for reason in reasons)


def test_a_point_that_was_closed_needs_200_new_prompts() -> None:
    gate = opened(Gate("a"))
    for _ in range(3):
        gate.canary(POINT, BAD)
    for _ in range(199):
        gate.checked(POINT, GOOD, SIZE)
        gate.checked_shuffled(POINT, RUINED)
    assert not gate.is_open(POINT)
    gate.checked(POINT, GOOD, SIZE)
    assert gate.is_open(POINT)
    assert gate.canary(POINT, BAD) == ""


@dataclass
class Drifting:
    """Model whose share of wrong answers changes with each request."""

    wrong: float
    growth: float
    seed: int

    def until_closed(self, gate: Gate, canaries: int) -> int:
        draw = random.Random(self.seed)
        for number in range(1, canaries + 1):
            wrong = self.wrong + self.growth * number
            sample = Sample(0.3, 0.0) if draw.random() < wrong else Sample(0.0001, 1.0)
            if gate.canary(POINT, sample):
                return number
        return canaries + 1


def test_a_sudden_fault_is_found_by_the_third_canary_and_a_drift_not_much_after_its_limit() -> None:
    assert [Drifting(1.0, 0.0, seed).until_closed(opened(Gate("a")), 10) for seed in range(5)] == [3] * 5
    # From 0.1 % wrong, 1 % more in 1,000 canaries: 1 % is passed at 900, 3 % at 2,900
    drifts = sorted(Drifting(0.001, 1e-5, seed).until_closed(opened(Gate("a")), 4000) for seed in range(60))
    assert drifts[-1] < 2900
    assert drifts[30] > 500
    # A loss of 1.5 % is found within 1,000 canaries by nearly all, one of 0.05 % by hardly any
    assert sum(Drifting(0.015, 0.0, seed).until_closed(opened(Gate("a")), 1000) <= 1000 for seed in range(60)) >= 54
    assert sum(Drifting(0.0005, 0.0, seed).until_closed(opened(Gate("a")), 1000) <= 1000 for seed in range(60)) <= 3


def test_canaries_of_many_hosts_close_a_point_that_no_host_alone_would() -> None:
    hosts = [opened(Gate("first"))] + [Gate(f"host {number}") for number in range(4)]
    for gate in hosts[1:]:
        gate.join(hosts[0].record(MODEL, shared=True))
        assert gate.is_open(POINT)
        assert gate.canary(POINT, BAD) == ""
    for gate in hosts[1:]:
        hosts[0].join(gate.record(MODEL, shared=True))
    assert not hosts[0].is_open(POINT)
    assert hosts[0].verdict(POINT).why == "the 4 canaries of all hosts lost 4.00 answers, with a KL of 4.00 in all"
    opened(hosts[0])  # shadow runs begin anew
    assert hosts[0].verdict(POINT).generation == 1


# ---- kept and shared -------------------------------------------------------------------------------------------------

samples = st.builds(Sample, st.floats(), st.floats(0, 1))
sizes = st.builds(PromptSize, st.integers(1, 30), st.integers(1, 100), st.integers(1, 1000))
kinds = st.sampled_from(["checked", "checked_shuffled", "canary"])
points = st.sampled_from([POINT, Point(MODEL, "raw", "naive", 0)])
events = st.lists(st.tuples(kinds, points, samples, sizes, st.integers(1, LARGEST)), max_size=12)


def played(host: str, steps) -> Gate:
    gate = Gate(host)
    for kind, point, sample, size, times in steps:
        if kind == "checked":
            for _ in range(times):
                gate.checked(point, sample, size)
        else:
            getattr(gate, kind)(point, sample)
    return gate


def read(gate: Gate):
    return read_record(gate.record(MODEL, shared=True))


@settings(deadline=None, max_examples=100)
@given(st.lists(events, min_size=3, max_size=3), st.booleans())
def test_records_are_joined_in_any_order_and_any_number_of_times(steps, same) -> None:
    records = [played("a" if same else f"host {number}", one).record(MODEL, shared=True) for number, one in enumerate(steps)]
    results = []
    for order in permutations(records):
        gate = Gate("reader")
        for record in order + order[:2]:
            gate.join(record)
        results.append(read(gate))
    inner, outer = Gate("inner"), Gate("outer")
    inner.join(records[1])
    inner.join(records[2])
    outer.join(records[0])
    outer.join(inner.record(MODEL, shared=True))
    assert all(result == results[0] for result in [*results, read(outer)])
    verdicts = [gate.verdicts(MODEL) for gate in (inner, outer)]
    outer.join(outer.record(MODEL, shared=True))
    assert outer.verdicts(MODEL) == verdicts[1]


def test_hosts_open_a_point_together() -> None:
    one, other = Gate("a"), Gate("b")
    for _ in range(100):
        one.checked(POINT, GOOD, SIZE)
        other.checked(POINT, GOOD, SIZE)
        other.checked_shuffled(POINT, RUINED)
    assert not one.is_open(POINT)
    for _ in range(3):
        one.join(other.record(MODEL, shared=True))
    assert one.is_open(POINT)
    assert one.verdict(POINT).counts.checks.prompts == 200


def test_a_breach_reaches_other_hosts_and_old_records_do_not_open_the_point_again() -> None:
    one, other = opened(Gate("a")), Gate("b")
    old = one.record(MODEL, shared=True)
    other.join(old)
    for _ in range(3):
        one.canary(POINT, BAD)
    other.join(one.record(MODEL, shared=True))
    assert not other.is_open(POINT)
    other.join(old)
    one.join(old)
    assert not other.is_open(POINT)
    assert not one.is_open(POINT)


def test_a_start_anew_goes_on_with_counts_and_window() -> None:
    before = opened(Gate("a"))
    for _ in range(2):
        before.canary(POINT, BAD)
    after = Gate("a")
    after.join(before.record(MODEL, shared=False))
    assert after.is_open(POINT)
    assert after.canary(POINT, BAD)
    fresh = Gate("b")
    fresh.join(before.record(MODEL, shared=True))
    assert read_record(before.record(MODEL, shared=True)).points[0].window == ()


def test_a_gate_that_counts_while_it_is_read_and_joined_does_not_lose_its_own_newer_counts() -> None:
    gate = Gate("a")
    gate.checked(POINT, GOOD, SIZE)
    old = gate.record(MODEL, shared=False)
    gate.checked(POINT, GOOD, SIZE)
    gate.join(old)
    assert gate.verdict(POINT).counts.checks.prompts == 2


def changed(**fields) -> bytes:
    record = json.loads(opened(Gate("a")).record(MODEL, shared=False))
    record["points"][0]["evidence"]["hosts"]["a"].update(fields)
    return json.dumps(record).encode()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff",
        b"[" * 100_000,
        opened(Gate("a")).record(MODEL, shared=True)[:-2],
        opened(Gate("a")).record(MODEL, shared=True).replace(b'"version":2', b'"version":3'),
        changed(checks=[200, -1.0, 0.0]),
        changed(checks=[200, 201.0, 0.0]),
        changed(checks=[-5, 0.0, 0.0]),
        changed(checks=[200, math.nan, 0.0]),
        changed(checks=[200, 0.0, math.inf]),
        changed(checks=[200.5, 0.0, 0.0]),
        changed(checks=[1 << 60, 0.0, 0.0]),
        changed(checks=[200, 0.0]),
        changed(more=[1, 2, 3]),
        changed(sizes=[[1, 2], [], []]),
        changed(sizes=[[-1], [], []]),
        changed(sizes=[[6] * (LARGEST + 1), [], []]),
    ],
)
def test_damaged_records_change_nothing(text) -> None:
    gate = Gate("b")
    with pytest.raises(ValueError, match="evidence"):
        gate.join(text)
    assert gate.verdicts(MODEL) == []


def test_a_record_that_is_sound_is_taken() -> None:
    gate = Gate("b")
    assert gate.join(changed()) == MODEL
    assert gate.is_open(POINT)


def test_a_record_of_another_version_says_so() -> None:
    with pytest.raises(ValueError, match="version 7; this program knows 1 and 2"):
        read_record(b'{"version":7,"new":[]}')
