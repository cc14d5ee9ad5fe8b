"""Check of strategies on prompts: evidence for the gate, and the figures that `skymem pic check` prints.

Each line of a file of prompts is a JSON list of pieces in order: texts, and segments as `{"segment": text}`. Token ids may stand
for a text. The last piece is a text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from skymemory.common.progress import Progress, no_progress
from skymemory.prompt.codecs import Codec
from skymemory.prompt.huggingface import HuggingFaceEngine
from skymemory.segments.evidence import Point, PromptSize
from skymemory.segments.gate import POWER_PROMPTS_MIN, PROMPTS_MIN, Gate
from skymemory.segments.grid import Option
from skymemory.segments.linker import Linker
from skymemory.segments.linking import Linking
from skymemory.segments.measure import compare_all, full_answers, shuffled, through_codec
from skymemory.segments.pieces import SINKS, Piece, TensorSource
from skymemory.segments.strategy import Kind

Tokenize: TypeAlias = Callable[[str, int], Sequence[int]]
"""Function that returns the token ids of a text, given its index among the prompt's pieces."""

BATCH: Final = 16
"""Most prompts that are computed at once. The first are few, so that what cannot open is seen soon."""
BATCH_TOKENS: Final = 4096
"""Most tokens of these together, which bounds the memory of their keys and values. A longer prompt is computed alone."""
_FORM: Final = 'a prompt is a JSON list of texts and segments {"segment": text}; token ids may stand for a text'


class CheckError(Exception):
    """A prompt could not be linked, so that nothing is known of the strategy."""


@dataclass(frozen=True, slots=True)
class CheckPrompt:
    """A prompt with segments."""

    pieces: tuple[tuple[int, ...], ...]
    """Token ids of each piece."""
    linked: tuple[bool, ...]
    """True for each piece that is a segment."""

    @property
    def tokens(self) -> list[int]:
        """Token ids of the whole prompt."""
        return [token for piece in self.pieces for token in piece]

    @property
    def segments(self) -> list[tuple[int, tuple[int, ...]]]:
        """Position of the first token, and token ids, of each segment."""
        starts = [sum(map(len, self.pieces[:index])) for index in range(len(self.pieces))]
        return [(start, piece) for start, piece, linked in zip(starts, self.pieces, self.linked, strict=True) if linked]

    @property
    def layout(self) -> list[tuple[int, bool]]:
        """Length of each piece, and whether it is a segment. Prompts of one layout can be computed at once."""
        return [(len(piece), linked) for piece, linked in zip(self.pieces, self.linked, strict=True)]

    @property
    def size(self) -> PromptSize:
        """Its size, for which its answers are evidence."""
        lengths = [len(piece) for piece, linked in zip(self.pieces, self.linked, strict=True) if linked]
        return PromptSize(len(lengths), max(lengths), sum(map(len, self.pieces)))


def read_prompts(lines: Iterable[str], tokenize: Tokenize) -> list[CheckPrompt]:
    """Return the prompts of a file's lines; empty lines count for nothing.

    Raises:
        ValueError: A line is no prompt, its last piece is no text, or no segment stands behind other tokens.
    """
    return [_read_prompt(line, f"line {number}", tokenize) for number, line in enumerate(lines, 1) if line.strip()]


