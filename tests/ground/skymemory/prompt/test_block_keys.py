import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from skymemory.prompt.block_keys import block_keys, prompt_root
from skymemory.wire.key_derivation import block_key, name_key, seal_keys

FIELDS = {"fingerprint": b"f" * 32, "layout": "layout", "codec": "raw", "block_tokens": 4, "tenant_secret": b"s"}
tokens = st.lists(st.integers(0, 2**32 - 1), max_size=40)


def test_chain_is_what_the_design_says() -> None:
    root = prompt_root(**FIELDS)
    names, size = name_key(root), (4 * 8).to_bytes(8, "big")
    text = size + b"".join(token.to_bytes(8, "big") for token in (1, 2, 3, 4))
    first = blake3(bytes(8) + text, key=names).digest()
    text = size + b"".join(token.to_bytes(8, "big") for token in (5, 6, 7, 8))
    second = blake3((32).to_bytes(8, "big") + first + text, key=names).digest()
    assert block_keys(root, [1, 2, 3, 4, 5, 6, 7, 8, 9], 4) == [first, second]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("fingerprint", b"g" * 32),
        ("layout", "layoux"),
        ("codec", "int8"),
        ("block_tokens", 5),
        ("tenant_secret", b""),
    ],
)
def test_each_field_changes_the_root(field: str, value: object) -> None:
    assert prompt_root(**FIELDS) != prompt_root(**{**FIELDS, field: value})


def test_a_byte_moved_between_fields_changes_the_root() -> None:
    assert prompt_root(**{**FIELDS, "layout": "ab", "codec": "c"}) != prompt_root(**{**FIELDS, "layout": "a", "codec": "bc"})


@given(tokens, tokens, st.integers(1, 9))
def test_keys_are_shared_exactly_as_far_as_the_tokens(one: list[int], other: list[int], block_tokens: int) -> None:
    root = bytes(32)
    first, second = block_keys(root, one, block_tokens), block_keys(root, other, block_tokens)
    assert len(first) == len(one) // block_tokens
    common = 0
    while common < min(len(one), len(other)) and one[common] == other[common]:
        common += 1
    for index, (left, right) in enumerate(zip(first, second, strict=False)):
        assert (left == right) == ((index + 1) * block_tokens <= common)


@given(tokens, st.integers(1, 9))
def test_a_longer_prompt_keeps_the_keys_of_its_beginning(prompt: list[int], block_tokens: int) -> None:
    keys = block_keys(bytes(32), prompt, block_tokens)
    assert block_keys(bytes(32), [*prompt, *range(20)], block_tokens)[: len(keys)] == keys
    assert len(set(keys)) == len(keys)


def test_the_keys_of_seals_are_of_the_root_and_are_no_block_keys() -> None:
    root, other = prompt_root(**FIELDS), prompt_root(**{**FIELDS, "tenant_secret": b"t"})
    assert len({*seal_keys(root), *seal_keys(other), root, *block_keys(root, list(range(40)), 4)}) == 15


def test_who_sees_the_keys_of_a_prompt_cannot_try_out_its_tokens() -> None:
    """A key does not follow from the one before it and the tokens: it takes the key of names."""
    first, second = block_keys(prompt_root(**FIELDS), [1, 2, 3, 4, 5, 6, 7, 8], 4)
    tokens = b"".join(token.to_bytes(8, "big") for token in (5, 6, 7, 8))
    assert second not in (block_key(first, tokens), block_key(first, first, tokens), *block_keys(first, [5, 6, 7, 8], 4))


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="32 bytes, not 3"):
        block_keys(b"abc", [1], 4)
    with pytest.raises(ValueError, match="1 and more"):
        block_keys(bytes(32), [1], 0)
    for token in (-1, 1 << 64):
        with pytest.raises(ValueError, match=rf"token id {token}; allowed are 0 to 2\^64 - 1"):
            block_keys(bytes(32), [1, token], 4)
