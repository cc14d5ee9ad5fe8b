"""Sealed blocks: what was sealed comes back, and everything else is a BlockError."""

import struct

import pytest
from blake3 import blake3
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skymemory.wire.envelope import ENVELOPE_BYTES, HEADER_BYTES_MAX, BlockError, Kind, seal, seal_in_place, unseal

KEY, OTHER_KEY = bytes(range(32)), bytes(range(1, 33))
SECRET, OTHER_SECRET = bytes(range(32, 64)), bytes(32)
BLOCK = bytes(seal(Kind.VALUE, KEY, b"header", b"the body", digest_key=SECRET, padding=1))
kinds = st.sampled_from(Kind)
keys = st.binary(min_size=32, max_size=32)


def opened(block: bytes, kind: Kind = Kind.VALUE, key: bytes = KEY, secret: bytes = SECRET) -> tuple[bytes, bytes]:
    header, body = unseal(kind, key, block, digest_key=secret)
    return bytes(header), bytes(body)


def forged(fields: bytes, rest: bytes = b"", key: bytes = KEY) -> bytes:
    """A block of any fields, as somebody makes it who has the digest's key."""
    return blake3(fields + rest, key=SECRET).update(key).digest() + fields + rest


def test_known_answers() -> None:
    """Whoever changes these changes the format: the version goes up."""
    assert BLOCK[32:].hex() == "534b594d02020006000000000000000868656164657274686520626f647900"
    assert BLOCK[:32].hex() == "4b9b0dc2aa8c7183dce614fb83bbcad7ae8260f032c3fbfb96712e85ae7f596b"
    assert [kind.value for kind in (Kind.PROMPT, Kind.VALUE, Kind.PAGES, Kind.FORMATS)] == [1, 2, 3, 4]
    empty = seal(Kind.PAGES, KEY, b"", b"", digest_key=SECRET)
    assert empty.hex() == ("90fbe82ac03ac87e56bad5638d7d29f6ec9ecf0375c51288f4effd0d5f18d00d534b594d020300000000000000000000")


def test_a_block_is_what_the_module_says() -> None:
    rest = b"SKYM\x02\x02" + (6).to_bytes(2, "big") + (8).to_bytes(8, "big") + b"headerthe body\0"
    assert blake3(rest + KEY, key=SECRET).digest() + rest == BLOCK
    assert len(BLOCK) == ENVELOPE_BYTES + 6 + 8 + 1


@given(kind=kinds, key=keys, secret=keys, header=st.binary(max_size=200), body=st.binary(), padding=st.integers(0, 1))
def test_what_is_sealed_comes_back(kind: Kind, key: bytes, secret: bytes, header: bytes, body: bytes, padding: int) -> None:
    block = seal(kind, key, header, body, digest_key=secret, padding=padding)
    assert opened(block, kind, key, secret) == (header, body)
    place = memoryview(bytearray(b"\xaa" * len(block)))
    place[ENVELOPE_BYTES + len(header) : len(block) - padding] = body
    seal_in_place(kind, key, place, header, digest_key=secret, padding=padding)
    assert place == block
    assert opened(bytes(place), kind, key, secret) == (header, body)


def test_nothing_is_copied() -> None:
    block = bytearray(BLOCK)
    header, body = unseal(Kind.VALUE, KEY, block, digest_key=SECRET)
    assert header.obj is block
    assert body.obj is block
    with pytest.raises(BufferError):
        block.append(0)
    block[ENVELOPE_BYTES + 6] ^= 0xFF
    assert body[0] == ord("t") ^ 0xFF


