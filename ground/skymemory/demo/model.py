"""The demo's model and tokenizer: made from a seed and from the shipped document, the same on every machine.

The model is a Llama of about 100 M parameters with random weights. It writes nonsense, but it costs as much as a trained one,
and its tokens depend on the whole prompt: the weights are spread so that attention picks out tokens and does not average over
them (a test damages the cache and sees the tokens change).
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, PreTrainedTokenizerFast
from transformers.initialization import no_init_weights

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

VOCABULARY = 1024
_BEGIN, _END = "<s>", "</s>"
SEED = 7
"""Seed of the weights.

Of the seeds that were tried, its 30 tokens have the largest distance between best and second best logit: 0.026. Rounding that
differs between the two runs moves a logit by some 1e-6.
"""
_LEVELS = 1 << 24
_UNIFORM_STD = 12**-0.5
"""Standard deviation of numbers spread evenly over an interval of length 1."""


def demo_prompt() -> str:
    """Return the shipped document: a chapter of about 1,900 words, 2,900 tokens of the demo's tokenizer."""
    return files(__package__).joinpath("handbook.txt").read_text(encoding="utf-8")


def demo_tokenizer() -> PreTrainedTokenizerBase:
    """Return a byte-level BPE tokenizer of 1,024 tokens, learned from the shipped document: always the same."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[_BEGIN, _END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator([demo_prompt()], trainer)
    special = {"bos_token": _BEGIN, "eos_token": _END, "pad_token": _END}
    fast: PreTrainedTokenizerBase = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]  # transformers leaves it untyped
        tokenizer_object=tokenizer, **special
    )
    return fast


def demo_model() -> PreTrainedModel:
    """Return a Llama of 98 M parameters in float32: 12 layers, 12 heads of 64 channels, 4 of them with keys and values."""
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
    return random_llama(config, seed=SEED)


def random_llama(config: LlamaConfig, *, seed: int, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """Return a Llama with random weights, ready to run.

    The weights are whole numbers from a Mersenne twister times one factor, so they are the same on every machine. Those of
    torch's normal distribution are not.

    Args:
        config: Sizes of the model.
        seed: Seed of the random numbers.
        dtype: Type of the weights.
    """
    with no_init_weights():
        model: PreTrainedModel = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]  # transformers leaves it untyped
            config, dtype=dtype
        )
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() == 1:
                weight.fill_(1.0)  # weights of norms
                continue
            steps = torch.empty(weight.shape, dtype=torch.int32).random_(-_LEVELS // 2, _LEVELS // 2, generator=generator)
            weight.copy_(steps.float().mul_(_std(name, weight) / _UNIFORM_STD / _LEVELS))
    model.train(False)
    return model


def load(model: str, *, dtype: str = "auto", device: str | None = None) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a causal language model and its tokenizer from a directory or the Hugging Face hub.

    Args:
        dtype: Type of the weights; "auto": as they were saved.
        device: Torch device; None: a GPU if there is one.

    Raises:
        OSError: There is no such model.
        RuntimeError: There is no such device.
    """
    try:
        loaded: PreTrainedModel = AutoModelForCausalLM.from_pretrained(model, dtype=dtype)
    except ValueError as error:  # the folder has no model that transformers knows
        raise OSError(str(error)) from error
    if device is None and torch.cuda.is_available():
        device = "cuda"
    if device is not None:
        torch.nn.Module.to(loaded, device)
    return loaded.train(False), AutoTokenizer.from_pretrained(model)


def _std(name: str, weight: torch.Tensor) -> float:
    """Return the standard deviation of a weight.

    It keeps outputs as large as inputs. Queries and keys get more, so that attention picks out tokens.
    """
    inputs = weight.shape[1]
    if "embed_tokens" in name:
        return 1.0
    return float((1.6 if "q_proj" in name or "k_proj" in name else 1.0) * inputs**-0.5)
