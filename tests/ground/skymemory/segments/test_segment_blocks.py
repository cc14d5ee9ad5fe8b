import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from skymemory.prompt.codecs import CodecError, get_codec
from skymemory.prompt.huggingface import Geometry
from skymemory.segments.groups import layer_groups
from skymemory.segments.keys import SegmentKeys
from skymemory.segments.segment_blocks import SegmentCoder
from skymemory.wire.envelope import BlockError, Kind, unseal
from skymemory.wire.key_derivation import seal_keys
from support.segments import GEOMETRY, tensor_of, tokens_of

ROOT = bytes(32)


def coder_of(tokens: list[int], block_tokens: int = 16, geometry: Geometry = GEOMETRY, codec: str = "raw") -> SegmentCoder:
    groups = layer_groups(geometry.layers)
    return SegmentCoder(SegmentKeys(ROOT, tokens, block_tokens, len(groups)), geometry, groups, get_codec(codec))


@given(
    count=st.integers(1, 40),
    block_tokens=st.sampled_from([1, 7, 16, 64]),
    layers=st.integers(2, 20),
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
)
@settings(max_examples=30)
def test_blocks_of_all_groups_make_the_segment_again(count: int, block_tokens: int, layers: int, dtype: torch.dtype) -> None:
    geometry = Geometry(layers, 2, 8, dtype, (torch.device("cpu"),) * layers)
    tokens = tokens_of(count)
    tensors, coder, groups = tensor_of(tokens, geometry), coder_of(tokens, block_tokens, geometry), layer_groups(layers)
    rows = []
    for group in range(len(groups)):
        blocks = [coder.pack(tensors, block, group) for block in range(-(-count // block_tokens))]
        assert all(len(data) <= coder.bytes_max(group) for data in blocks)
        rows.append(torch.cat([coder.unpack(data, block, group) for block, data in enumerate(blocks)], 3))
    assert torch.equal(torch.cat(rows), tensors)


@pytest.mark.parametrize("codec", ["int8", "int4", "int4g16", "int4g32"])
def test_what_codecs_lose_is_small_also_in_a_last_block_of_one_token(codec: str) -> None:
    tokens = tokens_of(17)
    tensors, coder = tensor_of(tokens), coder_of(tokens, codec=codec)
    back = torch.cat([coder.unpack(coder.pack(tensors, block, 2), block, 2) for block in range(2)], 3)
    assert (back - tensors[2:3]).abs().max() < 0.3


def test_a_block_is_only_itself() -> None:
    tokens = tokens_of(33)
    tensors, coder = tensor_of(tokens), coder_of(tokens)
    data = coder.pack(tensors, 1, 1)
    for block, group in ((0, 1), (2, 1), (1, 0)):
        with pytest.raises(BlockError, match="the seal does not match"):
            coder.unpack(bytearray(data), block, group)
    with pytest.raises(BlockError, match="the seal does not match"):  # another segment's
        coder_of(tokens_of(33, seed=1)).unpack(bytearray(data), 1, 1)
    assert coder.unpack(data, 1, 1).shape == (1, 2, 2, 16, 32)


def test_a_block_is_no_block_of_a_prompt() -> None:
    """Not even under its own key and with its own keys of the seal."""
    tokens = tokens_of(16)
    data = coder_of(tokens).pack(tensor_of(tokens), 0, 0)
    key = SegmentKeys(ROOT, tokens, 16, 3).of_group(0)[0]
    with pytest.raises(BlockError, match="the seal does not match"):
        unseal(Kind.PROMPT, key, data, keys=seal_keys(ROOT))


def test_a_block_of_another_shape_or_dtype_is_found_out() -> None:
    """It has the right key and seal: somebody of the tenant with another program made it."""
    tokens = tokens_of(16)
    for geometry in (Geometry(4, 1, 32, torch.float32, ()), Geometry(4, 2, 32, torch.bfloat16, ())):
        data = coder_of(tokens, geometry=geometry).pack(tensor_of(tokens, geometry), 0, 0)
        with pytest.raises(BlockError, match="shape, dtype, index, position and rotation of the block are"):
            coder_of(tokens).unpack(data, 0, 0)


def test_what_a_codec_cannot_take() -> None:
    tensors = tensor_of(tokens_of(16))
    tensors[0, 0, 0, 0, 0] = float("nan")
    with pytest.raises(CodecError, match="not finite"):
        coder_of(tokens_of(16), codec="int4g16").pack(tensors, 0, 0)
