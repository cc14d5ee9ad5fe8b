"""Keys of blocks, names and seals: known answers, and that every part counts where it stands."""

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from skymemory.wire.key_derivation import block_key, name_key, public_name, root_key, seal_keys

ROOT = root_key("prompts", b"secret", b"model", "layout")
some_parts = st.lists(st.binary(max_size=5), max_size=4)


def sized(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def all_of(root: bytes) -> set[bytes]:
    """All that is derived from a root."""
    return {name_key(root), *seal_keys(root), public_name(root)}


def test_known_answers() -> None:
    """Whoever changes these changes all keys: nothing that was stored before is found."""
    assert ROOT.hex() == "a35fcc2f004d7e3f7225ca1fab6248364b636d10f544fb8d0e724890755c979d"
    assert block_key(ROOT, b"name").hex() == "8aebde774b30a340da9a290489981b4f862ea6fca0009bf66e90846ea85078a4"
    assert block_key(ROOT).hex() == "203a03bdc2e2ec64459f75270fb2366032a1d6f4abe8e35cf22f02b5ca597a99"
    assert name_key(ROOT).hex() == "3a67f509ff5cad938134da7548f3ca744192f761fc9472c189aa189d18a863d0"
    assert seal_keys(ROOT).encryption.hex() == "4d7ca48c507822ee4d5df6a26be793e4249c23cd586febcf50dabd4aec821236"
    assert seal_keys(ROOT).nonces.hex() == "af50dfe1a046ac3420553b0f796dea135e8cb3f93dc10ee47dc0b1d37d65f8bf"
    assert public_name(ROOT).hex() == "21e26b2251c05d73f7e54fbab1dfbf7e369fbcf0b93a582ca2b7340819031dd4"


def test_keys_are_what_the_module_says() -> None:
    context = "skymemory 3 root of keys: prompts"
    assert blake3(sized(b"secret", b"model", b"layout"), derive_key_context=context).digest() == ROOT
    assert block_key(ROOT, b"a", b"") == blake3(sized(b"a", b""), key=ROOT).digest()
    labels = ("key of names", "key of encryption", "key of nonces", "public name of a root")
    derived = [blake3(ROOT, derive_key_context=f"skymemory 3 {label}").digest() for label in labels]
    assert [name_key(ROOT), *seal_keys(ROOT), public_name(ROOT)] == derived


@given(one=some_parts, other=some_parts)
def test_a_key_depends_on_each_part_and_on_where_it_stands(one: list[bytes], other: list[bytes]) -> None:
    assert (block_key(ROOT, *one) == block_key(ROOT, *other)) == (one == other)
    assert (root_key("a", b"", *one) == root_key("a", b"", *other)) == (one == other)
    keys = {root_key("a", b"", *one), root_key("b", b"", *one), root_key("a", b"s", *one), block_key(ROOT, *one), ROOT}
    assert len(keys.union(*map(all_of, keys))) == 25
    assert {len(key) for key in keys} == {32}


def test_a_byte_does_not_move_between_the_label_the_secret_and_the_parts() -> None:
    assert len({root_key("a", b"b", b"c"), root_key("ab", b"", b"c"), root_key("a", b"", b"bc"), root_key("a", b"bc")}) == 4


@given(text=st.text(max_size=5))
def test_a_text_is_its_utf_8(text: str) -> None:
    assert root_key("a", b"", text) == root_key("a", b"", text.encode())


@given(name=st.binary(max_size=40))
def test_no_key_is_another_tenants(name: bytes) -> None:
    roots = [root_key("values", secret) for secret in (b"", b"one", b"two")]
    assert len({block_key(name_key(root), name) for root in roots}.union(*map(all_of, roots))) == 15


@pytest.mark.parametrize("length", [0, 31, 33])
def test_parents_of_another_length_are_refused(length: int) -> None:
    with pytest.raises(ValueError, match=f"32 bytes, not {length}"):
        block_key(bytes(length), b"name")
    with pytest.raises(ValueError, match=f"32 bytes, not {length}"):
        seal_keys(bytes(length))
    with pytest.raises(ValueError, match=f"32 bytes, not {length}"):
        name_key(bytes(length))
    with pytest.raises(ValueError, match=f"32 bytes, not {length}"):
        public_name(bytes(length))
