"""Check of strategies on prompts: evidence for the gate, and the figures that `skymem pic check` prints.

Each line of a file of prompts is a JSON list of pieces in order: texts, and segments as `{"segment": text}`. Token ids may stand
for a text. The last piece is a text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from skymemory.common.progress import Progress, no_progress
from skymemory.prompt.codecs import Codec
from skymemory.prompt.huggingface import HuggingFaceEngine
from skymemory.segments.evidence import Point
from skymemory.segments.gate import POWER_PROMPTS_MIN, PROMPTS_MIN, Gate
from skymemory.segments.grid import Option
from skymemory.segments.linker import Linker
from skymemory.segments.measure import compare, full_answer, shuffled, through_codec
from skymemory.segments.pieces import SINKS, Piece, TensorSource
from skymemory.segments.strategy import Kind

Tokenize: TypeAlias = Callable[[str, int], Sequence[int]]
"""Function that returns the token ids of a text, given its index among the prompt's pieces."""

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
    points = {option: option.point(fingerprint, codec.name) for option in options}
    for point in points.values():
        if gate.verdict(point).counts.checks.prompts:
            gate.drop(point, "a new check was begun")
    work = _Check(linker, HuggingFaceEngine(model), model, codec, block_tokens, bos)
    for number, prompt in enumerate(prompts):
        left = len(prompts) - number
        wanted = {option: point for option, point in points.items() if not stop_early or gate.can_open(point, left)}
        if wanted:
            work.run(prompt, wanted, gate, number)
        progress(number + 1, len(prompts))
    return [gate.verdict(point).figures() for point in points.values()]


@dataclass(frozen=True)
class _Check:
    linker: Linker
    engine: HuggingFaceEngine
    model: PreTrainedModel
    codec: Codec
    block_tokens: int
    bos: int | None

    def run(self, prompt: CheckPrompt, points: dict[Option, Point], gate: Gate, number: int) -> None:
        """Compare one prompt's answers for all options."""
        tokens = prompt.tokens
        answer = full_answer(self.model, tokens, self.engine.prefill(tokens[:-1]))
        tensors: dict[int, list[Tensor]] = {}
        for option, point in points.items():
            sinks = SINKS if option.strategy.kind is Kind.LEGO0 else 0
            if sinks not in tensors:
                tensors[sinks] = [self._segment(segment, sinks) for _, segment in prompt.segments]
            cache = self._link(prompt, option, tensors[sinks], sinks)
            gate.checked(point, compare(self.model, tokens, answer, cache))
            if gate.verdict(point).counts.shuffled.prompts < POWER_PROMPTS_MIN:
                seed = number * len(tokens)
                wrong = [shuffled(tensor, seed + index) for index, tensor in enumerate(tensors[sinks])]
                cache = self._link(prompt, option, wrong, sinks)
                gate.checked_shuffled(point, compare(self.model, tokens, answer, cache))

    def _segment(self, tokens: Sequence[int], sinks: int) -> Tensor:
        tensor = self.linker.compute(tokens, sinks=sinks, bos=self.bos)
        return tensor if self.codec.name == "raw" else through_codec(tensor, self.codec, self.block_tokens)

    def _link(self, prompt: CheckPrompt, option: Option, tensors: list[Tensor], sinks: int) -> DynamicCache:
        pieces = [
            Piece(start, len(segment), TensorSource(tensor), sinks, self.codec.name == "raw")
            for (start, segment), tensor in zip(prompt.segments, tensors, strict=True)
        ]
        linked = self.linker.link(prompt.tokens, pieces, option.strategy, switch_layer=option.switch_layer)
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
