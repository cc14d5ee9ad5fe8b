"""A task that needs attention across segments: prompts of segments, and questions about them.

A prompt tells of several documents. Each has two segments of equal length: the first names its subject, the second goes on
without the name. Both state facts (an attribute and two words) between words of no meaning; the second also refers to a subject.
All documents have the same attributes, so only the subject tells which answer is right.

A local question asks for a fact beside the name. A carried one asks for a fact of the second segment: whose fact it is stands in
the segment before. A question of two hops asks for a fact of the subject that a document refers to, and the reference stands in
its second segment. Where segments are computed apart, nothing in a second segment tells its subject.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

PAD, BOS, END, ASK, HEAD, MORE, REFERS = range(7)
NAMES: Final = range(8, 24)
REFERENCES: Final = range(24, 40)  # one for each name
ATTRIBUTES: Final = range(40, 64)
WORDS: Final = range(64, 96)
FILLERS: Final = range(96, 128)
VOCABULARY: Final = 128

KINDS: Final = ("local", "carried", "two hops")
ANSWER_TOKENS: Final = 3  # two words and END

# Marks say of a token whose subject and which attribute it tells of, counted from 0. They help in training.
NO_SUBJECT: Final = len(NAMES)
NO_ATTRIBUTE: Final = len(ATTRIBUTES)
REFERENCE: Final = NO_ATTRIBUTE + 1  # a reference is one more attribute
UNMARKED: Final = -1  # of tokens that may tell of anything


@dataclass(frozen=True)
class Shape:
    """Number of documents of a prompt, tokens of a segment, and facts that a segment states."""

    documents: int
    segment_tokens: int
    facts: int

    @property
    def context_tokens(self) -> int:
        """Tokens of all segments."""
        return 2 * self.documents * self.segment_tokens


@dataclass(frozen=True)
class Prompts:
    """Prompts of one shape; documents and attributes count from 0.

    Attributes:
        segments: Tokens by prompt, segment and place.
        marks: Subject and attribute of each of these tokens.
        names: Token of the name, by prompt and document.
        attributes: Tokens by prompt and attribute; the first half is stated in first segments.
        words: Two words by prompt, document and attribute.
        refers_to: Document that a document refers to, which may be itself.
    """

    shape: Shape
    segments: Tensor
    marks: Tensor
    names: Tensor
    attributes: Tensor
    words: Tensor
    refers_to: Tensor


def make_prompts(shape: Shape, count: int, generator: torch.Generator) -> Prompts:
    """Draw prompts; the same generator state gives the same ones."""
    documents, facts = shape.documents, shape.facts
    names = NAMES.start + _draw_different(len(NAMES), documents, count, generator)
    attributes = ATTRIBUTES.start + _draw_different(len(ATTRIBUTES), 2 * facts, count, generator)
    words = _draw(WORDS, (count, documents, 2 * facts, 2), generator)
    refers_to = _draw(range(documents), (count, documents), generator)

    subjects = (names - NAMES.start)[:, :, None]
    stated = torch.cat((attributes[:, None, :, None].expand(-1, documents, -1, -1), words), 3)
    items = [
        _marked(tokens, subjects, (attributes[:, None, number, None] - ATTRIBUTES.start))
        for number, tokens in enumerate(stated.unbind(2))
    ]
    references = names.gather(1, refers_to) - NAMES.start + REFERENCES.start
    items.append(_marked(torch.stack((torch.full_like(names, REFERS), references), 2), subjects, REFERENCE))
    head = _marked(torch.stack((torch.full_like(names, HEAD), names), 2), NO_SUBJECT, NO_ATTRIBUTE)
    more = _marked(torch.full_like(names, MORE)[:, :, None], NO_SUBJECT, NO_ATTRIBUTE)
    first = _fill(head, items[:facts], shape.segment_tokens, generator)
    second = _fill(more, items[facts:], shape.segment_tokens, generator)
    segments = torch.stack((first, second), 2).flatten(1, 2)
    return Prompts(shape, segments[..., 0], segments[..., 1:], names, attributes, words, refers_to)


@dataclass(frozen=True)
class Questions:
    """One question of a kind for each prompt: its tokens with marks, and the tokens of the answer."""

    tokens: Tensor
    marks: Tensor
    answers: Tensor


def make_questions(prompts: Prompts, kind: str, generator: torch.Generator) -> Questions:
    """Draw one question of a kind for each prompt."""
    count, facts = len(prompts.segments), prompts.shape.facts
    attributes = {"local": range(facts), "carried": range(facts, 2 * facts), "two hops": range(2 * facts)}[kind]
    row = torch.arange(count, device=prompts.segments.device)
    document = _draw(range(prompts.shape.documents), (count,), generator)
    number = _draw(attributes, (count,), generator)
    name, attribute = prompts.names[row, document], prompts.attributes[row, number]
    unmarked = torch.full_like(row, UNMARKED)
    asked = [(torch.full_like(row, ASK), unmarked, unmarked), (name, unmarked, unmarked)]
    if kind == "two hops":
        asked.append((torch.full_like(row, REFERS), name - NAMES.start, torch.full_like(row, REFERENCE)))
        asked.append((attribute, unmarked, unmarked))
        document = prompts.refers_to[row, document]
    else:
        asked.append((attribute, name - NAMES.start, attribute - ATTRIBUTES.start))
    question = torch.stack([torch.stack(token, 1) for token in asked], 1)
    answer = torch.cat((prompts.words[row, document, number], torch.full_like(row, END)[:, None]), 1)
    return Questions(question[..., 0], question[..., 1:], answer)


def _draw(of: range, size: tuple[int, ...], generator: torch.Generator) -> Tensor:
    return torch.randint(of.start, of.stop, size, generator=generator, device=generator.device)


def _draw_different(of: int, wanted: int, count: int, generator: torch.Generator) -> Tensor:
    return torch.rand((count, of), generator=generator, device=generator.device).argsort(1)[:, :wanted]


def _marked(tokens: Tensor, subject: Tensor | int, attribute: Tensor | int) -> Tensor:
    none = torch.zeros_like(tokens)
    return torch.stack((tokens, none + subject, none + attribute), 3)


def _fill(begin: Tensor, items: list[Tensor], tokens: int, generator: torch.Generator) -> Tensor:
    """Return segments that begin alike and have the items in any order, with fillers between them; all with their marks."""
    count, documents, begun, _ = begin.shape
    room = tokens - begun
    fillers = room - sum(item.shape[2] for item in items)
    if fillers < 0:
        raise ValueError(f"a segment of {tokens} tokens has no room for {len(items)} items")
    lengths = torch.tensor([item.shape[2] for item in items] + [1] * fillers, device=begin.device).expand(count, documents, -1)
    order = torch.rand(lengths.shape, generator=generator, device=begin.device).argsort(2)
    ordered = lengths.gather(2, order)
    starts = torch.empty_like(order).scatter_(2, order, ordered.cumsum(2) - ordered)
    body = _marked(_draw(FILLERS, (count, documents, room), generator), NO_SUBJECT, NO_ATTRIBUTE)
    for number, item in enumerate(items):
        places = starts[:, :, number, None] + torch.arange(item.shape[2], device=begin.device)
        body.scatter_(2, places[..., None].expand_as(item), item)
    return torch.cat((begin, body), 2)
