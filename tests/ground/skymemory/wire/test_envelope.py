"""Sealed blocks: what was sealed comes back, everything else is a BlockError, and the bytes show nothing of it."""

import random

import pytest
from blake3 import blake3
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skymemory.wire.envelope import (
    ENVELOPE_BYTES,
    HEADER_BYTES_MAX,
    VALUE_VERSION_MAX,
    BlockError,
    Instance,
    Kind,
    instance_of,
    seal,
    seal_in_place,
    unseal,
)
from skymemory.wire.key_derivation import SealKeys, seal_keys

KEY, OTHER_KEY = bytes(range(32)), bytes(range(1, 33))
KEYS, OTHER_KEYS = seal_keys(bytes(range(32, 64))), seal_keys(bytes(32))
BLOCK = bytes(seal(Kind.VALUE, KEY, b"header", b"the body", keys=KEYS, version=7, padding=1))
kinds = st.sampled_from(Kind)
keys = st.binary(min_size=32, max_size=32)
versions = st.integers(0, VALUE_VERSION_MAX)


def opened(block: bytes, kind: Kind = Kind.VALUE, key: bytes = KEY, keys: SealKeys = KEYS) -> tuple[bytes, bytes, int]:
    header, body, version = unseal(kind, key, bytearray(block), keys=keys)
    return bytes(header), bytes(body), version


def bound(kind: Kind, key: bytes, version: int, length: int) -> bytes:
    numbers = ((3, 4), (kind, 1), (version, 8), (length, 8), (len(key), 8))
    return b"".join(number.to_bytes(size) for number, size in numbers) + key


def forged(text: bytes, key: bytes = KEY) -> bytes:
    """A block of any plaintext, as somebody makes it who has the keys of the seal."""
    sealed = AESGCM(KEYS.encryption).encrypt(bytes(12), text, bound(Kind.VALUE, key, 0, 40 + len(text)))
    return bytes(12) + (3).to_bytes(4) + bytes(8) + sealed[-16:] + sealed[:-16]


def test_known_answers() -> None:
    """Whoever changes these changes the format: the version goes up."""
    assert BLOCK.hex() == (
        "9a2da7e5fa1573840406e7940000000300000000000000077a661d961d668fe3edcba897"
        "bac261d81ecbb137c8951580ceb0c0c2f50c38b4a050fb187c77f7"
    )
    assert [kind.value for kind in (Kind.PROMPT, Kind.VALUE, Kind.PAGES, Kind.FORMATS)] == [1, 2, 3, 4]


def test_a_block_is_what_the_module_says() -> None:
    text = (6).to_bytes(2) + b"\x01" + bytes(5) + b"headerthe body\0"
    with_it = bound(Kind.VALUE, KEY, 7, len(BLOCK))
    nonce = blake3(with_it + text, key=KEYS.nonces).digest(12)
    sealed = AESGCM(KEYS.encryption).encrypt(nonce, text, with_it)
    assert nonce + (3).to_bytes(4) + (7).to_bytes(8) + sealed[-16:] + sealed[:-16] == BLOCK
    assert len(BLOCK) == ENVELOPE_BYTES + 6 + 8 + 1


@given(
    kind=kinds,
    key=keys,
    root=keys,
    header=st.binary(max_size=200),
    body=st.binary(),
    version=versions,
    padding=st.integers(0, 1),
)
def test_what_is_sealed_comes_back(
    kind: Kind, key: bytes, root: bytes, header: bytes, body: bytes, version: int, padding: int
) -> None:
    seals = seal_keys(root)
    block = seal(kind, key, header, body, keys=seals, version=version, padding=padding)
    assert opened(block, kind, key, seals) == (header, body, version)
    place = memoryview(bytearray(b"\xaa" * len(block)))
    place[ENVELOPE_BYTES + len(header) : len(block) - padding] = body
    seal_in_place(kind, key, place, header, keys=seals, version=version, padding=padding)
    assert place == block
    assert seal(kind, key, header, body, keys=seals, version=version, padding=padding) == block


@given(kind=kinds, header=st.binary(max_size=20), one=st.binary(max_size=50), other=st.binary(max_size=50), version=versions)
@example(Kind.PAGES, b"", bytes(40), bytes(39) + b"\1", 0)
def test_unequal_blocks_have_unequal_nonces(kind: Kind, header: bytes, one: bytes, other: bytes, version: int) -> None:
    """Also under one key and version, as two GPUs make them for the same tokens."""
    first, second = (seal(kind, KEY, header, body, keys=KEYS, version=version) for body in (one, other))
    assert (first[:12] == second[:12]) == (one == other)
    assert (instance_of(first) == instance_of(second)) == (one == other)


