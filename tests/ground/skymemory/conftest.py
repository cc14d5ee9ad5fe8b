"""Small models for the tests of what touches models. Torch is imported only where one is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from zlib import crc32

import pytest

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

MakeLlama = Callable[..., "PreTrainedModel"]


@pytest.fixture(scope="session")
def make_llama() -> MakeLlama:
    """Makes small Llamas with random weights, 3 layers, 4 heads, 2 of them for KV: `make_llama(seed, dtype, **config)`."""
    from transformers import LlamaConfig

    from skymemory.demo.model import VOCABULARY, random_llama

    def make(seed: int = 1, dtype: object = None, **config: object) -> PreTrainedModel:
        import torch

        sizes = {
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "vocab_size": VOCABULARY,
            "max_position_embeddings": 1024,
        }
        return random_llama(LlamaConfig(**{**sizes, **config}), seed=seed, dtype=dtype or torch.float32)

    return make


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """For random weights: another one in every test, and the same in every run, for of tokens that are all but equally likely
    rounding chooses."""
    return crc32(request.node.nodeid.encode())


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerBase:
    """The demo's. Do not change it."""
    from skymemory.demo.model import demo_tokenizer

    return demo_tokenizer()
