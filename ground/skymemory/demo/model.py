"""The demo's model and tokenizer: made on the spot from a seed and from the shipped document, the same on every machine. No download.

The model is a Llama of 100 M parameters with random weights. It writes nonsense, but it costs what a trained one costs, and its tokens depend on
the whole prompt: the weights are spread so that attention picks out tokens and does not average over them (a test damages the cache and
sees the tokens change).
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.initialization import no_init_weights

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

VOCABULARY = 1024
_LEVELS = 1 << 24
_UNIFORM_STD = 12**-0.5
"""of numbers spread evenly over an interval of length 1"""


def demo_prompt() -> str:
    """The shipped document: a chapter of about 1,900 words, 2,900 tokens of the demo's tokenizer."""
    return files(__package__).joinpath("handbook.txt").read_text(encoding="utf-8")


def demo_tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer of 1,024 tokens, learned from the shipped document in some hundredths of a second; always the same."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator([demo_prompt()], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="</s>")


def demo_model(seed: int = 7) -> LlamaForCausalLM:
    """A Llama of 100 M parameters, float32, in about two seconds. 12 layers, 12 heads of which 4 have keys and values, 64 channels each."""
    config = LlamaConfig(
        hidden_size=768,
        intermediate_size=2816,
        num_hidden_layers=12,
        num_attention_heads=12,
        num_key_value_heads=4,
        vocab_size=VOCABULARY,
        max_position_embeddings=8192,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
    )
    return random_llama(config, seed=seed)


def random_llama(config: LlamaConfig, *, seed: int, dtype: torch.dtype = torch.float32) -> LlamaForCausalLM:
    """A Llama with random weights, ready to run.

    The weights are whole numbers from a Mersenne twister times one factor, so they are the same on every machine, which torch's normal
    distribution is not.

    Args:
        config: sizes of the model.
        seed: of the random numbers.
        dtype: of the weights.
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with no_init_weights():
            model = LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(before)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 1:
                weight.fill_(1.0)  # the norms
                continue
            steps = torch.empty(weight.shape, dtype=torch.int32).random_(-_LEVELS // 2, _LEVELS // 2, generator=generator)
            weight.copy_(steps.float().mul_(_std(name, weight) / _UNIFORM_STD / _LEVELS))
    return model.eval()


def load(model: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A causal language model and its tokenizer from a directory or the Hugging Face hub."""
    loaded = AutoModelForCausalLM.from_pretrained(model, dtype="auto").eval()
    if torch.cuda.is_available():
        loaded = loaded.to("cuda")
    return loaded, AutoTokenizer.from_pretrained(model)


def _std(name: str, weight: torch.Tensor) -> float:
    """Standard deviation of a weight, so that its outputs have deviation 1 for inputs of deviation 1; queries and keys more, for attention
    that picks."""
    inputs = weight.shape[1]
    if "embed_tokens" in name:
        return 1.0
    return float((1.6 if "q_proj" in name or "k_proj" in name else 1.0) * inputs**-0.5)