def test_what_is_bound_goes_into_the_nonce() -> None:
    """The same plaintext under another key, kind or version, or with other lengths, is encrypted under another nonce."""
    blocks = [
        seal(Kind.VALUE, KEY, b"ab", b"c", keys=KEYS),
        seal(Kind.VALUE, OTHER_KEY, b"ab", b"c", keys=KEYS),
        seal(Kind.PAGES, KEY, b"ab", b"c", keys=KEYS),
        seal(Kind.VALUE, KEY, b"ab", b"c", keys=KEYS, version=1),
        seal(Kind.VALUE, KEY, b"a", b"bc", keys=KEYS),
        seal(Kind.VALUE, KEY, b"ab", b"c\0", keys=KEYS),
        seal(Kind.VALUE, KEY, b"ab", b"c", keys=KEYS, padding=1),
        seal(Kind.VALUE, KEY, b"ab", b"c", keys=OTHER_KEYS),
    ]
    assert len({bytes(block[:12]) for block in blocks}) == len(blocks)
    assert len({bytes(block[ENVELOPE_BYTES:]) for block in blocks}) == len(blocks)


def test_the_instance_is_the_version_and_the_start_of_the_nonce() -> None:
    assert instance_of(BLOCK) == Instance(7, int.from_bytes(BLOCK[:4]))
    assert instance_of(memoryview(BLOCK)) == instance_of(bytearray(BLOCK)) == instance_of(BLOCK)
    for other in (b"", b"x", BLOCK[:39], bytes(1000), b"not sealed" * 50):
        assert instance_of(other) == Instance(0, 0)


def test_the_bytes_show_no_plaintext_and_no_key() -> None:
    block = bytes(seal(Kind.VALUE, KEY, b"a header that is known", b"a body that is known" * 100, keys=KEYS))
    for shown in (b"header", b"body", b"known", KEY[:4], *KEYS):
        assert shown not in block
    assert bytes(40) not in bytes(seal(Kind.PAGES, KEY, bytes(100), bytes(10_000), keys=KEYS))


def test_nothing_is_copied() -> None:
    block = bytearray(BLOCK)
    header, body, _ = unseal(Kind.VALUE, KEY, block, keys=KEYS)
    assert header.obj is block
    assert body.obj is block
    with pytest.raises(BufferError):
        block.append(0)
    assert block[ENVELOPE_BYTES:] == b"headerthe body\0"


def test_a_block_can_be_opened_only_once() -> None:
    block = bytearray(BLOCK)
    unseal(Kind.VALUE, KEY, block, keys=KEYS)
    with pytest.raises(BlockError):
        unseal(Kind.VALUE, KEY, block, keys=KEYS)


