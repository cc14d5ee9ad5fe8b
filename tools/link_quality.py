#!/usr/bin/env python3
"""Measure how many answers of the model of tests/models/seams stay right when segments are linked.

usage: tools/link_quality.py [--prompts 200] [--contexts 128 192 384] [--strategies naive blend:15@3 ...] [--json FILE]

Each prompt is BOS and segments; it is asked five questions of each kind (seams.py). Segments are computed alone and linked behind
BOS; the questions are computed in full. All strategies see the same prompts and questions, so drops are paired. `blend:15@3` is
`blend:15` with switch layer 3. `unmoved` is naive without rotation: keys stay turned to the position that they had in their
segment. `facts@1` is a control that knows the task: from switch layer 1 on it computes again the facts and references of each
second segment, and nothing else. `variants/naive` links variants, taken out of a full prefill of the same documents in another
order: the one that was last comes first. `codec/int8` is a full prefill whose keys and values went through a codec as those of
segments do: nothing is computed again, which would hide what the codec loses.

Prints the share of right answers with the drop from a full prefill and its 95 % interval, how far attention of the questions and
keys deviate by layer, and how alike neighbouring layers rank the tokens (CacheBlend, Figs. 6 and 8).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import torch
import transformers
from torch import Tensor
from transformers import DynamicCache, LlamaForCausalLM

from seams import (
    ANSWER_TOKENS,
    ATTRIBUTES,
    BOS,
    KINDS,
    PAD,
    REFERENCES,
    REFERS,
    WORDS,
    Prompts,
    Shape,
    make_prompts,
    make_questions,
)
from seams_quality import SHAPES
from skymemory.prompt.codecs import get_codec
from skymemory.segments.capture import take_out
from skymemory.segments.decoder import Decoder
from skymemory.segments.linker import Linker
from skymemory.segments.measure import through_codec
from skymemory.segments.pieces import SINKS, Piece, TensorSource
from skymemory.segments.strategy import Kind, Strategy

FOLDER: Final = Path(__file__).parents[1] / "tests" / "models" / "seams"
UNMOVED: Final = "unmoved"
VARIANTS: Final = "variants/"
CODEC: Final = "codec/"
BLOCK_TOKENS: Final = 128
EIGHT_BILLION: Final = (32, 2, 8, BLOCK_TOKENS, 128)  # shape of a block: layers, keys and values, heads, tokens, channels
FACTS: Final = "facts"
STRATEGIES: Final = (
    "exact",
    "naive",
    UNMOVED,
    "lego:2",
    "lego:8",
    "lego:16",
    "lego0",
    "blend:5",
    "blend:15",
    "blend:30",
    "blend:50",
    "random:15",
    "random:30",
    "random:50",
    "facts@1",
    "blend:15@2",
    "naive@3",
    "blend:15@3",
    "variants/naive",
    "variants/blend:5",
    "variants/blend:15",
    *(CODEC + name for name in ("raw", "int8", "int4", "int4g16", "int4g32")),
)
QUESTIONS: Final = 5  # of each kind and prompt
DEVIATION_PROMPTS: Final = 50  # of each context; more would change no digit that counts
BATCH: Final = 50


@dataclass
class Cell:
    """Answers of one strategy in one context.

    Attributes:
        right: By kind, the share of each prompt's questions that were answered right.
        recomputed: Share of the linked rows that were computed again, from the switch layer on.
        switch_layer: The switch layer.
        attention: By layer, how much the attention of the questions deviates, summed over batches.
    """

    right: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    recomputed: float = 0.0
    switch_layer: int = 0
    attention: Tensor | None = None

    def share(self, kinds: Sequence[str] = KINDS) -> float:
        """Return the share of right answers."""
        return sum(sum(self.right[kind]) / len(self.right[kind]) for kind in kinds) / len(kinds)

    def drop(self, full: Cell, kinds: Sequence[str] = KINDS) -> tuple[float, float]:
        """Return how much lower the share is than that of a full prefill, and half the width of its 95 % interval.

        A prompt counts with the mean over its questions, because they are not independent.
        """
        pairs = zip(*(full.right[kind] for kind in kinds), *(self.right[kind] for kind in kinds), strict=True)
        drops = [(sum(one[: len(kinds)]) - sum(one[len(kinds) :])) / len(kinds) for one in pairs]
        mean = sum(drops) / len(drops)
        variance = sum((one - mean) ** 2 for one in drops) / max(1, len(drops) - 1)
        return mean, 1.96 * math.sqrt(variance / len(drops))


@dataclass
class Deviations:
    """Deviation of keys, values and ranks between naive linking and a full prefill, by layer, summed over batches."""

    keys: Tensor
    values: Tensor
    ranks: Tensor
    batches: int = 0

    @classmethod
    def none(cls, layers: int) -> Deviations:
        return cls(torch.zeros(layers), torch.zeros(layers), torch.zeros(layers - 1))

    def add(self, full: DynamicCache, naive: DynamicCache) -> None:
        """Add those of a batch."""
        before: Tensor | None = None
        for index, (own, other) in enumerate(zip(full, naive, strict=True)):
            keys, values = ((a - b)[:, :, 1:].square().sum((1, 3)) for a, b in zip(own[:2], other[:2], strict=True))
            self.keys[index] += float(keys.sum() / own[0][:, :, 1:].square().sum())
            self.values[index] += float(values.sum() / own[1][:, :, 1:].square().sum())
            ranks = keys.argsort(1).argsort(1).float()
            ranks -= ranks.mean(1, keepdim=True)
            if before is not None:
                alike = (ranks * before).sum(1) / (ranks.norm(dim=1) * before.norm(dim=1))
                self.ranks[index - 1] += float(alike.mean())
            before = ranks
        self.batches += 1


class Quality:
    """Measurement of one model."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._model, self._telling = (
            LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation=attention).train(False)
            for attention in ("sdpa", "eager")  # only the second tells its attention
        )
        self._linker = Linker(self._model)
        self._decoder = Decoder(self._model)
        self.layers = self._decoder.layers

    @torch.no_grad()
    def measure(
        self, shape: Shape, strategies: Sequence[str], prompts: int, seed: int, deviation_prompts: int = 0
    ) -> tuple[dict[str, Cell], Deviations]:
        """Ask questions of each kind about each of some prompts."""
        generator = torch.Generator().manual_seed(seed)
        cells = {name: Cell() for name in strategies}
        deviations = Deviations.none(self.layers)
        begin = time.monotonic()
        for done in range(0, prompts, BATCH):
            drawn = make_prompts(shape, min(BATCH, prompts - done), generator)
            asked = Asked(drawn, generator)
            tokens = _tokens(drawn)
            sources = {sinks: self._segments(drawn.segments, sinks) for sinks in {_sinks(name) for name in strategies}}
            caches = {}
            for name, cell in cells.items():
                if name.startswith(CODEC):
                    cache = self._through_codec(tokens, name.removeprefix(CODEC), cell)
                elif name.startswith(VARIANTS):
                    segments = self._variants(drawn, sources[0])
                    cache = self._link(tokens, drawn, segments, name.removeprefix(VARIANTS), cell)
                else:
                    cache = self._link(tokens, drawn, sources[_sinks(name)], name, cell)
                for kind, answers in asked.right(self._model, cache).items():
                    cell.right[kind] += answers
                if done < deviation_prompts:
                    caches[name] = cache
            if done < deviation_prompts:
                self._note_deviations(asked, caches, cells, deviations)
            _progress(shape, done + len(tokens), prompts, time.monotonic() - begin)
        return cells, deviations

    def _note_deviations(
        self, asked: Asked, caches: dict[str, DynamicCache], cells: dict[str, Cell], deviations: Deviations
    ) -> None:
        deviations.add(caches["exact"], caches["naive"])
        full = asked.attention(self._telling, caches["exact"])
        for name, cache in caches.items():
            deviation = (asked.attention(self._telling, cache) - full).square().sum((2, 4)).sqrt().mean((1, 2))
            old = cells[name].attention
            cells[name].attention = deviation if old is None else old + deviation

    def _segments(self, segments: Tensor, sinks: int) -> list[Tensor]:
        count, number, _ = segments.shape
        computed = self._linker.compute(segments.flatten(0, 1), sinks=sinks, bos=BOS)
        return list(computed.view(*computed.shape[:2], count, number, *computed.shape[3:]).unbind(3))

    def _link(self, tokens: Tensor, prompts: Prompts, segments: list[Tensor], name: str, cell: Cell) -> DynamicCache:
        word, _, layer = name.partition("@")
        switch_layer = int(layer) if layer else None
        length = prompts.shape.segment_tokens
        starts = [1 + number * length for number in range(len(segments))]
        if word == FACTS:
            return self._link_all_but_facts(tokens, prompts, segments, switch_layer, cell)
        if word == UNMOVED:
            segments = [self._unmoved(segment, start) for segment, start in zip(segments, starts, strict=True)]
        strategy = Strategy.parse("naive" if word == UNMOVED else word)
        pieces = [
            Piece(start, length, TensorSource(segment), _sinks(name)) for start, segment in zip(starts, segments, strict=True)
        ]
        linked = self._linker.link(tokens, pieces, strategy, switch_layer=switch_layer)
        assert not linked.report.why, linked.report.why
        linked_tokens = linked.report.linked_tokens
        cell.recomputed = linked.report.recomputed_tokens / linked_tokens if linked_tokens else 1.0
        cell.switch_layer = linked.report.switch_layer
        return linked.cache

    def _link_all_but_facts(
        self, tokens: Tensor, prompts: Prompts, segments: list[Tensor], switch_layer: int | None, cell: Cell
    ) -> DynamicCache:
        """Leave facts and references of second segments to be computed as text, prompt by prompt."""
        caches = []
        for row, prompt in enumerate(prompts.segments):
            pieces = []
            for number, (segment, own) in enumerate(zip(segments, prompt.tolist(), strict=True)):
                start = 1 + number * len(own)
                for begin, end in _runs([number % 2 == 0 or not _of_fact(token) for token in own]):
                    source = TensorSource(segment[:, :, row, :, begin:end])
                    pieces.append(Piece(start + begin, end - begin, source))
            linked = self._linker.link(tokens[row].tolist(), pieces, Strategy.parse("naive"), switch_layer=switch_layer)
            assert not linked.report.why, linked.report.why
            caches.append(linked.cache)
            cell.recomputed = 1 - linked.report.linked_tokens / prompts.shape.context_tokens
            cell.switch_layer = linked.report.switch_layer
        layers = zip(*([pair[:2] for pair in cache] for cache in caches), strict=True)
        return DynamicCache([tuple(torch.cat(part) for part in zip(*pairs, strict=True)) for pairs in layers])

    def _variants(self, prompts: Prompts, alone: list[Tensor]) -> list[Tensor]:
        """Return segments of which those are variants that have a segment before them in both orders of the documents."""
        order = [*range(2, len(alone)), 0, 1]
        drawn = prompts.segments[:, order]
        tokens = torch.cat((torch.full((len(drawn), 1), BOS), drawn.flatten(1), torch.full((len(drawn), 1), PAD)), 1)
        cache = self._linker.link(tokens, [], Strategy.parse("exact")).cache
        chosen = []
        for number, segment in enumerate(alone):
            place = order.index(number)
            if set(order[:place]) & set(range(number)):
                start = 1 + place * prompts.shape.segment_tokens
                segment = take_out(self._decoder, cache, prompts.segments[:, number], start)
            chosen.append(segment)
        return chosen

    def _through_codec(self, tokens: Tensor, codec: str, cell: Cell) -> DynamicCache:
        """Return the cache of a full prefill, of which all but BOS went through a codec, prompt by prompt as blocks do."""
        cache = self._linker.link(tokens, [], Strategy.parse("exact")).cache
        own = take_out(self._decoder, cache, tokens[:, 1:-1], 1)
        stored = torch.stack([through_codec(one, get_codec(codec), BLOCK_TOKENS) for one in own.unbind(2)], 2)
        piece = Piece(1, tokens.shape[1] - 2, TensorSource(stored), lossless=False)
        linked = self._linker.link(tokens, [piece], Strategy.parse("naive"))
        cell.switch_layer = linked.report.switch_layer
        return linked.cache

    def _unmoved(self, segment: Tensor, start: int) -> Tensor:
        """Return a segment whose keys, turned to positions from `start` on, are as if turned to positions from 0 on."""
        places = torch.arange(segment.shape[-2])[None]
        hidden = self._decoder.embed(places)
        here, there = (self._decoder.rows(places + first, hidden).turns for first in (0, start))
        moved = segment.clone()
        for index, rotation in enumerate(self._decoder.rotations[1:]):
            moved[index, 0] = rotation.unrotate(rotation.rotate(segment[index, 0], *here), *there)
        return moved


