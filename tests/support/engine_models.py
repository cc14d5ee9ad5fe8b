"""Tiny models with random weights that engines load from a folder, with a tokenizer of numbered words."""

from pathlib import Path
from typing import Any

VOCABULARY = 512
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 2048,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "dtype": "float32",
}
LATENT = {
    "num_key_value_heads": 4,
    "kv_lora_rank": 512,
    "q_lora_rank": None,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
    "first_k_dense_replace": 1,
    "n_shared_experts": 1,
    "topk_method": "greedy",
    "n_group": 1,
    "topk_group": 1,
}
"""Sizes of latent attention that vLLM's kernels for CPUs take, and experts as few as can be."""


def save_model(folder: Path, family: str, **sizes: Any) -> Path:
    """Save a model and its tokenizer, and return the folder.

    Args:
        family: Name of transformers' classes without `Config` and `ForCausalLM`.
        sizes: Arguments of the configuration beside `SIZES`.
    """
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    names = ["<unk>", "<s>", "</s>", *(f"w{number}" for number in range(VOCABULARY - 3))]
    tokenizer = Tokenizer(models.WordLevel({name: number for number, name in enumerate(names)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    torch.manual_seed(1)
    config = getattr(transformers, f"{family}Config")(**SIZES | sizes)
    model = getattr(transformers, f"{family}ForCausalLM")(config)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.12)  # with smaller weights all prompts end in the same token
    model.save_pretrained(folder)
    return folder