def test_each_damaged_bit_is_found() -> None:
    for bit in range(8 * len(BLOCK)):
        block = bytearray(BLOCK)
        block[bit // 8] ^= 1 << bit % 8
        with pytest.raises(BlockError):
            opened(block)


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_a_damaged_bit_of_a_large_block_is_found(data: st.DataObject) -> None:
    block = bytearray(seal(Kind.PAGES, KEY, bytes(144), random.Random(1).randbytes(300_001), keys=KEYS))
    bit = data.draw(st.integers(0, 8 * len(block) - 1))
    block[bit // 8] ^= 1 << bit % 8
    with pytest.raises(BlockError):
        opened(block, Kind.PAGES)


def test_each_cut_is_found() -> None:
    for at in range(len(BLOCK)):
        for cut in (BLOCK[:at], BLOCK[at + 1 :], BLOCK[:at] + BLOCK[at + 1 :]):
            with pytest.raises(BlockError):
                opened(cut)


@given(more=st.binary(min_size=1, max_size=100), at=st.integers(0, len(BLOCK)))
def test_more_bytes_are_found(more: bytes, at: int) -> None:
    with pytest.raises(BlockError):
        opened(BLOCK[:at] + more + BLOCK[at:])


@given(key=st.binary(max_size=40), root=keys)
@example(OTHER_KEY, bytes(range(32, 64)))
@example(KEY, bytes(32))
def test_another_key_and_another_secret_are_found(key: bytes, root: bytes) -> None:
    if (key, seal_keys(root)) != (KEY, KEYS):
        with pytest.raises(BlockError, match=r"seal does not match: .* of another key or kind, .* of another tenant"):
            opened(BLOCK, key=key, keys=seal_keys(root))


@given(sealed=kinds, wanted=kinds)
def test_another_kind_is_found(sealed: Kind, wanted: Kind) -> None:
    block = seal(sealed, KEY, b"header", b"body", keys=KEYS)
    if sealed is wanted:
        assert opened(block, wanted) == (b"header", b"body", 0)
    else:
        with pytest.raises(BlockError, match="seal does not match"):
            opened(block, wanted)


def test_another_version_is_found() -> None:
    """A satellite cannot make an old value a newer one."""
    later = BLOCK[:16] + (8).to_bytes(8) + BLOCK[24:]
    with pytest.raises(BlockError, match="seal does not match"):
        opened(later)


@given(noise=st.binary(max_size=300))
def test_noise_is_a_block_error(noise: bytes) -> None:
    with pytest.raises(BlockError):
        opened(noise)
    with pytest.raises(BlockError):
        opened(noise[:12].ljust(12) + (3).to_bytes(4) + noise[12:])


@given(header_bytes=st.integers(0, 0xFFFF) | st.integers(0, 24), padding=st.integers(0, 255), rest=st.binary(max_size=24))
@example(3, 0, b"abc")
@example(3, 1, b"abc")
@example(2, 1, b"abc")
@example(0, 2, b"abc")
def test_lengths_that_are_sealed_are_not_trusted(header_bytes: int, padding: int, rest: bytes) -> None:
    """The views never reach beyond the block, and there is one byte of padding at most."""
    block = forged(header_bytes.to_bytes(2) + padding.to_bytes(1) + bytes(5) + rest)
    end = len(rest) - padding
    if padding <= 1 and header_bytes <= end:
        assert opened(block) == (rest[:header_bytes], rest[header_bytes:end], 0)
    else:
        with pytest.raises(BlockError, match=rf"has {len(block)} bytes; its header of {header_bytes} and its padding"):
            opened(block)


pieces = st.tuples(st.integers(0, len(BLOCK)), st.integers(0, len(BLOCK)), st.binary(max_size=20))


@settings(max_examples=500)
@given(changes=st.lists(pieces, min_size=1, max_size=4), kind=kinds, key=st.sampled_from([KEY, OTHER_KEY]))
def test_pieces_put_in_and_taken_out_anywhere(changes: list[tuple[int, int, bytes]], kind: Kind, key: bytes) -> None:
    block = BLOCK
    for start, end, piece in changes:
        block = block[:start] + piece + block[end:]
    try:
        found = opened(block, kind, key)
    except BlockError:
        return
    assert (kind, key, block) == (Kind.VALUE, KEY, BLOCK)
    assert found == (b"header", b"the body", 7)


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (b"", "at least 48 bytes, this one 0"),
        (bytes(47), "at least 48 bytes, this one 47"),
        (bytes(48), "format 0; known is 3"),
        (bytes(32) + b"SKYM\x02\x02" + bytes(20), "format 0; known is 3"),
        (bytes(12) + (4).to_bytes(4) + bytes(40), "format 4; known is 3"),
    ],
)
def test_what_is_wrong_is_told(block: bytes, words: str) -> None:
    with pytest.raises(BlockError, match=words):
        opened(block)


@pytest.mark.parametrize(
    ("length", "header", "padding", "version", "words"),
    [
        (47, b"", 0, 0, "47 bytes for envelope, header and padding; these have 48"),
        (48, b"", 1, 0, "these have 49"),
        (50, b"abc", 0, 0, "these have 51"),
        (100, b"", 2, 0, "and 2 of padding; allowed"),
        (100, b"", -1, 0, "and -1 of padding; allowed"),
        (70_000, bytes(HEADER_BYTES_MAX + 1), 0, 0, "a header of 65536 bytes"),
        (100, b"", 0, 1 << 64, "version 18446744073709551616; allowed"),
        (100, b"", 0, -1, "version -1; allowed"),
    ],
)
def test_what_cannot_be_sealed_is_told(length: int, header: bytes, padding: int, version: int, words: str) -> None:
    place = memoryview(bytearray(length))
    with pytest.raises(ValueError, match=words):
        seal_in_place(Kind.PAGES, KEY, place, header, keys=KEYS, padding=padding, version=version)
