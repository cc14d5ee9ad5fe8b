import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from skymemory.prompt.codecs import Codec, CodecError, codec_names, get_codec
from skymemory.sky.constellation import ConfigError, Constellation

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
BITS = {"int8": 8, "int4": 4, "int4g16": 4, "int4g32": 4, "quanto": 8, "hqq": 8}
GROUPS = {"int4g16": 16, "int4g32": 32}
EPSILON = {torch.float32: 2.0**-23, torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}


@st.composite
def shapes(draw: st.DrawFn) -> tuple[int, ...]:
    """Of blocks: one or many heads (GQA), few and many tokens."""
    heads, tokens = draw(st.sampled_from([1, 2, 3, 8])), draw(st.sampled_from([1, 2, 16, 128]))
    return draw(st.integers(1, 4)), 2, heads, tokens, draw(st.sampled_from([2, 8, 32, 64]))


def make(shape: tuple[int, ...], dtype: torch.dtype, seed: int, scale: float = 1.0) -> torch.Tensor:
    """Keys with channels that are far larger than others, as real ones have them."""
    generator = torch.Generator().manual_seed(seed)
    block = torch.randn(shape, generator=generator)
    block[:, 0] *= torch.randn(shape[-1], generator=generator).exp() * 3
    return (block * scale).to(dtype)


def round_trip(codec: Codec, block: torch.Tensor) -> torch.Tensor:
    shape = tuple(block.shape)
    data = torch.zeros(shape[0], codec.layer_bytes(shape, block.dtype), dtype=torch.uint8)
    codec.encode(block, data)
    return codec.decode(data, shape, block.dtype)


def reference_bound(block: torch.Tensor, name: str) -> torch.Tensor:
    """Half a step of a perfect quantiser with the codec's axes: keys per channel, values per token, or groups of channels of a
    token; and all roundings."""
    if group := GROUPS.get(name):
        block = block.unflatten(-1, (-1, group))
        return bound_on_axes(block, ((0, 4), (1, 4)), BITS[name], symmetric=False).flatten(-2)
    return bound_on_axes(block, ((0, 2), (1, 3)), BITS[name], symmetric=name in ("int8", "quanto"))


def bound_on_axes(block: torch.Tensor, axes: tuple[tuple[int, int], ...], bits: int, symmetric: bool) -> torch.Tensor:
    bound = torch.empty(block.shape)
    for part, axis in axes:
        values = block[:, part].float()
        largest = values.abs().amax(axis, keepdim=True)
        if symmetric:
            step = largest / (2 ** (bits - 1) - 1)
        else:
            step = (values.amax(axis, keepdim=True) - values.amin(axis, keepdim=True)) / (2**bits - 1)
        rounding = largest * (2.0**-9 + EPSILON[block.dtype]) + 1e-5  # scales of 16 bits; the result's own dtype
        bound[:, part] = step * 0.51 + rounding
    return bound


@pytest.mark.parametrize("dtype", DTYPES)
@given(shape=shapes(), seed=st.integers(0, 2**16))
@settings(deadline=None, max_examples=30)
def test_raw_gives_every_bit_back(dtype: torch.dtype, shape: tuple[int, ...], seed: int) -> None:
    bits = torch.randint(0, 256, (*shape, dtype.itemsize), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))
    block = bits.view(dtype).view(shape)  # any bits, NaN and infinity among them
    back = round_trip(get_codec("raw"), block)
    assert back.dtype == dtype
    assert torch.equal(back.contiguous().view(torch.uint8), block.view(torch.uint8))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", sorted(BITS))
@given(shape=shapes(), seed=st.integers(0, 2**16), scale=st.sampled_from([1e-3, 1.0, 50.0]))
@settings(deadline=None, max_examples=20)
def test_error_is_within_half_a_step(name: str, dtype: torch.dtype, shape: tuple[int, ...], seed: int, scale: float) -> None:
    codec, block = get_codec(name), make(shape, dtype, seed, scale)
    if name in ("quanto", "hqq") and shape[2] * shape[3] * shape[4] % 2:
        with pytest.raises(CodecError, match="multiple of 4"):
            codec.layer_bytes(shape, dtype)
        return
    if shape[4] % (group := GROUPS.get(name, 1)):
        with pytest.raises(CodecError, match=f"head_dim is {shape[4]}; {name} needs a multiple of {group}"):
            codec.layer_bytes(shape, dtype)
        return
    back = round_trip(codec, block)
    assert back.shape == block.shape
    assert back.dtype == dtype
    error = (back.float() - block.float()).abs() - (1e-4 if name == "hqq" else 0)  # HQQ has a smallest range
    assert bool((error <= reference_bound(block, name)).all())


@pytest.mark.parametrize("name", codec_names())
def test_constant_and_zero_blocks_come_back(name: str) -> None:
    for value in (0.0, 1.0, -2.5):
        block = torch.full((2, 2, 2, 8, 32), value)
        torch.testing.assert_close(round_trip(get_codec(name), block), block, rtol=1e-2, atol=1e-6)


