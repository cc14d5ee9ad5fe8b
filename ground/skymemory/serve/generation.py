"""Generator of answers of one model, several at a time."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import torch

from skymemory.serve.batch import Batch, beginning, exact_tokens, with_room
from skymemory.serve.detokeniser import Detokeniser, StopStrings
from skymemory.serve.prompt_cache import PromptCache
from skymemory.serve.sampling import Sampling, TokenSampler

if TYPE_CHECKING:
    from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

PIECE_TOKENS = 512
"""Tokens of a prompt that are computed before the answers under way get their next token."""
_LOOK_S = 0.1
"""Seconds between two checks whether somebody still wants an answer that has not begun."""


@dataclass(frozen=True, slots=True)
class Begun:
    """Event: the cache of a prompt was looked for."""

    prompt: int
    """Index of the prompt, from 0."""
    cached_tokens: int
    """Tokens from the sky, or from a prompt that runs beside this one."""
    linked_tokens: int = 0
    """Tokens of segments that were linked, with those that were computed again."""
    recomputed_tokens: int = 0
    """Tokens of linked segments that were computed again."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Event: text of an answer, often that of one token."""

    choice: int
    """Index over all prompts and their answers, from 0."""
    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """Event: an answer is complete."""

    choice: int
    reason: str
    """`stop`: the model ended the answer, or a stop string came; `length`: the answer has as many tokens as were allowed."""
    tokens: int


@dataclass(frozen=True, slots=True)
class Ended:
    """Event: the job has ended, with an error unless it is None."""

    error: Exception | None = None


Event: TypeAlias = Begun | Piece | Finished | Ended


@dataclass(frozen=True, slots=True)
class Found:
    """Cache of a prompt's beginning, and how many of its tokens came from where."""

    cache: DynamicCache
    cached_tokens: int
    linked_tokens: int = 0
    recomputed_tokens: int = 0


Finder: TypeAlias = Callable[[Callable[[], bool]], Found]
"""Function that makes a cache; its argument tells whether nobody waits for it any more. It does not raise."""