class Asked:
    """Questions about each prompt, behind its segments; each sees the segments and itself."""

    def __init__(self, prompts: Prompts, generator: torch.Generator) -> None:
        self._kinds = [kind for kind in KINDS for _ in range(QUESTIONS)]
        questions = [make_questions(prompts, kind, generator) for kind in self._kinds]
        self._answers = torch.stack([question.answers for question in questions], 1)
        parts = [torch.cat((question.tokens, question.answers[:, :-1]), 1) for question in questions]
        lengths = [part.shape[1] for part in parts]
        self._tokens = torch.cat(parts, 1)
        self._context = 1 + prompts.shape.context_tokens
        self._positions = torch.cat([torch.arange(self._context, self._context + length) for length in lengths])[None]
        numbers = torch.cat([torch.full((length,), number) for number, length in enumerate(lengths)])
        places = torch.arange(len(numbers))
        among = (numbers[:, None] == numbers) & (places[:, None] >= places)
        seen = torch.cat((torch.ones(len(numbers), self._context, dtype=torch.bool), among), 1)
        self._mask = torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min)[None, None]
        ends = torch.tensor(lengths).cumsum(0)
        self._asked = torch.stack([torch.arange(int(end) - ANSWER_TOKENS, int(end)) for end in ends])

    def right(self, model: Any, cache: DynamicCache) -> dict[str, list[float]]:
        """Return by kind the share of each prompt's questions of which both words are right."""
        logits = model.lm_head(self._run(model, cache).last_hidden_state[:, self._asked])
        right = (logits.argmax(-1) == self._answers)[:, :, : ANSWER_TOKENS - 1].all(2).float()
        return {kind: part.mean(1).tolist() for kind, part in zip(KINDS, right.split(QUESTIONS, 1), strict=True)}

    def attention(self, model: Any, cache: DynamicCache) -> Tensor:
        """Return the attention of the questions to the context: [layers, batch, heads, tokens, context]."""
        attentions = self._run(model, cache, output_attentions=True).attentions
        return torch.stack([layer[..., : self._context] for layer in attentions])

    def _run(self, model: Any, cache: DynamicCache, **more: Any) -> Any:
        output = model.model(
            input_ids=self._tokens,
            position_ids=self._positions,
            attention_mask=self._mask,
            past_key_values=cache,
            **more,
        )
        cache.crop(-self._tokens.shape[1])
        return output