def check_strategies(
    linker: Linker,
    model: PreTrainedModel,
    prompts: Sequence[CheckPrompt],
    options: Sequence[Option],
    gate: Gate,
    *,
    fingerprint: str,
    codec: Codec,
    block_tokens: int,
    bos: int | None = None,
    stop_early: bool = True,
    progress: Progress = no_progress,
) -> list[dict[str, Any]]:
    """Check options anew: evidence that the gate had of them is dropped, because it may be of the same prompts.

    Args:
        linker: Linker of the model.
        model: The model.
        prompts: The prompts; those that are equal count once.
        options: Strategies and switch layers.
        gate: Gate that takes the evidence.
        fingerprint: Fingerprint of the model, in hex.
        codec: Codec that segments go through.
        block_tokens: Tokens of a block.
        bos: The model's BOS, which LegoLink-0 needs.
        stop_early: True: leave an option alone as soon as these prompts cannot open it any more.
        progress: Called after each prompt.

    Returns:
        `Verdict.figures()` of each option.

    Raises:
        ValueError: There are too few prompts, or one has no segment behind other tokens, or LegoLink-0 needs a BOS.
        CheckError: A prompt could not be linked.
        CodecError: The codec cannot take the model's tensors.
    """
    prompts = list(dict.fromkeys(prompts))
    if len(prompts) < PROMPTS_MIN:
        raise ValueError(f"{len(prompts)} different prompts; a check needs {PROMPTS_MIN} or more")
    for number, prompt in enumerate(prompts, 1):
        _check_prompt(prompt, f"prompt {number}")
    points = {option: option.point(fingerprint, codec.name, block_tokens) for option in options}
    for point in points.values():
        if gate.verdict(point).counts.checks.prompts:
            gate.drop(point, "a new check was begun")
    work = _Check(linker, HuggingFaceEngine(model), model, codec, block_tokens, bos)

    def is_wanted(point: Point, number: int) -> bool:
        return not stop_early or gate.can_open(point, len(prompts) - number)

    number = 0
    for batch in _batches(prompts):
        wanted = {option: point for option, point in points.items() if is_wanted(point, number)}
        if wanted:
            work.run(batch, wanted, gate, number, is_wanted)
        for _ in batch:
            number += 1
            progress(number, len(prompts))
    return [gate.verdict(point).figures() for point in points.values()]


