"""Shadow runs: how far a linked cache moves a model from the answer that it gives after a full prefill.

The model's greedy answer after the full prefill is given to it again, over both caches in the same way. So the answers do not run
apart after their first difference, and rounding is the same for both. Compared are the probabilities of all tokens at each place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from skymemory.prompt.codecs import Codec
from skymemory.segments.answers import end_tokens
from skymemory.segments.evidence import Sample

ANSWER_TOKENS: Final = 32
"""Most tokens of an answer that are compared. LegoLink-0 begins right and goes astray later (EPIC, section 4.4)."""


@dataclass(frozen=True)
class Answer:
    """Greedy answer after a full prefill.

    Attributes:
        tokens: Token ids; the last one ends the answer if the model ended it.
        log_probabilities: Logarithms of the probabilities at each place, [tokens, vocabulary], float32.
    """

    tokens: tuple[int, ...]
    log_probabilities: Tensor


def full_answer(model: PreTrainedModel, prompt: Sequence[int], cache: DynamicCache, tokens: int = ANSWER_TOKENS) -> Answer:
    """Return the answer to a prompt (`full_answers`)."""
    return full_answers(model, [prompt], cache, tokens)[0]


@torch.no_grad()
def full_answers(
    model: PreTrainedModel, prompts: Sequence[Sequence[int]], cache: DynamicCache, tokens: int = ANSWER_TOKENS
) -> list[Answer]:
    """Return the answers to prompts of one length.

    Args:
        model: The model.
        prompts: Token ids of the prompts.
        cache: Exact keys and values of all of them but the last one. It covers as many on return.
        tokens: Most tokens of an answer.
    """
    ends, given = end_tokens(model), [[prompt[-1]] for prompt in prompts]
    answers: list[list[int]] = [[] for _ in prompts]
    while len(answers[0]) < tokens and not all(any(token in ends for token in answer) for answer in answers):
        given = _logits(model, given, cache)[:, -1].argmax(-1, keepdim=True).tolist()
        for answer, one in zip(answers, given, strict=True):
            answer.extend(one)
    _cut(cache, len(prompts[0]) - 1)
    ended = [answer[: next((at for at, token in enumerate(answer, 1) if token in ends), tokens)] for answer in answers]
    logarithms = _log_probabilities(model, prompts, ended, cache)
    return [Answer(tuple(answer), of_answer) for answer, of_answer in zip(ended, logarithms, strict=True)]


def compare(model: PreTrainedModel, prompt: Sequence[int], answer: Answer, cache: DynamicCache) -> Sample:
    """Compare an answer with what the model says over another cache (`compare_all`)."""
    return compare_all(model, [prompt], [answer], cache)[0]


@torch.no_grad()
def compare_all(
    model: PreTrainedModel, prompts: Sequence[Sequence[int]], answers: Sequence[Answer], cache: DynamicCache
) -> list[Sample]:
    """Compare answers to prompts of one length with what the model says over another cache.

    Args:
        model: The model.
        prompts: Token ids of the prompts.
        answers: The answers after a full prefill.
        cache: Keys and values of all tokens but the last one of each prompt. It covers as many on return.

    Raises:
        ValueError: The cache covers another number of tokens.
    """
    if cache.get_seq_length() != len(prompts[0]) - 1:
        raise ValueError(f"the cache covers {cache.get_seq_length()} of {len(prompts[0])} tokens; all but one are wanted")
    linked = _log_probabilities(model, prompts, [answer.tokens for answer in answers], cache)
    return [_sample(answer.log_probabilities, one) for answer, one in zip(answers, linked, strict=True)]


def _sample(full: Tensor, linked: Tensor) -> Sample:
    sound = ~(full.isnan().any(1) | linked.isnan().any(1))
    probabilities = full.exp()
    # A token that the model never says adds nothing, though its logarithm is infinite
    kl = torch.where(probabilities > 0, probabilities * (full - linked), 0).double().sum(1)
    kl = torch.where(sound, kl, torch.nan)
    agree = (full.argmax(1) == linked.argmax(1)) & sound
    return Sample(float(kl.mean()), float(agree.double().mean()))


def shuffled(segment: Tensor, seed: int) -> Tensor:
    """Return a segment's tensor whose keys and values are dealt out to other tokens, in each layer in another way.

    Keys and values are not moved together, because a model that looks for a key would find its value elsewhere.

    Args:
        segment: Tensor [layers, 2, kv_heads, tokens, head_dim].
        seed: Seed of the order.
    """
    generator = torch.Generator().manual_seed(seed)
    orders = torch.rand(*segment.shape[:2], segment.shape[3], generator=generator).argsort(2).to(segment.device)
    return segment.gather(3, orders[:, :, None, :, None].expand(segment.shape))


def through_codec(segment: Tensor, codec: Codec, block_tokens: int) -> Tensor:
    """Return a segment's tensor as it comes out of blocks of so many tokens; the arguments are those of `shuffled`.

    Raises:
        CodecError: The codec cannot take the tensors.
    """
    parts = []
    for block in torch.split(segment.cpu(), block_tokens, 3):
        shape = tuple(block.shape)
        data = torch.empty(shape[0], codec.layer_bytes(shape, block.dtype), dtype=torch.uint8)
        codec.encode(block.contiguous(), data)
        parts.append(codec.decode(data, shape, block.dtype))
    return torch.cat(parts, 3).to(segment.device)


def _cut(cache: DynamicCache, tokens: int) -> None:
    if (more := cache.get_seq_length() - tokens) > 0:
        cache.crop(-more)


def _logits(model: PreTrainedModel, tokens: Sequence[Sequence[int]], cache: DynamicCache) -> Tensor:
    """Return logits [prompts, tokens, vocabulary] of what follows each of some tokens, which the cache covers on return."""
    whole: Any = model
    logits: Tensor = whole(
        input_ids=torch.tensor([list(row) for row in tokens], device=model.device), past_key_values=cache, use_cache=True
    ).logits
    return logits.float()


def _log_probabilities(
    model: PreTrainedModel, prompts: Sequence[Sequence[int]], answers: Sequence[Sequence[int]], cache: DynamicCache
) -> list[Tensor]:
    """Return logarithms of the probabilities at each place of answers, each [tokens, vocabulary]."""
    most = max(map(len, answers))
    given = [[prompt[-1], *answer[:-1]] for prompt, answer in zip(prompts, answers, strict=True)]
    logits = _logits(model, [row + [0] * (most - len(row)) for row in given], cache)  # what fills up comes behind the answer
    _cut(cache, len(prompts[0]) - 1)
    return [of_one[: len(row)].log_softmax(1) for of_one, row in zip(logits, given, strict=True)]
