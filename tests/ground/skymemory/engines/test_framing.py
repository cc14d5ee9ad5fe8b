"""Blocks of engines as bytes: sealed in place, opened in place, and what differs is told."""

import random
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skymemory.engines.framing import HEADER_BYTES, BlockFormat, Framing
from skymemory.wire.envelope import BlockError, Kind, seal_in_place
from skymemory.wire.key_derivation import block_key, seal_keys

FORMAT = BlockFormat(block_tokens=16, layers=3, layer_bytes=500, dtype="bfloat16", layout="k|v,token,kv_head,head_dim")
ROOT = FORMAT.root(b"", "model", "revision")
KEY = block_key(ROOT, b"first")


def packed(block_format: BlockFormat = FORMAT, root: bytes = ROOT, key: bytes = KEY) -> bytearray:
    own = Framing(block_format, root)
    block = bytearray(own.block_bytes)
    for number, layer in enumerate(own.layers(memoryview(block))):
        layer[:] = random.Random(number).randbytes(block_format.layer_bytes)
    own.seal(memoryview(block), key)
    return block


@settings(deadline=None)
@given(
    tokens=st.integers(1, 1 << 20),
    layers=st.integers(1, 8),
    layer_bytes=st.integers(1, 300),
    dtype=st.sampled_from(["float32", "bfloat16", "float8_e4m3fn"]),
    data=st.data(),
)
def test_round_trip(tokens: int, layers: int, layer_bytes: int, dtype: str, data: st.DataObject) -> None:
    block_format = BlockFormat(tokens, layers, layer_bytes, dtype, "k|v,token,kv_head,head_dim")
    own = Framing(block_format, block_format.root(b""))
    contents = [data.draw(st.binary(min_size=layer_bytes, max_size=layer_bytes)) for _ in range(layers)]
    block = memoryview(bytearray(own.block_bytes))
    for place, content in zip(own.layers(block), contents, strict=True):
        place[:] = content
    own.seal(block, KEY)
    assert all(content not in bytes(block) for content in contents if len(content) > 8)
    own.open(block, KEY)
    assert [bytes(layer) for layer in own.layers(block)] == contents
    assert len(block) == block_format.block_bytes == HEADER_BYTES + layers * layer_bytes


@settings(max_examples=300, deadline=None)
@given(at=st.integers(0, FORMAT.block_bytes - 1), bit=st.integers(0, 7))
def test_any_damage_is_found(at: int, bit: int) -> None:
    block = packed()
    block[at] ^= 1 << bit
    with pytest.raises(BlockError):
        Framing(FORMAT, ROOT).open(memoryview(block), KEY)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"block_tokens": 128}, "block_tokens 16, not 128"),
        ({"dtype": "float32"}, "dtype bfloat16, not float32"),
        ({"layers": 1, "layer_bytes": 1500}, "layers 3, not 1; layer_bytes 500, not 1500"),
        ({"layout": "v|k"}, "layout k|v,token,kv_head,head_dim, not v|k"),
    ],
)
def test_what_differs_is_told(changes: dict[str, int | str], words: str) -> None:
    other = replace(FORMAT, **changes)  # type: ignore[arg-type]
    with pytest.raises(BlockError) as error:
        Framing(other, ROOT).open(memoryview(packed()), KEY)
    assert words in str(error.value)


def test_another_key_another_root_another_thing() -> None:
    own = Framing(FORMAT, ROOT)
    with pytest.raises(BlockError, match="of another key"):
        own.open(memoryview(packed()), block_key(ROOT, b"second"))
    with pytest.raises(BlockError, match="of another model"):
        Framing(FORMAT, FORMAT.root(b"", "model", "other")).open(memoryview(packed()), KEY)
    with pytest.raises(BlockError, match="format 0; known is 3"):
        own.open(memoryview(bytes(own.block_bytes)), KEY)
    later = packed()
    later[15] = 9
    with pytest.raises(BlockError, match="format 9; known is 3"):
        own.open(memoryview(later), KEY)
    with pytest.raises(ValueError, match="1691 bytes of memory for a block of 1692"):
        own.open(memoryview(bytes(own.block_bytes - 1)), KEY)


def test_roots_depend_on_everything_and_on_where_it_stands() -> None:
    others = [replace(FORMAT, dtype="float16"), replace(FORMAT, block_tokens=17), replace(FORMAT, layout="v|k")]
    roots = [one.root(b"s", "a", "bc") for one in (FORMAT, *others)]
    roots += [FORMAT.root(b"s", *parts) for parts in ([], ["a"], ["ab", "c"], ["abc"], ["a", "bc", ""], ["bc", "a"])]
    roots += [FORMAT.root(secret, "a", "bc") for secret in (b"", b"t", b"sa")]
    assert len(set(roots)) == len(roots)
    assert {len(one) for one in roots} == {32}
    assert FORMAT.root(b"s", b"a", "bc") == roots[0]
    keys = {block_key(root, name) for root in roots for name in (b"", b"1", b"2")}
    assert len(keys) == 3 * len(roots)


@pytest.mark.parametrize("header", [b"", bytes(80), b"16\0003\000500", b"\xff" * 144, b"\0" * 1600])
def test_headers_of_a_member_of_the_tenant_are_not_trusted(header: bytes) -> None:
    block = packed()
    seal_in_place(Kind.PAGES, KEY, memoryview(block), header, keys=seal_keys(ROOT))
    with pytest.raises(BlockError, match="of another format"):
        Framing(FORMAT, ROOT).open(memoryview(block), KEY)


def test_padding_is_no_part_of_a_layer() -> None:
    block = packed()
    Framing(FORMAT, ROOT).open(memoryview(block), KEY)
    header = bytes(block[48:HEADER_BYTES])
    seal_in_place(Kind.PAGES, KEY, memoryview(block), header, keys=seal_keys(ROOT), padding=1)
    with pytest.raises(BlockError, match="of another format"):
        Framing(FORMAT, ROOT).open(memoryview(block), KEY)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"block_tokens": 0}, "block_tokens is 0; allowed are 1 to 4294967295"),
        ({"layer_bytes": 1 << 40}, "layer_bytes is 1099511627776"),
        ({"dtype": "x" * 17}, "allowed are 1 to 16 ASCII"),
        ({"layout": ""}, "allowed are 1 to 56 ASCII"),
        ({"layout": "ü"}, "allowed are 1 to 56 ASCII"),
    ],
)
def test_formats_that_cannot_be(changes: dict[str, int | str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        replace(FORMAT, **changes)  # type: ignore[arg-type]


def test_engines_need_little() -> None:
    """What engines import brings no torch, no numpy and no part of the agent that they do not need."""
    program = (
        "import sys, skymemory.engines.framing, skymemory.agent.client\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules} & {'torch', 'numpy', 'pydantic', 'aiohttp', 'click'}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_a_part_of_a_block_counts_for_its_share_of_the_tokens() -> None:
    assert FORMAT.share(1) == (16, "bfloat16")
    assert FORMAT.share(4) == (4, "bfloat16 (a share of 16 in each of 4 workers)")
    assert FORMAT.share(32)[0] == 1
