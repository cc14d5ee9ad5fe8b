"""Patterns of names."""

import fnmatch
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skymemory.agent.gateway.pattern import PATTERN_BYTES_MAX, Pattern


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


class Name(bytes):
    """A name that counts how many of its bytes are read."""

    reads = 0

    def __getitem__(self, at: Any) -> Any:
        self.reads += 1
        return super().__getitem__(at)

    def __iter__(self) -> Iterator[int]:
        for byte in super().__iter__():
            self.reads += 1
            yield byte


@pytest.mark.parametrize(
    "pattern", [b"*a" * 30 + b"b", b"*" + b"a" * 1000 + b"b", b"*" + b"?" * 999 + b"b", b"*[^b]" * 200 + b"b"]
)
def test_each_byte_of_a_name_is_read_once(pattern: bytes) -> None:
    name = Name(b"a" * 2000)
    assert not Pattern(pattern).matches(name)
    assert name.reads == 2000


@pytest.mark.parametrize("part", [b"[^]", b"[\0-\xff]", b"?", b"*?", b"a"])
def test_a_pattern_takes_little_memory(part: bytes) -> None:
    tracemalloc.start()
    pattern = Pattern(part * (PATTERN_BYTES_MAX // len(part)))
    kept_bytes, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not pattern.matches(b"")
    assert kept_bytes < 50_000
    assert most_bytes < 100_000
