"""Rows of different lengths in one run of a model."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    BloomConfig,
    DynamicCache,
    GPT2Config,
    LlamaConfig,
    LlamaForCausalLM,
    OPTConfig,
    Qwen3Config,
)

from skymemory.demo.model import random_llama
from skymemory.prompt.fingerprint import Fingerprint
from skymemory.serve.batch import Batch, beginning, with_room

pytestmark = pytest.mark.model

SIZES: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "bos_token_id": None,
    "eos_token_id": None,
}


def random_model(config: Any) -> Any:
    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 0.3)
    return model.train(False)


@pytest.mark.parametrize(
    ("config", "together"),
    [
        (LlamaConfig(**SIZES), True),
        (Qwen3Config(**SIZES), True),
        (GPT2Config(n_embd=64, n_layer=2, n_head=4, vocab_size=100, bos_token_id=1, eos_token_id=2), True),
        (OPTConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64, vocab_size=100), True),
        (BloomConfig(hidden_size=64, n_layer=2, n_head=4, vocab_size=100), False),  # positions in its mask
    ],
    ids=lambda value: type(value).__name__,
)
@torch.no_grad()
def test_rows_together_give_what_they_give_alone(config: Any, together: bool) -> None:
    batch = Batch(random_model(config))
    assert batch.together is together
    prompts = [[7], [index % 90 for index in range(252)], [1, 2, 3, 4]]

    def rows() -> list[DynamicCache]:
        made = [DynamicCache(config=config) for _ in prompts]
        for prompt, row in zip(prompts, made, strict=True):
            batch.read(prompt, row)
        return [with_room(row) for row in made]

    alone, joined = rows(), rows()
    for step in range(8):  # more than there is room for at first: 256
        tokens = [(step + 5 * index) % 90 for index in range(3)]
        one_by_one = torch.stack([batch.read([token], row) for token, row in zip(tokens, alone, strict=True)])
        torch.testing.assert_close(batch.step(tokens, joined), one_by_one, rtol=1e-4, atol=1e-4)
    assert [row.get_seq_length() for row in joined] == [9, 260, 12]


@torch.no_grad()
def test_a_beginning_is_not_changed_by_what_is_written_behind_it() -> None:
    batch = Batch(random_model(LlamaConfig(**SIZES)))
    cache = DynamicCache(config=LlamaConfig(**SIZES))
    batch.read(list(range(20)), cache)
    row = with_room(cache)
    part = beginning(row, 12)
    before = [layer.keys.clone() for layer in part.layers]
    batch.read([5] * 9, row)
    batch.read([6] * 3, part)
    assert (row.get_seq_length(), part.get_seq_length(), cache.get_seq_length()) == (29, 15, 20)
    assert all(torch.equal(layer.keys[:, :, :12], keys) for layer, keys in zip(part.layers, before, strict=True))
    assert all(torch.equal(one.keys[:, :, :20], other.keys) for one, other in zip(row.layers, cache.layers, strict=True))


@pytest.mark.parametrize("refuses", ["to be set", "to run"])
def test_a_model_that_does_not_take_our_attention_runs_rows_one_by_one(refuses: str) -> None:
    class Stubborn(LlamaForCausalLM):
        def set_attn_implementation(self, name: str) -> None:
            if refuses == "to be set" and name != "sdpa":
                raise ValueError(f"no {name}")
            super().set_attn_implementation(name)
            self.attention = name

        def forward(self, *args: Any, **settings: Any) -> Any:
            if refuses == "to run" and getattr(self, "attention", "sdpa") != "sdpa":
                raise RuntimeError("not so")
            return super().forward(*args, **settings)

    batch = Batch(Stubborn(LlamaConfig(**SIZES)).train(False))
    assert not batch.together
    row = DynamicCache(config=LlamaConfig(**SIZES))
    assert batch.read([1, 2, 3], row).shape == (100,)
    assert batch.step([4], [row]).shape == (1, 100)


def test_a_served_model_has_the_keys_that_it_has_elsewhere(letters: Any) -> None:
    model = random_llama(LlamaConfig(**SIZES), seed=1)
    before = Fingerprint(model, letters).digest()
    assert Batch(model).together
    assert Fingerprint(model, letters).digest() == before
