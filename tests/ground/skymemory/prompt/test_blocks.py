import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from skymemory.prompt.blocks import BlockHeader, block_bytes_max, pack_block, unpack_block
from skymemory.prompt.codecs import CodecError, codec_names, get_codec
from skymemory.wire.envelope import BlockError, Kind, seal, unseal
from skymemory.wire.key_derivation import SealKeys, seal_keys

KEY = bytes(range(32))
KEYS = seal_keys(bytes(range(32, 64)))
RAW = get_codec("raw")
ROPE = {"rope_type": "default", "rope_theta": 10000.0}


def make(codec: str = "raw", dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, bytearray]:
    tensors = torch.randn(3, 2, 2, 16, 32, generator=torch.Generator().manual_seed(5)).to(dtype)
    words = {"key": KEY, "keys": KEYS, "block_index": 4, "first_position": 64, "rope": ROPE}
    return tensors, pack_block(tensors, codec=get_codec(codec), **words)


def unpack(data: bytearray, codec: str = "raw", key: bytes = KEY, keys: SealKeys = KEYS) -> tuple[BlockHeader, torch.Tensor]:
    return unpack_block(bytearray(data), key=key, keys=keys, codec=get_codec(codec))


def forge(data: bytearray, **fields: object) -> bytearray:
    """The block with other words in its header, and a right seal."""
    text, payload, _ = unseal(Kind.PROMPT, KEY, bytearray(data), keys=KEYS)
    return sealed(json.dumps(json.loads(bytes(text)) | fields).encode().ljust(464), bytes(payload))


def sealed(header: bytes, payload: bytes = b"") -> bytearray:
    return seal(Kind.PROMPT, KEY, header, payload, keys=KEYS)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("codec", codec_names())
def test_a_block_describes_itself(codec: str, dtype: torch.dtype) -> None:
    tensors, data = make(codec, dtype)
    header, back = unpack(data, codec)
    assert header.codec == codec
    assert header.dtype == str(dtype).removeprefix("torch.")
    assert header.shape == (3, 2, 2, 16, 32)
    assert (header.block_index, header.first_position, header.rope) == (4, 64, ROPE)
    assert len(data) % 64 == 3 * get_codec(codec).layer_bytes((3, 2, 2, 16, 32), dtype) % 64
    assert back.shape == tensors.shape
    assert back.dtype == dtype
    if codec == "raw":
        assert torch.equal(back, tensors)


