"""Keys of blocks and of digests: known answers, and that every part counts where it stands."""

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from skymemory.wire.key_derivation import block_key, digest_key, root_key

ROOT = root_key("prompts", b"secret", b"model", "layout")
some_parts = st.lists(st.binary(max_size=5), max_size=4)


def sized(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def test_known_answers() -> None:
    """Whoever changes these changes all keys: nothing that was stored before is found."""
    assert ROOT.hex() == "0a74d67c173e9575f7b4566ad1818b57484c2ee6b7ab9ea39adf2d37050aff5b"
    assert block_key(ROOT, b"name").hex() == "28cc207c7e1e35cd3818b01d0c6590c40c0ad431fe6838a53ccda4301dac09c0"
    assert block_key(ROOT).hex() == "ee6d9bd2eadf1c0c40857ea3ace86b51346acd652da7a9d3760962a88912850c"
    assert digest_key(ROOT).hex() == "a914aadc2b81daaba23953f74dbd25c492a02635f33c949ce6665d8bff8aea53"


def test_keys_are_what_the_module_says() -> None:
    context = "skymemory 2 root of keys: prompts"
    assert blake3(sized(b"secret", b"model", b"layout"), derive_key_context=context).digest() == ROOT
    assert block_key(ROOT, b"a", b"") == blake3(sized(b"a", b""), key=ROOT).digest()
    assert digest_key(ROOT) == blake3(ROOT, derive_key_context="skymemory 2 key of digests").digest()


@given(one=some_parts, other=some_parts)
def test_a_key_depends_on_each_part_and_on_where_it_stands(one: list[bytes], other: list[bytes]) -> None:
    assert (block_key(ROOT, *one) == block_key(ROOT, *other)) == (one == other)
    assert (root_key("a", b"", *one) == root_key("a", b"", *other)) == (one == other)
    keys = {root_key("a", b"", *one), root_key("b", b"", *one), root_key("a", b"s", *one), block_key(ROOT, *one), ROOT}
    assert len(keys | {digest_key(key) for key in keys}) == 10
    assert {len(key) for key in keys} == {32}


def test_a_byte_does_not_move_between_the_label_the_secret_and_the_parts() -> None:
    assert len({root_key("a", b"b", b"c"), root_key("ab", b"", b"c"), root_key("a", b"", b"bc"), root_key("a", b"bc")}) == 4


@given(text=st.text(max_size=5))
def test_a_text_is_its_utf_8(text: str) -> None:
    assert root_key("a", b"", text) == root_key("a", b"", text.encode())


@given(name=st.binary(max_size=40))
def test_no_key_is_another_tenants(name: bytes) -> None:
    roots = [root_key("values", secret) for secret in (b"", b"one", b"two")]
    assert len({block_key(root, name) for root in roots} | {digest_key(root) for root in roots}) == 6


@pytest.mark.parametrize("length", [0, 31, 33])
def test_parents_of_another_length_are_refused(length: int) -> None:
    with pytest.raises(ValueError, match=f"32 bytes, not {length}"):
        block_key(bytes(length), b"name")
    with pytest.raises(ValueError, match=f"32 bytes, not {length}"):
        digest_key(bytes(length))
