"""Answers as segments: what `generate` left of an answer in the cache of its prompt (RelayCaching).

Nothing is computed again, but the last token if `generate` ended before it ran. The keys and values know the prompt, so they are
those of a variant of the segment, and never of the segment itself.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from torch import Tensor
from transformers import DynamicCache

from skymemory.prompt.huggingface import HuggingFaceEngine
from skymemory.segments.errors import SegmentError
from skymemory.segments.linker import Linker


def answer_tokens(prompt: Sequence[int], output: Sequence[int], ends: Collection[int]) -> list[int]:
    """Return the token ids of an answer, up to the first that ends it.

    Args:
        prompt: Token ids of the prompt.
        output: Token ids that `generate` returned, those of prompt and answer.
        ends: Token ids that end an answer.

    Raises:
        SegmentError: The output does not begin with the prompt, or has no token of an answer behind it.
    """
    if list(output[: len(prompt)]) != list(prompt):
        raise SegmentError("the output does not begin with the prompt; wanted are all tokens that generate returned for it")
    answer = list(output[len(prompt) :])
    length = next((index for index, token in enumerate(answer) if token in ends), len(answer))
    if length == 0:
        raise SegmentError("the answer has no token")
    return answer[:length]


def answer_tensors(
    linker: Linker, engine: HuggingFaceEngine, prompt: Sequence[int], answer: Sequence[int], cache: DynamicCache
) -> Tensor:
    """Return keys and values of an answer, as `Linker.compute` returns those of a segment.

    Args:
        linker: Linker of the model.
        engine: The model.
        prompt: Token ids of the prompt.
        answer: Token ids of the answer.
        cache: The cache that `generate` left. It covers as many tokens on return.

    Raises:
        SegmentError: The cache lacks more than the last token.
        ValueError: The cache is not of this model, or not of one prompt.
    """
    engine.check(cache)
    wanted, covered = len(prompt) + len(answer), cache.get_seq_length()
    if covered < wanted - 1:
        raise SegmentError(f"the cache covers {covered} of {wanted} tokens; wanted is the one that generate has used")
    if covered == wanted - 1:
        engine.prefill([*prompt, *answer], cache)
    tensors = linker.take_out(cache, answer, len(prompt))
    if covered == wanted - 1:
        cache.crop(-1)
    return tensors


def end_tokens(model: Any) -> set[int]:
    """Return the token ids that end an answer of a model."""
    settings: Any = model.generation_config or model.config
    ends = settings.eos_token_id
    return {ends} if isinstance(ends, int) else set(ends or ())