@pytest.mark.parametrize("name", codec_names())
def test_layers_are_independent_runs(name: str) -> None:
    """The first layers can be decoded from their bytes alone: those of a block arrive first."""
    codec, block = get_codec(name), make((5, 2, 2, 16, 32), torch.float32, 1)
    shape = tuple(block.shape)
    data = torch.zeros(5, codec.layer_bytes(shape, block.dtype), dtype=torch.uint8)
    codec.encode(block, data)
    whole = codec.decode(data, shape, block.dtype)
    first = codec.decode(data[:2].clone(), (2, *shape[1:]), block.dtype)
    assert torch.equal(first, whole[:2])


@pytest.mark.parametrize("name", sorted(BITS))
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("part", [0, 1])
def test_values_that_are_not_finite_are_refused(name: str, value: float, part: int) -> None:
    block = make((1, 2, 1, 8, 32), torch.float32, 0)
    block[0, part, 0, 3, 3] = value
    with pytest.raises(CodecError, match="not finite"):
        round_trip(get_codec(name), block)


@pytest.mark.parametrize(
    ("name", "ratio"),
    [("int8", 0.52), ("int4", 0.28), ("int4g16", 0.376), ("int4g32", 0.313), ("quanto", 0.53), ("hqq", 0.56)],
)
def test_size_beside_bf16(name: str, ratio: float) -> None:
    shape = (22, 2, 4, 128, 64)  # TinyLlama-1.1B
    raw = get_codec("raw").layer_bytes(shape, torch.bfloat16)
    assert get_codec(name).layer_bytes(shape, torch.bfloat16) / raw < ratio


@pytest.mark.parametrize(("name", "token_bytes"), [("int4g16", 49_152), ("int4g32", 40_960)])
@pytest.mark.parametrize("tokens", [1, 7, 128])
def test_groups_cost_a_token_of_an_8b_model_the_same_in_blocks_of_any_length(name: str, token_bytes: int, tokens: int) -> None:
    assert 32 * get_codec(name).layer_bytes((32, 2, 8, tokens, 128), torch.bfloat16) == tokens * token_bytes


@pytest.mark.parametrize("name", sorted(GROUPS))
@pytest.mark.parametrize("part", [0, 1])
def test_a_large_value_spoils_its_own_group_alone(name: str, part: int) -> None:
    block = make((2, 2, 2, 16, 64), torch.float32, 3)
    small = round_trip(get_codec(name), block)
    block[1, part, 1, 5, 40] = 10_000
    back = round_trip(get_codec(name), block)
    lost = (back - small).abs() > 0
    first = 40 // GROUPS[name] * GROUPS[name]
    assert bool(lost[1, part, 1, 5, first : first + GROUPS[name]].any())
    lost[1, part, 1, 5, first : first + GROUPS[name]] = False
    assert not bool(lost.any())


@pytest.mark.parametrize("name", sorted(GROUPS))
def test_tokens_are_coded_alone(name: str) -> None:
    """A token's values come back the same, whatever block it stands in: blocks of a segment end anywhere."""
    block = make((2, 2, 2, 9, 64), torch.bfloat16, 4)
    apart = [round_trip(get_codec(name), block[:, :, :, start : start + 4].contiguous()) for start in (0, 4, 8)]
    assert torch.equal(torch.cat(apart, 3), round_trip(get_codec(name), block))


def test_a_range_too_large_for_16_bits_is_refused() -> None:
    block = torch.zeros(1, 2, 1, 1, 32)
    block[..., 0] = 1e5
    block[..., 1] = -1e5
    for name in GROUPS:
        with pytest.raises(CodecError, match="too large for a 16-bit scale"):
            round_trip(get_codec(name), block)


def test_the_constellation_file_names_the_codecs() -> None:
    for name in codec_names():
        assert Constellation().replace(cache={"codec": name}).cache.codec == name
    with pytest.raises(ConfigError, match='"raw", "int8", "int4", "int4g16", "int4g32", "quanto" and "hqq"'):
        Constellation().replace(cache={"codec": "zip"})


def test_unknown_codec_names_those_there_are() -> None:
    with pytest.raises(ValueError, match="'zip'; allowed are raw, int8, int4, int4g16, int4g32, quanto, hqq"):
        get_codec("zip")


@pytest.mark.parametrize(("name", "package"), [("quanto", "optimum"), ("hqq", "hqq")])
def test_a_missing_package_is_named_when_it_is_needed(name: str, package: str) -> None:
    program = f"""
import sys
sys.modules[{package!r}] = None  # as if it were not installed
from skymemory.prompt.codecs import get_codec
get_codec("int8")
try:
    get_codec({name!r})
except ImportError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert f"codec '{name}'" in run.stdout
    assert "pip install '.[model]'" in run.stdout