def _batches(prompts: Sequence[CheckPrompt]) -> Iterator[Sequence[CheckPrompt]]:
    """Yield runs of prompts that have one layout, each at most as long as all before it together."""
    begin = 0
    while begin < len(prompts):
        first = prompts[begin]
        most = min(max(1, begin), BATCH, max(1, BATCH_TOKENS // len(first.tokens)))
        end = begin + 1
        while end < min(begin + most, len(prompts)) and prompts[end].layout == first.layout:
            end += 1
        yield prompts[begin:end]
        begin = end


@dataclass(frozen=True)
class _Check:
    linker: Linker
    engine: HuggingFaceEngine
    model: PreTrainedModel
    codec: Codec
    block_tokens: int
    bos: int | None

    def run(
        self,
        prompts: Sequence[CheckPrompt],
        points: dict[Option, Point],
        gate: Gate,
        number: int,
        is_wanted: Callable[[Point, int], bool],
    ) -> None:
        """Compare the answers to prompts of one layout for all options, and count them one after the other.

        Below its switch layer an option computes all rows, whatever its segments hold. Options come in the order of their switch
        layers, so that each of these layers is computed once for all of them and for the shuffled runs.

        Args:
            prompts: The prompts.
            points: Options to check.
            gate: Gate that takes the evidence.
            number: Number of prompts before these.
            is_wanted: Tells whether a point can still open when so many prompts are done.
        """
        tokens = [prompt.tokens for prompt in prompts]
        answers = full_answers(self.model, tokens, self._full(tokens))
        ahead = self.linker.begin(torch.tensor(tokens))
        tensors: dict[int, list[Tensor]] = {}
        given: dict[tuple[int, int], list[Tensor]] = {}
        for option, point in sorted(points.items(), key=lambda item: item[0].switch_layer):
            sinks = SINKS if option.strategy.kind is Kind.LEGO0 else 0
            if sinks not in tensors:
                tensors[sinks] = self._segments(prompts, sinks)
            wrong = min(len(prompts), max(0, POWER_PROMPTS_MIN - gate.verdict(point).counts.shuffled.prompts))
            if (sinks, wrong) not in given:
                of_segments = enumerate(tensors[sinks])
                given[sinks, wrong] = [self._with_shuffled(one, at, wrong, number, tokens) for at, one in of_segments]
            ahead.compute_ahead(option.switch_layer, lambda: False)
            cache = self._link(prompts[0], ahead.fork(wrong), option, given[sinks, wrong], sinks)
            samples = compare_all(self.model, tokens + tokens[:wrong], answers + answers[:wrong], cache)
            for index, prompt in enumerate(prompts):
                if not is_wanted(point, number + index):
                    break
                gate.checked(point, samples[index], prompt.size)
                if index < wrong:
                    gate.checked_shuffled(point, samples[len(prompts) + index])

    def _full(self, tokens: Sequence[list[int]]) -> DynamicCache:
        """Return one cache of full prefills."""
        caches = [self.engine.prefill(one[:-1]) for one in tokens]
        if len(caches) == 1:
            return caches[0]
        layers = zip(*caches, strict=True)
        joined = [tuple(torch.cat([layer[part] for layer in of_one]) for part in range(2)) for of_one in layers]
        return DynamicCache(joined, config=self.model.config)

    def _with_shuffled(self, segments: Tensor, at: int, wrong: int, number: int, tokens: Sequence[list[int]]) -> Tensor:
        """Return the tensors of one segment of each prompt, and behind them shuffled ones of the first prompts."""
        if wrong == 0:
            return segments
        seeds = [(number + index) * len(tokens[index]) + at for index in range(wrong)]
        return torch.cat(
            (segments, torch.stack([shuffled(segments[:, :, index], seed) for index, seed in enumerate(seeds)], 2)), 2
        )

    def _segments(self, prompts: Sequence[CheckPrompt], sinks: int) -> list[Tensor]:
        """Return keys and values of each segment of prompts of one layout, [layers - 1, 2, prompts, kv_heads, tokens, head_dim].

        All segments of one length are computed at once.
        """
        lengths = [len(segment) for _, segment in prompts[0].segments]
        tensors: dict[int, Iterator[Tensor]] = {}
        for length in dict.fromkeys(lengths):
            places = [at for at, other in enumerate(lengths) if other == length]
            tokens = torch.tensor([prompt.segments[at][1] for at in places for prompt in prompts])
            computed = self.linker.compute(tokens, sinks=sinks, bos=self.bos)
            if self.codec.name != "raw":
                computed = torch.stack([through_codec(one, self.codec, self.block_tokens) for one in computed.unbind(2)], 2)
            tensors[length] = iter(torch.split(computed, len(prompts), 2))
        return [next(tensors[length]) for length in lengths]

    def _link(self, prompt: CheckPrompt, work: Linking, option: Option, tensors: list[Tensor], sinks: int) -> DynamicCache:
        pieces = [
            Piece(start, len(segment), TensorSource(tensor), sinks, self.codec.name == "raw")
            for (start, segment), tensor in zip(prompt.segments, tensors, strict=True)
        ]
        linked = self.linker.link(work, pieces, option.strategy, switch_layer=option.switch_layer)
        if linked.report.why or not linked.report.linked_tokens:
            raise CheckError(f"a prompt could not be linked with {option.strategy}: {linked.report.why or 'nothing to link'}")
        return linked.cache


def _read_prompt(line: str, where: str, tokenize: Tokenize) -> CheckPrompt:
    try:
        given = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{where} is no JSON ({error}); {_FORM}") from error
    if not isinstance(given, list) or not given:
        raise ValueError(f"{where}: {_FORM}")
    pieces, linked = [], []
    for index, piece in enumerate(given):
        is_segment = isinstance(piece, dict) and set(piece) == {"segment"}
        text = piece["segment"] if is_segment else piece
        tokens = tokenize(text, index) if isinstance(text, str) else text
        if not isinstance(tokens, Sequence) or not tokens or not all(type(token) is int for token in tokens):
            raise ValueError(f"{where}, piece {index + 1}: {_FORM}, none of them empty")
        pieces.append(tuple(tokens))
        linked.append(is_segment)
    prompt = CheckPrompt(tuple(pieces), tuple(linked))
    _check_prompt(prompt, where)
    return prompt


def _check_prompt(prompt: CheckPrompt, where: str) -> None:
    if not prompt.linked or prompt.linked[-1]:
        raise ValueError(f"{where}: the last piece is a text, which the model answers")
    if not any(start for start, _ in prompt.segments):
        raise ValueError(f"{where}: a segment must stand behind other tokens; what begins a prompt is exact and tells nothing")