@dataclass(slots=True, eq=False)
class Job:
    """The work of one request."""

    prompts: Sequence[Sequence[int]]
    """Token ids of each prompt, at least one."""
    sampling: Sampling
    tell: Callable[[Event], None]
    """Function for events, called in the thread of the `JobQueue`; the last event is `Ended`."""
    scope: bytes = b""
    """Scope of the prompts' blocks: only jobs of the same one share any."""
    finders: Mapping[int, Finder] = field(default_factory=dict)
    """Finders of the caches of prompts with segments, by the prompt's index."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    submitted_s: float = field(default_factory=time.monotonic)

    @property
    def answers(self) -> int:
        """Number of answers to all prompts."""
        return len(self.prompts) * self.sampling.choices


class Cancelled(Exception):  # noqa: N818  # nothing went wrong
    """Nobody waits for the answer any more."""


@dataclass(slots=True, eq=False)
class _Prompt:
    """A prompt that the model has to read, or is reading."""

    job: Job
    index: int
    tokens: Sequence[int]
    fetched: Future[Found] | None = None
    past: DynamicCache | None = None
    """Cache of the tokens that were read so far."""
    full: int = 0
    """Tokens that are read before the rest, once `past` is there. The size of blocks may change with the constellation."""


@dataclass(slots=True, eq=False)
class _Row:
    """An answer under way."""

    job: Job
    choice: int
    prompt: Sequence[int]
    past: DynamicCache
    """Cache of the prompt and of all tokens but the last."""
    sampler: TokenSampler
    text: Detokeniser
    stops: StopStrings
    tokens: list[int] = field(default_factory=list)
    finished: bool = False


class Generator:
    """Reads prompts one after the other, and generates several answers together. For one thread.

    Between two pieces of a prompt all answers under way get a token. The model computes the full blocks of a prompt first, and
    then the rest. The rest is also what it computes when these blocks come from the sky. So sums are taken in the same order,
    and a prompt that is found whole gives bit for bit the same first logits.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        cache: PromptCache,
        answers_max: int = 1,
        piece_tokens: int = PIECE_TOKENS,
    ) -> None:
        """Prepare for a model.

        Args:
            answers_max: Most answers that are generated together, if the model can do that.
            piece_tokens: Tokens of a prompt that are computed before the answers under way get their next token.
        """
        self._piece_tokens = piece_tokens
        self._tokenizer = tokenizer
        self._cache = cache
        self._batch = Batch(model)
        self._ends = _end_tokens(model, tokenizer)
        self.answers_max = answers_max if self._batch.together else 1
        self._fetching = ThreadPoolExecutor(1, thread_name_prefix="fetch")
        self._left: dict[Job, int] = {}
        """Answers of each admitted job that are not finished."""
        self._prompts: deque[_Prompt] = deque()
        self._reading: _Prompt | None = None
        self._ready: deque[_Row] = deque()
        """Answers that have a token, and no place in the batch yet."""
        self._rows: list[_Row] = []

    @property
    def busy(self) -> bool:
        """True if a job is under way."""
        return bool(self._left)

    @property
    def room(self) -> bool:
        """True if one more job can begin."""
        return sum(self._left.values()) < self.answers_max

    def admit(self, job: Job) -> None:
        """Begin a job; `turn` does its work."""
        self._left[job] = job.answers
        self._prompts.extend(_Prompt(job, index, tokens) for index, tokens in enumerate(job.prompts))

    @torch.no_grad()
    def turn(self) -> list[Job]:
        """Do the next piece of work. An error of a job goes into its `Ended`, and is not raised.

        Returns:
            Jobs that have ended.
        """
        before = list(self._left)
        for job in before:
            if job.cancelled.is_set():
                self._end(job, Cancelled())
        self._read()
        self._fill()
        self._write()
        return [job for job in before if job not in self._left]

    def close(self) -> None:
        """End the thread that asks the sky."""
        self._fetching.shutdown()

    # ---- prompts ------------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        """Read the next piece of a prompt."""
        if self._reading is None and self._prompts:
            self._reading = self._prompts.popleft()
        prompt = self._reading
        if prompt is None:
            return
        try:
            if prompt.past is None:
                self._begin(prompt)
            elif self._read_piece(prompt):
                self._reading = None
        except Exception as error:  # the server goes on for others
            self._end(prompt.job, error)

    def _begin(self, prompt: _Prompt) -> None:
        """Look for the prompt's beginning beside it and in the sky, and take the longer one. It may take several calls."""
        beside = self._beside(prompt.job.scope, prompt.tokens)
        had = 0 if beside is None else beside.get_seq_length()
        if had == self._full(prompt.tokens) and beside is not None:
            found = Found(beside, had)
        else:
            if prompt.fetched is None:
                prompt.fetched = self._fetching.submit(self._find, prompt)
            wait([prompt.fetched], 0 if self._rows else _LOOK_S)
            if not prompt.fetched.done():
                return
            found = prompt.fetched.result()
            if beside is not None and had > found.cache.get_seq_length():
                found = Found(beside, had)
        prompt.past = found.cache
        prompt.full = max(found.cache.get_seq_length(), self._full(prompt.tokens))
        prompt.job.tell(Begun(prompt.index, found.cached_tokens, found.linked_tokens, found.recomputed_tokens))

    def _find(self, prompt: _Prompt) -> Found:
        """Return the cache of a prompt's beginning, in the thread that asks the sky."""
        job = prompt.job
        finder = job.finders.get(prompt.index)
        if finder is not None:
            return finder(job.cancelled.is_set)
        cache = self._cache.get(prompt.tokens, job.cancelled.is_set, job.scope)
        return Found(cache, cache.get_seq_length())

    def _read_piece(self, prompt: _Prompt) -> bool:
        """Read the next tokens of a prompt. Return True at its end; then its answers have their first tokens."""
        assert prompt.past is not None
        done = prompt.past.get_seq_length()
        if done < prompt.full:
            self._cache.engine.prefill(prompt.tokens[: min(done + self._piece_tokens, prompt.full)], prompt.past)
            return False
        logits = self._batch.read(prompt.tokens[done:], prompt.past)
        choices = prompt.job.sampling.choices
        for choice in range(prompt.index * choices, (prompt.index + 1) * choices):
            sampler = TokenSampler(prompt.job.sampling, choice % choices)
            stops = StopStrings(prompt.job.sampling.stop)
            row = _Row(prompt.job, choice, prompt.tokens, prompt.past, sampler, Detokeniser(self._tokenizer), stops)
            self._take(row, logits)
            if not row.finished:
                self._ready.append(row)
        return True

    def _full(self, prompt: Sequence[int]) -> int:
        """Return the number of tokens in full blocks of a prompt. The last token is always computed."""
        size = self._cache.block_tokens
        return min(len(prompt) // size * size, len(prompt) - 1)

    def _beside(self, scope: bytes, prompt: Sequence[int]) -> DynamicCache | None:
        """Return the cache of the blocks that a prompt shares with an answer of its scope under way; None: there are none."""
        size = self._cache.block_tokens
        longest, source = 0, None
        for row in (*self._rows, *self._ready):
            if row.job.scope != scope:
                continue
            covered = min(exact_tokens(row.past), self._full(prompt))
            same = _same(prompt, [*row.prompt, *row.tokens], covered)
            same = same if same == self._full(prompt) else same // size * size
            if same > longest:
                longest, source = same, row.past
        return None if source is None else beginning(source, longest)

    # ---- answers ------------------------------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Move answers that are ready into the batch."""
        while self._ready and len(self._rows) < self.answers_max:
            row = self._ready.popleft()
            try:
                row.past = with_room(row.past)
            except Exception as error:  # the memory may have run out
                self._end(row.job, error)
            else:
                self._rows.append(row)

    def _write(self) -> None:
        """Give each answer in the batch a token."""
        rows = self._rows
        if not rows:
            return
        try:
            logits = self._batch.step([row.tokens[-1] for row in rows], [row.past for row in rows])
        except Exception as error:  # the error may have left the caches in any state
            for job in {row.job for row in rows}:
                self._end(job, error, keep=False)
            return
        for row, of_row in zip(rows, logits, strict=True):
            if row.job not in self._left:
                continue  # another answer of the job has failed just now
            try:
                self._take(row, of_row)
            except Exception as error:
                self._end(row.job, error)
        self._rows = [row for row in self._rows if not row.finished]

    def _take(self, row: _Row, logits: torch.Tensor) -> None:
        """Choose the next token of an answer and tell of it."""
        sampling = row.job.sampling
        token = row.sampler.next(logits)
        row.tokens.append(token)
        ended = token in self._ends
        piece, stopped = row.stops.add(row.text.end() if ended else row.text.add(token))
        reason = None
        if ended or stopped:
            reason = "stop"
        elif len(row.tokens) == sampling.max_tokens:
            rest, stopped = row.stops.add(row.text.end())
            piece += rest
            reason = "stop" if stopped else "length"
        if reason is not None:
            piece += row.stops.end()
        if piece:
            row.job.tell(Piece(row.choice, piece))
        if reason is not None:
            row.job.tell(Finished(row.choice, reason, len(row.tokens)))
            row.finished = True
            self._keep(row)
            self._left[row.job] -= 1
            if self._left[row.job] == 0:
                self._end(row.job)

    def _keep(self, row: _Row) -> None:
        self._cache.keep([*row.prompt, *row.tokens], len(row.prompt), row.past, row.job.scope)

    def _end(self, job: Job, error: Exception | None = None, *, keep: bool = True) -> None:
        """End a job. Keep what was computed for it, unless an error may have left its cache in any state."""
        del self._left[job]
        reading = self._reading
        if reading is not None and reading.job is job:
            self._reading = None
            if reading.fetched is not None:
                reading.fetched.cancel()
            if reading.past is not None and isinstance(error, Cancelled):
                self._cache.keep(reading.tokens, len(reading.tokens), reading.past, job.scope)
        for row in (*self._rows, *self._ready):
            if row.job is job and keep and not row.finished:
                self._keep(row)
        self._prompts = deque(prompt for prompt in self._prompts if prompt.job is not job)
        self._ready = deque(row for row in self._ready if row.job is not job)
        self._rows = [row for row in self._rows if row.job is not job]
        job.tell(Ended(error))


def _same(one: Sequence[int], other: Sequence[int], most: int) -> int:
    """Return how many of the first tokens are the same, `most` at most."""
    most = min(most, len(one), len(other))
    if list(one[:most]) == list(other[:most]):
        return most
    return next(index for index in range(most) if one[index] != other[index])


def _end_tokens(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """Return the tokens that end an answer: those of the model's generation settings, else the tokenizer's."""
    ends = getattr(model.generation_config, "eos_token_id", None)
    if ends is None:
        ends = tokenizer.eos_token_id
    if ends is None:
        return frozenset()
    return frozenset(ends if isinstance(ends, list) else [ends])