def _sinks(name: str) -> int:
    return SINKS if name == Kind.LEGO0 else 0


def _of_fact(token: int) -> bool:
    return token == REFERS or token in REFERENCES or token in ATTRIBUTES or token in WORDS


def _runs(wanted: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each run of wanted ones."""
    begin = 0
    for want, run in groupby(wanted):
        end = begin + len(list(run))
        if want:
            yield begin, end
        begin = end


def _tokens(prompts: Prompts) -> Tensor:
    """Return BOS, the segments, and one token for the linker to leave out."""
    count = len(prompts.segments)
    return torch.cat((torch.full((count, 1), BOS), prompts.segments.flatten(1), torch.full((count, 1), PAD)), 1)


def _progress(shape: Shape, done: int, of: int, elapsed_s: float) -> None:
    left = elapsed_s / done * (of - done)
    end = "\n" if done == of else ""
    print(f"\r{shape.context_tokens} tokens: {done} of {of} prompts, {left:.0f} s left ", end=end, file=sys.stderr, flush=True)


def _table(cells: dict[str, Cell], context: int) -> dict[str, Any]:
    """Print a table, and return its figures."""
    full = cells["exact"]
    questions = QUESTIONS * len(full.right[KINDS[0]])
    print(f"\n{context} tokens, {questions} questions of a kind; right answers in %, in brackets the drop from a full prefill")
    print(f"{'strategy':11} {'again':>6}  " + "  ".join(f"{kind:>22}" for kind in (*KINDS, "all kinds")))
    figures: dict[str, Any] = {}
    for name, cell in cells.items():
        row: dict[str, Any] = {"recomputed": round(cell.recomputed, 3), "switch_layer": cell.switch_layer}
        texts = []
        for title, kinds in [*((kind, (kind,)) for kind in KINDS), ("all kinds", KINDS)]:
            right = cell.share(kinds)
            drop, half = cell.drop(full, kinds)
            row[title] = {name: round(value, 4) for name, value in (("right", right), ("drop", drop), ("half interval", half))}
            texts.append(f"{100 * right:5.1f} ({100 * drop:5.1f} +- {100 * half:.1f})".rjust(22))
        figures[name] = row
        print(f"{name:11} {100 * cell.recomputed:5.1f}%  " + "  ".join(texts), flush=True)
    return figures


def _codec_table(names: Sequence[str]) -> dict[str, float]:
    """Print how many bytes a token of a large model has, and return it by codec."""
    found = {}
    layers, _, heads, _, channels = EIGHT_BILLION
    print(f"\nbytes a token of a model of {layers} layers with {heads} heads of {channels} channels, bfloat16")
    for name in names:
        found[name] = get_codec(name).layer_bytes(EIGHT_BILLION, torch.bfloat16) * layers / BLOCK_TOKENS
        print(f"{name:11} {found[name]:9,.0f}")
    return found


def _deviation_table(cells: dict[str, Cell], deviations: Deviations, figures: dict[str, Any]) -> None:
    def line(name: str, values: Tensor) -> list[float]:
        rounded = [round(float(value), 3) for value in values / deviations.batches]
        print(f"{name:26} " + "  ".join(f"{value:6.3f}" for value in rounded))
        return rounded

    print("\nby layer".ljust(28) + "  ".join(f"{index:6}" for index in range(len(deviations.keys))))
    figures["keys"] = line("keys of naive", deviations.keys)
    figures["values"] = line("values of naive", deviations.values)
    figures["attention"] = {
        name: line(f"attention of {name}", cell.attention) for name, cell in cells.items() if cell.attention is not None
    }
    figures["rank correlation"] = line("ranks, with layer before", torch.cat((torch.zeros(1), deviations.ranks)))[1:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=FOLDER)
    parser.add_argument("--prompts", type=int, default=200, help="prompts of each context")
    parser.add_argument("--contexts", type=int, nargs="+", default=[shape.context_tokens for shape in SHAPES])
    parser.add_argument("--strategies", nargs="+", default=STRATEGIES, help="strategies beside exact and naive")
    parser.add_argument("--seed", type=int, default=21)
    parser.add_argument("--json", type=Path, help="file to write all figures to")
    options = parser.parse_args()
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    quality = Quality(options.model)
    strategies = dict.fromkeys(("exact", "naive", *options.strategies))
    codecs = [name.removeprefix(CODEC) for name in strategies if name.startswith(CODEC)]
    result: dict[str, Any] = {"prompts": options.prompts, "questions": QUESTIONS, "seed": options.seed, "layers": quality.layers}
    for shape in SHAPES:
        if shape.context_tokens not in options.contexts:
            continue
        cells, deviations = quality.measure(shape, tuple(strategies), options.prompts, options.seed, DEVIATION_PROMPTS)
        figures = result[str(shape.context_tokens)] = _table(cells, shape.context_tokens)
        _deviation_table(cells, deviations, figures)
        if options.json:
            options.json.write_text(json.dumps(result, indent=2) + "\n")
    result["bytes a token"] = _codec_table(codecs)
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
