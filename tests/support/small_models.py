"""Small transformers models of several architectures, with random weights, for tests of linked segments."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch import nn

_SIZES = {
    "vocab_size": 256,
    "hidden_size": 96,
    "intermediate_size": 128,
    "num_hidden_layers": 5,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 24,
    "max_position_embeddings": 2048,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_ROPE = {"rope_theta": 10000.0, "factor": 8.0}
_YARN = {**_ROPE, "rope_type": "yarn", "original_max_position_embeddings": 256}
_LLAMA3 = {
    **_ROPE,
    "rope_type": "llama3",
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 128,
}

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("Llama", {}),
    "llama, llama3": ("Llama", {"rope_parameters": _LLAMA3}),
    "llama, yarn": ("Llama", {"rope_parameters": _YARN}),
    "qwen3": ("Qwen3", {}),  # norms keys
    "mistral": ("Mistral", {"sliding_window": None}),
    "glm": ("Glm", {}),  # turns half of the channels, in pairs of neighbours
    "cohere": ("Cohere", {}),  # pairs of neighbours, in float32
    "phi3": ("Phi3", {}),  # one projection for all
    "smollm3": ("SmolLM3", {"no_rope_layers": [1, 1, 0, 1, 1]}),  # one layer does not turn
}


def small_model(name: str, dtype: torch.dtype = torch.float32, attention: str = "sdpa", **settings: Any) -> Any:
    """Make a model; the same arguments give the same weights."""
    kind, own = MODELS.get(name, (name, {}))
    config = getattr(transformers, f"{kind}Config")(**{**_SIZES, **own, **settings}, attn_implementation=attention)
    torch.manual_seed(7)
    model = getattr(transformers, f"{kind}ForCausalLM")(config)
    for parameter in model.parameters():
        if parameter.dim() == 1:  # norms that multiply by 1 would show nothing
            nn.init.uniform_(parameter, 0.5, 1.5)
        else:
            nn.init.normal_(parameter, std=0.12)  # rows must attend to different things
    return model.to(dtype).train(False)
