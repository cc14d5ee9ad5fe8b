from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skymemory.prompt.block_keys import block_keys, prompt_root
from skymemory.prompt.blocks import LAYOUT
from skymemory.segments.keys import SegmentKeys, block_names, group_key, is_segment_id, segment_id, segment_root

WORDS: dict[str, Any] = {
    "fingerprint": b"f" * 32,
    "layout": LAYOUT,  # as if it were that of prompts
    "codec": "raw",
    "block_tokens": 4,
    "sinks": 0,
    "tenant_secret": b"secret",
}
ROOT = segment_root(**WORDS)
TOKENS = st.lists(st.integers(0, 3), min_size=1, max_size=20)


def keys_of(tokens: list[int], groups: int = 3, root: bytes = ROOT) -> list[bytes]:
    return SegmentKeys(root, tokens, 4, groups).all


@pytest.mark.parametrize(
    "change",
    [
        {"fingerprint": b"g" * 32},
        {"layout": "another"},
        {"codec": "int8"},
        {"block_tokens": 5},
        {"sinks": 4},
        {"tenant_secret": b"another"},
        {"scope": b"user"},
    ],
)
def test_all_that_decides_the_bytes_is_in_the_root(change: dict[str, Any]) -> None:
    other = segment_root(**{**WORDS, **change})
    assert other != ROOT
    assert not set(keys_of([1, 2, 3, 1, 2], root=other)) & set(keys_of([1, 2, 3, 1, 2]))
    assert segment_id(other, [1, 2]) != segment_id(ROOT, [1, 2])


@given(TOKENS, st.binary(max_size=3))
def test_no_key_of_a_segment_is_one_of_a_prompt(tokens: list[int], scope: bytes) -> None:
    """The same tokens, model, layout, codec, block size and secret: only the domain differs."""
    words = {name: value for name, value in WORDS.items() if name != "sinks"}
    exact = set(block_keys(prompt_root(**words), tokens, 4)) | set(block_keys(prompt_root(**words), tokens * 4, 4))
    root = segment_root(**WORDS, scope=scope)
    assert not exact & set(keys_of(tokens, root=root))
    assert not exact & set(block_names(root, tokens, 4))


@given(TOKENS, TOKENS)
def test_segments_share_the_blocks_in_which_they_begin_alike(one: list[int], other: list[int]) -> None:
    names, others = block_names(ROOT, one, 4), block_names(ROOT, other, 4)
    for index, (name, another) in enumerate(zip(names, others, strict=False)):
        assert (name == another) == (one[: 4 * index + 4] == other[: 4 * index + 4])
    assert (segment_id(ROOT, one) == segment_id(ROOT, other)) == (one == other)


@given(st.lists(TOKENS, min_size=2, max_size=6, unique_by=tuple))
def test_no_two_blocks_have_one_key(segments: list[list[int]]) -> None:
    blocks = {tuple(tokens[: 4 * index + 4]) for tokens in segments for index in range((len(tokens) + 3) // 4)}
    keys = {key for tokens in segments for key in keys_of(tokens)}
    assert len(keys) == 3 * len(blocks)


def test_a_last_block_is_as_long_as_the_tokens_that_are_left() -> None:
    keys = SegmentKeys(ROOT, [5] * 9, 4, 2)
    assert [keys.span(block) for block in range(keys.blocks)] == [range(4), range(4, 8), range(8, 9)]
    lengths = [SegmentKeys(ROOT, [5] * count, 4, 2).of_group(0)[-1] for count in range(1, 10)]
    assert len(set(lengths)) == 9
    assert all(len(block_names(ROOT, [5] * count, 4)) == -(-count // 4) for count in range(1, 10))


def test_what_is_sent_does_not_tell_the_next_key() -> None:
    """Names of blocks are not keys: who sees keys cannot try out which tokens follow."""
    names = block_names(ROOT, [1] * 8, 4)
    assert not set(names) & set(keys_of([1] * 8))
    assert all(one != other for one, other in pairwise(names))
    assert group_key(ROOT, names[0], 0) != group_key(ROOT, names[0], 1)


def test_the_form_of_an_id() -> None:
    found = segment_id(ROOT, [1, 2, 3])
    assert is_segment_id(found)
    for word in ("", "seg-", found[:-1], found + "0", found.upper(), found.removeprefix("seg-"), "seg-" + "g" * 32, found + "\n"):
        assert not is_segment_id(word)


@given(TOKENS, TOKENS, TOKENS)
def test_variants_share_keys_with_nothing_but_the_same_tokens_behind_the_same(
    tokens: list[int], one: list[int], other: list[int]
) -> None:
    alone = SegmentKeys(ROOT, tokens, 4, 3)
    variants = [alone.of_variant(alone.variant_name(before)) for before in (one, other)]
    assert {keys.id for keys in variants} == {alone.id}
    assert len({alone.root, *(keys.root for keys in variants)}) == (2 if one == other else 3)
    assert (set(variants[0].all) == set(variants[1].all)) == (one == other)
    assert not set(alone.all) & set(variants[0].all)
    assert not {alone.variant_name(one)} & {*alone.all, *variants[0].all}
