"""Patterns of names."""

import fnmatch
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skymemory.agent.gateway.pattern import Pattern


@pytest.mark.parametrize(
    ("pattern", "names", "others"),
    [
        (b"", [b""], [b"a"]),
        (b"*", [b"", b"a", b"\xff\0"], []),
        (b"a?c", [b"abc", b"a\nc"], [b"ac", b"abbc"]),
        (b"a*b*c", [b"abc", b"axxbyyc", b"abcbc"], [b"ab", b"acb"]),
        (b"[a-c]x", [b"ax", b"cx"], [b"dx", b"x"]),
        (b"[c-a]x", [b"ax", b"bx"], [b"dx"]),
        (b"[^a]", [b"b", b"^"], [b"a", b""]),
        (b"[a^]", [b"a", b"^"], [b"b"]),
        (rb"[\]]", [b"]"], [b"\\"]),
        (b"[a", [b"a"], [b"[", b"b"]),
        (b"[]", [], [b"", b"]"]),
        (rb"\*\?", [b"*?"], [b"ab"]),
        (b"\\", [b"\\"], [b""]),
        (b"h[ae]llo*", [b"hello", b"hallo1"], [b"hillo"]),
    ],
)
def test_patterns(pattern: bytes, names: list[bytes], others: list[bytes]) -> None:
    assert all(Pattern(pattern).matches(name) for name in names)
    assert not any(Pattern(pattern).matches(name) for name in others)


@given(st.text("ab*?", max_size=8), st.text("ab", max_size=8))
def test_stars_are_those_of_shells(pattern: str, name: str) -> None:
    assert Pattern(pattern.encode()).matches(name.encode()) == fnmatch.fnmatchcase(name, pattern)


def test_no_pattern_takes_long() -> None:
    start_s = time.process_time()
    assert not Pattern(b"*a" * 30 + b"b").matches(b"a" * 2000)
    assert time.process_time() - start_s < 30.0  # one that goes back at each star would need ages