def test_payload_is_layer_major_keys_before_values() -> None:
    tensors, data = make()
    unpack_block(data, key=KEY, keys=KEYS, codec=RAW)  # in place
    start = len(data) - tensors.nbytes
    flat = torch.frombuffer(data, dtype=torch.float32, offset=start)
    layer = flat.numel() // 3
    assert torch.equal(flat[layer : 2 * layer], tensors[1].flatten())
    assert torch.equal(flat[: layer // 2], tensors[0, 0].flatten())
    assert start % 64 == 0


@given(position=st.integers(0, 10**6), bit=st.integers(0, 7))
@settings(deadline=None, max_examples=300)
def test_no_flipped_bit_goes_unseen(position: int, bit: int) -> None:
    _, data = make()
    data[position % len(data)] ^= 1 << bit
    with pytest.raises(BlockError):
        unpack(data)


@given(st.binary(max_size=200))
def test_garbage_is_an_error_of_its_own_kind(garbage: bytes) -> None:
    with pytest.raises(BlockError):
        unpack(bytearray(garbage))
    with pytest.raises(BlockError):
        unpack(bytearray(bytes(12) + (3).to_bytes(4, "big") + garbage))


def test_a_shortened_block_is_found_out() -> None:
    _, data = make()
    with pytest.raises(BlockError, match="seal does not match"):
        unpack(data[:-1])


def test_a_block_under_another_key_is_found_out() -> None:
    _, data = make()
    with pytest.raises(BlockError, match="another key"):
        unpack(data, key=bytes(32))
    assert torch.equal(unpack(data)[1], make()[0])


def test_who_does_not_know_the_secret_cannot_make_a_block() -> None:
    """One that saw a block's key, and knows all that goes into it but the keys of the seal."""
    tensors, data = make()
    header, _ = unpack(data)
    fields = {"block_index": header.block_index, "first_position": header.first_position, "rope": header.rope}
    forged = pack_block(tensors + 1, key=KEY, keys=seal_keys(KEY), codec=RAW, **fields)
    with pytest.raises(BlockError, match="seal does not match"):
        unpack(forged)


@pytest.mark.parametrize("codec", codec_names())
def test_no_block_is_longer_than_the_bound(codec: str) -> None:
    tensors, data = make(codec)
    bound = block_bytes_max(tuple(tensors.shape), tensors.dtype, get_codec(codec))
    assert len(data) <= bound < len(data) + (1 << 16)


class Shifted(type(RAW)):
    """A codec of the caller's own, which no name finds."""

    name = "shifted"

    def encode(self, block: torch.Tensor, out: torch.Tensor) -> None:
        super().encode(block + 1, out)

    def decode(self, data: torch.Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        return super().decode(data, shape, dtype) - 1


def test_the_codec_may_be_the_callers_own() -> None:
    tensors = torch.randn(1, 2, 1, 4, 4)
    words = {"key": KEY, "keys": KEYS, "codec": Shifted()}
    data = pack_block(tensors, block_index=0, first_position=0, **words)
    torch.testing.assert_close(unpack_block(bytearray(data), **words)[1], tensors)
    with pytest.raises(BlockError, match="of codec 'shifted', not 'raw'"):
        unpack(data)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"shape": [3, 2, 2, 16]}, "not one of a block"),
        ({"shape": [3, 3, 2, 16, 32]}, "not one of a block"),
        ({"shape": [3, 2, 2, 16, 0]}, "not one of a block"),
        ({"shape": [3, 2, 2, 16, 1 << 40]}, "not one of a block"),
        ({"shape": [3, 2, 2, 16, 33]}, "makes"),
        ({"shape": None}, "cannot be read"),
        ({"shape": [2, 2, 2, 16, 32]}, "makes 2 x 8192"),
        ({"layer_bytes": 1}, "cannot be read"),
        ({"codec": "zip"}, "of codec 'zip', not 'raw'"),
        ({"dtype": "int64"}, "cannot be decoded"),
        ({"dtype": []}, "cannot be decoded"),
        ({"shape": [3, 2, 2, 16, float("inf")]}, "cannot be read"),
        ({"colour": "blue"}, "cannot be read"),
    ],
)
def test_a_header_that_lies_is_found_out(fields: dict[str, object], message: str) -> None:
    _, data = make()
    with pytest.raises(BlockError, match=message):
        unpack(forge(data, **fields))


@pytest.mark.parametrize("header", [b"", b"{}", b"[]", b"3", b"\xff", b"[" * 60_000, b'{"shape": 3}', b'{"shape": "abcde"}'])
def test_a_header_that_is_none_is_found_out(header: bytes) -> None:
    with pytest.raises(BlockError, match="header cannot be read"):
        unpack(sealed(header))


def test_another_format_is_named() -> None:
    _, data = make()
    data[15] = 9
    with pytest.raises(BlockError, match="format 9; known is 3"):
        unpack(data)


def test_what_cannot_be_packed_is_named() -> None:
    words = {"key": KEY, "keys": KEYS, "codec": RAW, "block_index": 0, "first_position": 0}
    with pytest.raises(CodecError, match="int64; supported are float32, float16, bfloat16"):
        pack_block(torch.zeros(1, 2, 1, 4, 4, dtype=torch.int64), **words)
    with pytest.raises(CodecError, match=r"\[1, 1, 4, 4\]; wanted is"):
        pack_block(torch.zeros(1, 1, 4, 4), **words)
