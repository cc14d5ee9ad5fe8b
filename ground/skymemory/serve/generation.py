"""Answers of one model, a request at a time."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import torch

from skymemory.serve.detokeniser import Detokeniser, StopStrings
from skymemory.serve.prompt_cache import PromptCache
from skymemory.serve.sampling import Sampler, Sampling

if TYPE_CHECKING:
    from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

_PIECE_TOKENS = 512
"""of a prompt that are computed between two looks whether somebody still wants them"""


@dataclass(frozen=True, slots=True)
class Begun:
    """The cache of a prompt was looked for."""

    prompt: int
    """index, from 0"""
    cached_tokens: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Text of an answer, often that of one token."""

    choice: int
    """index over all prompts and their answers, from 0"""
    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """An answer is complete."""

    choice: int
    reason: str
    """`stop`: the model ended it, or a stop string came; `length`: it has as many tokens as were allowed"""
    tokens: int


@dataclass(frozen=True, slots=True)
class Ended:
    """All is said; or this error came in between."""

    error: Exception | None = None


Event: TypeAlias = Begun | Piece | Finished | Ended


@dataclass(slots=True)
class Job:
    """One request's share of work."""

    prompts: Sequence[Sequence[int]]
    """token ids of each, at least one"""
    sampling: Sampling
    tell: Callable[[Event], None]
    """called in the worker's thread; the last event is `Ended`"""
    cancelled: threading.Event = field(default_factory=threading.Event)
    submitted_s: float = field(default_factory=time.monotonic)


class Cancelled(Exception):  # noqa: N818  # nothing went wrong
    """Nobody waits for the answer any more."""


class Generator:
    """Runs jobs. For one thread.

    The model computes the full blocks of a prompt first, and then the rest, which is what it computes when these blocks come
    from the sky: sums are taken in the same order, so that a prompt that is found whole gives bit for bit the same logits.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, cache: PromptCache) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._cache = cache
        self._ends = _end_tokens(model, tokenizer)

    def run(self, job: Job) -> None:
        """Generate all answers of a job. Raises nothing: an error is told in `Ended`."""
        try:
            with torch.no_grad():
                for index, prompt in enumerate(job.prompts):
                    self._answer(job, index, prompt)
        except Exception as error:  # the server goes on for others
            job.tell(Ended(error))
        else:
            job.tell(Ended())

    def _answer(self, job: Job, index: int, prompt: Sequence[int]) -> None:
        past = self._cache.get(prompt, job.cancelled.is_set)
        job.tell(Begun(index, past.get_seq_length()))
        try:
            logits = self._prefill(job, prompt, past)
        except Cancelled:
            self._cache.keep(prompt, len(prompt), past)
            raise
        for choice in range(job.sampling.choices):
            own = _fork(past)
            tokens: list[int] = []
            try:
                self._generate(job, index * job.sampling.choices + choice, tokens, logits, own)
            except Cancelled:
                self._cache.keep([*prompt, *tokens], len(prompt), own)
                raise
            self._cache.keep([*prompt, *tokens], len(prompt), own)

    def _prefill(self, job: Job, prompt: Sequence[int], past: DynamicCache) -> torch.Tensor:
        """Logits after the prompt, shape [vocabulary]; `past` then covers it."""
        full = min(len(prompt) // self._cache.block_tokens * self._cache.block_tokens, len(prompt) - 1)
        while (done := past.get_seq_length()) < full:
            if job.cancelled.is_set():
                raise Cancelled
            self._cache.engine.prefill(prompt[: min(done + _PIECE_TOKENS, full)], past)
        return self._step(prompt[full:], past)

    def _step(self, tokens: Sequence[int], past: DynamicCache) -> torch.Tensor:
        ids = torch.tensor([list(tokens)], dtype=torch.long, device=self._model.device)
        logits: torch.Tensor = self._model(input_ids=ids, past_key_values=past, use_cache=True, logits_to_keep=1).logits[0, -1]
        return logits

    def _generate(self, job: Job, choice: int, tokens: list[int], logits: torch.Tensor, past: DynamicCache) -> None:
        sampler, text, stops = Sampler(job.sampling, choice), Detokeniser(self._tokenizer), StopStrings(job.sampling.stop)
        reason = None
        while reason is None:
            if job.cancelled.is_set():
                raise Cancelled
            token = sampler.next(logits)
            tokens.append(token)
            ended = token in self._ends
            piece, stopped = stops.add(text.end() if ended else text.add(token))
            if ended or stopped:
                reason = "stop"
            elif len(tokens) == job.sampling.max_tokens:
                reason = "length"
                rest, stopped = stops.add(text.end())
                piece += rest
                reason = "stop" if stopped else reason
            if reason is not None:
                piece += stops.end()
            if piece:
                job.tell(Piece(choice, piece))
            if reason is None:
                logits = self._step([token], past)
        job.tell(Finished(choice, reason, len(tokens)))


def _fork(cache: DynamicCache) -> DynamicCache:
    """A cache that grows by itself. The tensors are shared: a run of the model makes new ones."""
    fork = copy.copy(cache)
    fork.layers = [copy.copy(layer) for layer in cache.layers]
    return fork


def _end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Tokens that end an answer, as the model's generation settings say, else the tokenizer."""
    ends = getattr(model.generation_config, "eos_token_id", None)
    if ends is None:
        ends = tokenizer.eos_token_id
    if ends is None:
        return frozenset()
    return frozenset(ends if isinstance(ends, list) else [ends])
