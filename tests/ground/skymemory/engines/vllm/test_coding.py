"""Blocks of the paged cache through the integer codecs: how much is lost, and that exact blocks stay exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from skymemory.engines.vllm.coding import Coder, CodingError
from skymemory.engines.vllm.pages import Pages
from skymemory.engines.vllm.plans import LoadPlan
from skymemory.engines.vllm.settings import UnsupportedError

from .test_worker import Client, Worker, client, make, plans  # noqa: F401  # fixtures

LAYERS, BLOCKS, HEADS, TOKENS, DIM = 3, 4, 2, 32, 16


def caches(dtype: torch.dtype = torch.float32, content: int = 2 * DIM, blocks: int = BLOCKS) -> dict[str, torch.Tensor]:
    torch.manual_seed(1)
    return {f"layer.{index}": torch.randn(blocks, HEADS, TOKENS, content).to(dtype) for index in range(LAYERS)}


def payload_of(pages: Pages, block: int) -> torch.Tensor:
    payload = torch.empty(pages.payload_bytes, dtype=torch.uint8)
    for layer in range(len(pages)):
        pages.read(layer, block, payload)
    return payload


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize(("codec", "steps"), [("int8", 254), ("int4", 15), ("int4g16", 15)])
def test_what_is_lost_is_bounded(dtype: torch.dtype, halves: bool, codec: str, steps: int) -> None:
    pages = Pages(caches(dtype), BLOCKS)
    coder = Coder(codec, pages, has_halves=halves)
    payload = payload_of(pages, 2)
    room = torch.empty(LAYERS * coder.layer_bytes, dtype=torch.uint8)
    coder.encode(payload, room)
    values, back = payload.view(dtype).float(), coder.decode(room).view(dtype).float()
    span = 2 * values.abs().max()
    rounding = values.abs().max() * (2**-10 if dtype == torch.float32 else 2**-7)
    assert (values - back).abs().max() <= span / steps / 2 + rounding
    share = 0.7 if codec == "int8" else 0.5
    assert room.numel() < payload.numel() * share * (4 / dtype.itemsize if dtype.itemsize < 4 else 1)


def test_scales_of_keys_are_of_channels_and_those_of_values_of_tokens() -> None:
    """One large channel of the keys spoils no other, where keys and values stand beside each other as on GPUs."""
    given = caches()
    for cache in given.values():
        cache[..., 3] *= 1000
    pages = Pages(given, BLOCKS)
    coder = Coder("int8", pages, has_halves=False)
    payload = payload_of(pages, 1)
    room = torch.empty(LAYERS * coder.layer_bytes, dtype=torch.uint8)
    coder.encode(payload, room)
    lost = (payload.view(torch.float32) - coder.decode(room).view(torch.float32)).view(-1, 2 * DIM).abs()
    assert lost[:, :3].max() < 0.05
    assert lost[:, DIM:].max() < 0.05


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (caches(torch.float8_e4m3fn), "in 16 or 32 bits; they are .* in float8_e4m3fn"),
        (caches(content=31), "needs keys and values of equal size; a token has 31 values"),
        ({**caches(), "other": torch.zeros(BLOCKS, HEADS, TOKENS, 8)}, "needs layers of equal shape"),
    ],
)
def test_what_a_codec_cannot_take(given: dict[str, torch.Tensor], message: str) -> None:
    with pytest.raises(CodingError, match=message):
        Coder("int8", Pages(given, BLOCKS))


@pytest.mark.parametrize("codec", ["raw", "int8", "int4"])
def test_through_a_worker(make: Callable[..., Worker], client: Client, codec: str) -> None:  # noqa: F811
    worker = make(caches=caches(blocks=20), codec=codec)
    before = worker.bytes_of(3)
    worker.step(saves=plans(3))
    assert len(worker.saved(1).done) == 1
    [plan] = plans(7)
    worker.step(loads=[LoadPlan("a", (plan,))])
    assert worker.loaded() == ({"a"}, set())
    lost = max(float((one - other).abs().max()) for one, other in zip(before, worker.bytes_of(7), strict=True))
    assert lost == 0 if codec == "raw" else 0 < lost < {"int8": 0.03, "int4": 0.4}[codec]
    assert worker.side.layout.format.dtype == ("float32" if codec == "raw" else f"float32 {codec}")


def test_codecs_never_meet(client: Client) -> None:  # noqa: F811
    formats = [Worker(client, caches=caches(blocks=20), codec=codec).side.layout.format for codec in ("raw", "int8", "int4")]
    assert len(set(formats)) == 3  # and so are roots and keys


def test_what_cannot_be_coded_is_not_stored(make: Callable[..., Worker], client: Client) -> None:  # noqa: F811
    given: dict[str, Any] = caches(blocks=20)
    given["layer.1"][3] = float("inf")
    worker = make(caches=given, codec="int8")
    worker.step(saves=plans(3, 4))
    told = worker.saved(2)
    assert (len(told.failed), len(told.done)) == (1, 1)


def test_a_worker_says_what_it_cannot_take(client: Client) -> None:  # noqa: F811
    with pytest.raises(UnsupportedError, match="layout that is not supported: codec int4 needs"):
        Worker(client, caches=caches(torch.float8_e4m3fn, blocks=20), codec="int4")
    with pytest.raises(UnsupportedError, match="layout that is not supported: head_dim is 16; int4g32 needs a multiple of 32"):
        Worker(client, caches=caches(blocks=20), codec="int4g32")
