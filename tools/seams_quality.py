"""Sequences of the task of seams.py for a model, and the share of its answers that are right.

A sequence is BOS, the segments, and several questions with their answers. A mask keeps the questions apart: each sees the context
and itself, at the place right behind the context. The same mask can keep segments apart. A segment then has the K and V that it
has when it is computed alone and its K is rotated to its place, because rotary attention depends on distances only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from seams import ANSWER_TOKENS, BOS, KINDS, UNMARKED, Prompts, Shape, make_prompts, make_questions

# Contexts of 128, 192 and 384 tokens.
SHAPES: Final = (Shape(2, 32, 3), Shape(3, 32, 3), Shape(6, 32, 3))


@dataclass(frozen=True)
class Sequences:
    """Tokens of prompts with questions.

    Attributes:
        tokens: Tokens by sequence and place; the END of an answer is left out.
        marks: Subject and attribute that a token tells of.
        positions: Position of each place, the same for all sequences.
        blocks: Number of the segment of each place: 0 for BOS, -1, -2, ... for questions.
        asked: Places whose next token belongs to an answer, by question and token.
        answers: Tokens of the answers, by sequence, question and token.
    """

    tokens: Tensor
    marks: Tensor
    positions: Tensor
    blocks: Tensor
    asked: Tensor
    answers: Tensor


def make_sequences(prompts: Prompts, kinds: Sequence[str], generator: torch.Generator) -> Sequences:
    """Put one question of each of the kinds behind each prompt; a kind may come more than once."""
    count, segments, length = prompts.segments.shape
    context = 1 + segments * length
    on = generator.device
    unmarked = torch.full((count, 1, 2), UNMARKED, device=on)
    parts = [torch.full((count, 1), BOS, device=on), prompts.segments.flatten(1)]
    marks = [unmarked, prompts.marks.flatten(1, 2)]
    positions, blocks = list(range(context)), [0] + [1 + number // length for number in range(context - 1)]
    asked, answers = [], []
    for number, kind in enumerate(kinds):
        questions = make_questions(prompts, kind, generator)
        parts += [questions.tokens, questions.answers[:, :-1]]
        marks += [questions.marks, unmarked.expand(-1, ANSWER_TOKENS - 1, -1)]
        tokens = questions.tokens.shape[1] + ANSWER_TOKENS - 1
        end = len(positions) + tokens
        positions += range(context, context + tokens)
        blocks += [-1 - number] * tokens
        asked.append(range(end - ANSWER_TOKENS, end))
        answers.append(questions.answers)
    return Sequences(
        tokens=torch.cat(parts, 1),
        marks=torch.cat(marks, 1),
        positions=torch.tensor(positions, device=on)[None],
        blocks=torch.tensor(blocks, device=on),
        asked=torch.tensor([list(places) for places in asked], device=on),
        answers=torch.stack(answers, 1),
    )


def attention_mask(blocks: Tensor, *, apart: bool) -> Tensor:
    """Tell which place sees which; `apart` keeps segments from each other."""
    place = torch.arange(len(blocks), device=blocks.device)
    same = blocks[:, None] == blocks
    context = blocks >= 0
    seen = same | (context & ~context[:, None]) if apart else same | context
    return (seen & (place[:, None] >= place))[None, None]


def answer_logits(model: Any, sequences: Sequences, *, apart: bool = False) -> Tensor:
    """Return the logits of all tokens of the answers, by sequence, question and token."""
    return logits_and_states(model, sequences, apart=apart)[0]


def logits_and_states(model: Any, sequences: Sequences, *, apart: bool = False) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return the logits of `answer_logits`, and what each layer gets, by layer, and what the last one makes of all tokens."""
    mask = attention_mask(sequences.blocks, apart=apart)
    output = model.model(
        input_ids=sequences.tokens,
        position_ids=sequences.positions,
        attention_mask=mask,
        use_cache=False,
        output_hidden_states=True,
    )
    return model.lm_head(output.last_hidden_state[:, sequences.asked]), output.hidden_states


def right_answers(logits: Tensor, answers: Tensor) -> Tensor:
    """Tell which questions are answered right, that is with both words, by sequence and question."""
    return (logits.argmax(-1) == answers)[:, :, : ANSWER_TOKENS - 1].all(2)


@torch.no_grad()
def measure(
    model: Any, shape: Shape, *, apart: bool, seed: int, prompts: int = 200, each: int = 5, device: str = "cpu"
) -> dict[str, float]:
    """Return the share of right answers by kind, over as many questions of each kind a prompt as `each` says.

    The questions come from a generator of the CPU: they are the same on each device.
    """
    generator = torch.Generator().manual_seed(seed)
    right = dict.fromkeys(KINDS, 0)
    batch = 50
    kinds = [kind for kind in KINDS for _ in range(each)]
    for begin in range(0, prompts, batch):
        sequences = make_sequences(make_prompts(shape, min(batch, prompts - begin), generator), kinds, generator)
        moved = Sequences(**{name: value.to(device) for name, value in vars(sequences).items()})
        answers = right_answers(answer_logits(model, moved, apart=apart), moved.answers)
        for number, kind in enumerate(kinds):
            right[kind] += int(answers[:, number].sum())
    return {kind: number / (prompts * each) for kind, number in right.items()}
