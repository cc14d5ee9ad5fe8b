"""A small model that keeps its answers wherever segments are linked, and lines of prompts for its check."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedModel

WORDS = ["orbit", "plane", "chunk", "block", "cache", "host", "ground", "window", "packet", "answer", "prompt", "token"]


def linkable_llama(seed: int = 5) -> PreTrainedModel:
    """Return a Llama whose answers have one token.

    The attention of layer 0 adds next to nothing, so keys and values of layer 1 depend on their own token only.
    Layer 1 attends to them, so shuffled ones change the answer.
    """
    import torch
    from transformers import LlamaConfig

    from skymemory.demo.model import VOCABULARY, random_llama

    config = LlamaConfig(
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        vocab_size=VOCABULARY,
        max_position_embeddings=4096,
        bos_token_id=0,
    )
    model = random_llama(config, seed=seed)
    with torch.no_grad():
        model.model.layers[0].self_attn.o_proj.weight.mul_(1e-3)
    model.generation_config.eos_token_id = list(range(VOCABULARY))
    return model


def prompt_lines(count: int, seed: int = 1) -> list[str]:
    """Return lines of a file of prompts: a text, two segments and a question each."""
    drawn = random.Random(seed)

    def text(words: int) -> str:
        return " ".join(drawn.choices(WORDS, k=words))

    return [json.dumps([text(2), {"segment": text(6)}, {"segment": text(6)}, text(3)]) for _ in range(count)]
