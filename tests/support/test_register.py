"""The check of registers: it takes what an honest register answers, and finds each answer that is too old."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.register import ABSENT, PRESENT, Operation, violations


def put(value: str, begin: float, end: float = inf, *, ok: bool = True, version: int = 0) -> Operation:
    return Operation("c", "k", "put", begin, end, wrote=value, is_acknowledged=ok and end < inf, version=version)


def deleted(begin: float, end: float, *, ok: bool = True) -> Operation:
    return put(ABSENT, begin, end, ok=ok)


def get(saw: str | None, begin: float, end: float) -> Operation:
    return Operation("c", "k", "get", begin, end, saw=saw)


TWO = (put("a", 0, 1), put("b", 2, 3))


@pytest.mark.parametrize(
    ("history", "is_right"),
    [
        ([get(ABSENT, 0, 1)], True),
        ([get("a", 0, 1)], False),  # nobody has written it
        ([get("a", 0, 1), put("a", 2, 3)], False),  # nor had anybody then
        ([put("a", 0, 1), get("a", 2, 3)], True),
        ([put("a", 0, 1), get(PRESENT, 2, 3)], True),
        ([put("a", 0, 1), get(ABSENT, 2, 3)], False),
        ([put("a", 0, 1), get(None, 2, 3)], True),  # an error
        ([*TWO, get("a", 4, 5)], False),
        ([*TWO, get("a", 2.5, 5)], True),  # it began before b was acknowledged
        ([*TWO, get("b", 2.5, 5), get("a", 2.6, 5)], True),  # and what is not acknowledged may be seen and not be seen
        ([put("a", 0, 1), put("b", 2, 3, ok=False), get("a", 4, 5)], True),
        ([put("a", 0, 1), put("b", 2, 3, ok=False), get("b", 4, 5), get("a", 6, 7)], True),
        ([put("a", 0, 1, ok=False), put("b", 2, 3), get("a", 4, 5)], False),  # its version is older
        ([put("a", 0), put("b", 2, 3), get("a", 4, 5)], True),  # it may choose its version now
        ([put("a", 6), put("b", 2, 3), get("a", 4, 5)], False),
        ([put("a", 0, 2), put("b", 1, 3), get("a", 4, 5), get("b", 6, 7)], True),  # either may be the later one
        ([put("a", 0, 2, version=8), put("b", 1, 3, version=9), get("a", 4, 5)], False),
        ([put("a", 0, 2, version=8), put("b", 1, 3), get("a", 4, 5)], True),
        ([put("a", 0, 1), deleted(2, 3), get(ABSENT, 4, 5)], True),
        ([put("a", 0, 1), deleted(2, 3), get("a", 4, 5)], False),
        ([put("a", 0, 1), deleted(2, 3), get(PRESENT, 4, 5)], False),
        ([put("a", 0, 1), deleted(2, 3, ok=False), get(ABSENT, 4, 5), get("a", 6, 7)], True),
        ([put("a", 0, 1), deleted(2, 3), put("b", 4, 5), get(ABSENT, 6, 7)], False),
        ([replace(put("a", 0, 1), saw=ABSENT)], True),  # SET NX
        ([put("a", 0, 1), replace(put("b", 2, 3), saw=ABSENT)], False),
        ([replace(put("a", 0, 1), saw="a")], False),  # it saw itself before it wrote
        ([put("a", 0, 1), replace(deleted(2, 3), saw=PRESENT), get(ABSENT, 4, 5)], True),
        ([replace(deleted(2, 3), saw=PRESENT)], False),
    ],
)
def test_a_history(history: list[Operation], is_right: bool) -> None:
    assert (violations(history) == []) is is_right
    assert (violations(reversed(history)) == []) is is_right


def test_keys_are_registers_of_their_own() -> None:
    other = replace(get("a", 6, 7), key="other")
    [wrong] = violations([*TWO, get("b", 4, 5), other])
    assert (wrong.kind, wrong.read, wrong.newest) == ("never written", other, None)


def test_a_violation_says_what_had_to_be_seen() -> None:
    [wrong] = violations([*TWO, put("c", 3.5, 6), get("a", 4, 5)])
    assert (wrong.kind, wrong.newest, wrong.seen) == ("older", TWO[1], [TWO[0]])


# A register that is right: each operation takes effect at a moment of its own between its begin and its end.
MOMENTS = st.lists(
    st.tuples(st.sampled_from(["put", "delete", "get"]), st.integers(0, 40), st.integers(0, 40), st.booleans()), max_size=30
)


def honest(moments: Sequence[tuple[str, int, int, bool]]) -> list[Operation]:
    """Return what clients of a register see: operation i takes effect at the time 10 i, if it is not one that fails."""
    now, history = ABSENT, []
    for index, (what, before, after, fails) in enumerate(moments):
        begin, end = 10.0 * index - before - 0.5, 10.0 * index + after + 0.5
        if what == "get":
            history.append(get(now, begin, end))
            continue
        value = ABSENT if what == "delete" else str(index)
        history.append(put(value, begin, end, ok=not fails))
        now = now if fails and after % 2 else value  # what fails may have taken effect
    return history


def brute(history: Sequence[Operation]) -> set[int]:
    """Return the reads of what nobody may see any more, by the definition and without a short cut."""
    start = Operation("c", "k", "start", -inf, -inf, wrote=ABSENT)
    writes = [start, *(one for one in history if one.wrote is not None)]
    wrong = set()
    for index, read in enumerate(history):
        before = [one for one in writes if one.is_acknowledged and one.end < read.begin]
        may_be_seen = [one.wrote for one in writes if one.begin < read.end and not any(one.end < newer.begin for newer in before)]
        if read.saw is not None and read.saw not in may_be_seen:
            wrong.add(index)
    return wrong


@given(MOMENTS)
def test_an_honest_register_is_right(moments: list[tuple[str, int, int, bool]]) -> None:
    assert violations(honest(moments)) == []


@given(MOMENTS, st.data())
def test_what_a_read_saw_is_judged_by_the_definition(moments: list[tuple[str, int, int, bool]], data: st.DataObject) -> None:
    """A register whose reads see anything that was ever written."""
    history = honest(moments)
    names = [ABSENT, "unknown", *(one.wrote for one in history if one.wrote is not None)]
    history = [one if one.saw is None else replace(one, saw=data.draw(st.sampled_from(names))) for one in history]
    assert {history.index(wrong.read) for wrong in violations(history)} == {
        min(index for index, one in enumerate(history) if one == history[number]) for number in brute(history)
    }