def test_each_damaged_bit_is_found() -> None:
    for bit in range(8 * len(BLOCK)):
        block = bytearray(BLOCK)
        block[bit // 8] ^= 1 << bit % 8
        with pytest.raises(BlockError):
            opened(block)


def test_each_cut_is_found() -> None:
    for at in range(len(BLOCK)):
        for cut in (BLOCK[:at], BLOCK[at + 1 :], BLOCK[:at] + BLOCK[at + 1 :]):
            with pytest.raises(BlockError):
                opened(cut)


@given(more=st.binary(min_size=1, max_size=100), at=st.integers(0, len(BLOCK)))
def test_more_bytes_are_found(more: bytes, at: int) -> None:
    with pytest.raises(BlockError):
        opened(BLOCK[:at] + more + BLOCK[at:])


@given(key=keys, secret=keys)
@example(OTHER_KEY, SECRET)
@example(KEY, OTHER_SECRET)
def test_another_key_and_another_secret_are_found(key: bytes, secret: bytes) -> None:
    if (key, secret) != (KEY, SECRET):
        with pytest.raises(BlockError, match=r"digest does not match: .* of another key"):
            opened(BLOCK, key=key, secret=secret)


@given(sealed=kinds, wanted=kinds)
def test_another_kind_is_found(sealed: Kind, wanted: Kind) -> None:
    block = seal(sealed, KEY, b"header", b"body", digest_key=SECRET)
    if sealed is wanted:
        assert opened(block, wanted) == (b"header", b"body")
    else:
        with pytest.raises(BlockError, match=rf"of kind {sealed.value}; wanted is {wanted.value} \({wanted.name.lower()}\)"):
            opened(block, wanted)


@given(noise=st.binary(max_size=300), magic=st.sampled_from([b"", b"SKYM", b"SKYM\x02", b"SKYM\x02\x02"]))
def test_noise_is_a_block_error(noise: bytes, magic: bytes) -> None:
    with pytest.raises(BlockError):
        opened(noise)
    with pytest.raises(BlockError):
        opened(noise[:32].ljust(32) + magic + noise[32:])


@given(
    header_bytes=st.integers(0, 0xFFFF) | st.integers(0, 24),
    body_bytes=st.integers(0, (1 << 64) - 1) | st.integers(0, 24),
    rest=st.binary(max_size=24),
)
def test_lengths_that_are_sealed_are_not_trusted(header_bytes: int, body_bytes: int, rest: bytes) -> None:
    """The views never reach beyond the block, and together with one zero byte at most they are all of it."""
    block = forged(struct.pack(">4sBBHQ", b"SKYM", 2, 2, header_bytes, body_bytes), rest)
    left = len(rest) - header_bytes - body_bytes
    if left == 0 or (left == 1 and rest[-1] == 0):
        assert opened(block) == (rest[:header_bytes], rest[header_bytes : header_bytes + body_bytes])
    else:
        with pytest.raises(BlockError, match=rf"has {len(block)} bytes; its lengths allow {48 + header_bytes + body_bytes}"):
            opened(block)


@given(fields=st.binary(min_size=16, max_size=16), rest=st.binary(max_size=40))
def test_any_fields_under_a_right_digest_are_a_block_or_a_block_error(fields: bytes, rest: bytes) -> None:
    try:
        header, body = opened(forged(fields, rest))
    except BlockError:
        return
    assert rest in (header + body, header + body + b"\0")


pieces = st.tuples(st.integers(0, len(BLOCK)), st.integers(0, len(BLOCK)), st.binary(max_size=20))


@settings(max_examples=1000)
@given(
    changes=st.lists(pieces, min_size=1, max_size=4), kind=kinds, key=st.sampled_from([KEY, OTHER_KEY]), sealed_anew=st.booleans()
)
def test_pieces_put_in_and_taken_out_anywhere(
    changes: list[tuple[int, int, bytes]], kind: Kind, key: bytes, *, sealed_anew: bool
) -> None:
    """Whatever happens to a block, also if it gets a right digest: the same comes back, or a BlockError."""
    block = BLOCK
    for start, end, piece in changes:
        block = block[:start] + piece + block[end:]
    if sealed_anew:
        block = forged(block[32:48], block[48:])
    try:
        header, body = opened(block, kind, key)
    except BlockError:
        return
    assert (kind, key) == (Kind.VALUE, KEY)
    assert block[48:] in (header + body, header + body + b"\0")
    assert sealed_anew or (header, body, block) == (b"header", b"the body", BLOCK)


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (b"", "at least 48 bytes, this one 0"),
        (bytes(47), "at least 48 bytes, this one 47"),
        (bytes(48), r"its magic is b'SKYM', not b'\\x00\\x00\\x00\\x00'"),
        (bytes(32) + b"SKYM\x01" + bytes(11), "format 1; known is 2"),
        (bytes(32) + b"SKYM\x02\x63" + bytes(10), r"of kind 99; wanted is 2 \(value\)"),
    ],
)
def test_what_is_wrong_is_told(block: bytes, words: str) -> None:
    with pytest.raises(BlockError, match=words):
        opened(block)


@pytest.mark.parametrize(
    ("length", "header", "padding"),
    [(47, b"", 0), (48, b"", 1), (50, b"abc", 0), (100, b"", 2), (100, b"", -1), (70_000, bytes(HEADER_BYTES_MAX + 1), 0)],
)
def test_what_cannot_be_sealed_is_told(length: int, header: bytes, padding: int) -> None:
    with pytest.raises(
        ValueError, match=rf"{length} bytes for a header of {len(header)} and {padding} of padding; allowed are 48"
    ):
        seal_in_place(Kind.PAGES, KEY, memoryview(bytearray(length)), header, digest_key=SECRET, padding=padding)
