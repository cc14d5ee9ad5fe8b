"""The demo's model: fast to make, always the same, and its tokens depend on every part of the cache."""

import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from transformers import DynamicCache

from skymemory.demo.model import demo_model, demo_prompt, demo_tokenizer
from skymemory.demo.run import generate
from skymemory.prompt.huggingface import HuggingFaceEngine

BLOCK = 128
NEW_TOKENS = 30

pytestmark = pytest.mark.model


def turn(keys: torch.Tensor, model: object, positions: int) -> torch.Tensor:
    """Keys [..., tokens, head_dim] with the rotary embedding of so many positions more."""
    cos, sin = model.model.rotary_emb(keys, torch.tensor([[positions]]))
    half = keys.shape[-1] // 2
    return keys * cos[0] + torch.cat((-keys[..., half:], keys[..., :half]), dim=-1) * sin[0]


def at(block: int) -> slice:
    return slice(block * BLOCK, (block + 1) * BLOCK)


def zero(block: int) -> Callable[..., None]:
    def damage(keys: torch.Tensor, values: torch.Tensor, model: object) -> None:
        keys[:, :, at(block)] = 0
        values[:, :, at(block)] = 0

    return damage


def values_of_two_blocks_swapped(keys: torch.Tensor, values: torch.Tensor, model: object) -> None:
    values[:, :, :BLOCK], values[:, :, at(1)] = values[:, :, at(1)].clone(), values[:, :, :BLOCK].clone()


def block_of_another_place(keys: torch.Tensor, values: torch.Tensor, model: object) -> None:
    keys[:, :, at(2)] = keys[:, :, at(9)]
    values[:, :, at(2)] = values[:, :, at(9)]


def one_position_off(keys: torch.Tensor, values: torch.Tensor, model: object) -> None:
    keys.copy_(turn(keys, model, 1))


DAMAGES: dict[str, Callable[..., None]] = {
    "first block zero": zero(0),
    "a block in the middle zero": zero(11),
    "last block zero": zero(21),
    "values of two blocks swapped": values_of_two_blocks_swapped,
    "block of another place": block_of_another_place,
    "one position off": one_position_off,
}


@pytest.fixture(scope="module")
def scene():
    model = demo_model()
    ids = demo_tokenizer()(demo_prompt())["input_ids"]
    run = generate(model, ids, NEW_TOKENS)
    engine = HuggingFaceEngine(model)
    blocks = [engine.block(run.cache, start, start + BLOCK) for start in range(0, len(ids) - BLOCK + 1, BLOCK)]
    return model, ids, run.tokens, engine, blocks


class Fixed:
    """Hands out one cache, as a manager would."""

    def __init__(self, cache: DynamicCache) -> None:
        self._cache = cache

    def get_cache(self, prompt: object) -> DynamicCache:
        return self._cache


def test_document_and_model_are_large_enough(scene) -> None:
    model, ids, tokens, _, blocks = scene
    assert len(demo_prompt().split()) > 1800
    assert len(ids) >= 2000
    assert demo_tokenizer().decode(ids) == demo_prompt()
    assert 0.9e8 < sum(weight.numel() for weight in model.parameters()) < 1.1e8
    assert len(blocks) == len(ids) // BLOCK == 22
    assert len(tokens) == NEW_TOKENS
    assert len(set(tokens)) > NEW_TOKENS // 2  # it does not repeat itself, which would hide differences


def test_the_right_cache_gives_the_same_tokens(scene) -> None:
    model, ids, tokens, engine, blocks = scene
    cache = engine.cache(blocks, len(blocks) * BLOCK)
    assert generate(model, ids, NEW_TOKENS, manager=Fixed(cache)).tokens == tokens


@pytest.mark.parametrize("name", DAMAGES)
def test_a_wrong_cache_changes_the_tokens(scene, name) -> None:
    model, ids, tokens, engine, blocks = scene
    cache = engine.cache(blocks, len(blocks) * BLOCK)
    for layer in cache.layers:
        DAMAGES[name](layer.keys, layer.values, model)
    assert generate(model, ids, NEW_TOKENS, manager=Fixed(cache)).tokens != tokens


def test_every_process_makes_the_same(scene) -> None:
    program = (
        "from skymemory.demo.model import *; from skymemory.prompt.fingerprint import Fingerprint;"
        "print(Fingerprint(demo_model(), demo_tokenizer()).digest().hex())"
    )
    seen = {subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout for _ in range(2)}
    assert len(seen) == 1
