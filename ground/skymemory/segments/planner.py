"""`Planner`: the strategy of one prompt, of those that the gate allows, by what computing and loading cost.

It learns these costs from each prompt that is linked.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

from skymemory.prompt.codecs import Codec
from skymemory.prompt.huggingface import HuggingFaceEngine
from skymemory.segments.controller import Controller, Request, Shape, Work, full_work, linked_work
from skymemory.segments.evidence import NO_SIZE, PromptSize
from skymemory.segments.gate import Gate
from skymemory.segments.grid import Option, open_options
from skymemory.segments.groups import layer_groups
from skymemory.segments.linker import Linker
from skymemory.segments.linking import LinkReport
from skymemory.segments.segment_fetch import SegmentFetch
from skymemory.segments.strategy import Kind, Strategy

EXACT: Final = Strategy(Kind.EXACT)
NOTHING_OPEN: Final = "no strategy is open"
TOO_LARGE: Final = "the prompt is larger than those that were checked"
UNMEASURED: Final = "too few prompts were computed to know what that costs"
SLOWER: Final = "computing takes no longer than linking"


PREFILLS_MIN: Final = 3
"""Fewest prefills that are measured before the first plan."""
PREFILL_TOKENS_MIN: Final = 32
"""Tokens of the first of them."""
PREFILL_S: Final = 0.1
"""Seconds of a prefill after which no longer one is measured."""
LEARNED_TOKENS: Final = 512
"""Most tokens that are computed to learn what that costs, where the caller computes the rest."""


@dataclass(frozen=True, slots=True)
class Way:
    """Way to make the cache of a prompt."""

    strategy: Strategy = EXACT
    switch_layer: int = 0
    deadlines_s: dict[int, float] = field(default_factory=dict)
    """Seconds from the beginning to wait for a group of layers, by its number."""
    gain_s: float = math.inf
    """Seconds that linking is expected to save. If nothing is known of the sky after that, computing all is no slower."""
    why: str = ""
    """Reason why nothing is linked, if nothing is."""
    fingerprint: bytes = b""
    """Digest of the model, if the gate has allowed the strategy; else empty."""


class Planner:
    """Plans for one model. Thread-safe.

    Attributes:
        controller: Costs of computing and loading, as they were measured.
    """

    def __init__(self, engine: HuggingFaceEngine, codec: Codec, block_tokens: int, gate: Gate | None) -> None:
        """Plan for a model whose segments go through a codec; without a gate nothing is open."""
        self._codec = codec.name
        self._block_tokens = block_tokens
        self._gate = gate
        self.controller = Controller(_shape(engine, codec, block_tokens))
        self._measuring = Lock()
        self._is_measured = False

    def way(self, fingerprint: bytes, request: Request, sinks: Collection[int], size: PromptSize) -> Way:
        """Return how to make the cache of a prompt.

        Args:
            fingerprint: Digest of model and tokenizer.
            request: The prompt; its prefix is at hand.
            sinks: Numbers of sinks of its segments. There is no evidence for segments that differ in it.
            size: Its size with that prefix. There is none for prompts that are larger than those of the check.
        """
        different = list(set(sinks))
        if len(different) != 1:
            return Way(why=NOTHING_OPEN)
        allowed = self.allowed(fingerprint, different[0], size)
        if not allowed:
            return Way(why=self._why_closed(fingerprint, different[0], size))
        plan = self.controller.plan(request, allowed, time.monotonic())
        if plan.option is None:
            return Way(why=SLOWER if plan.expected_s < float("inf") else UNMEASURED)
        gain_s = max(0.0, plan.full_s - plan.expected_s)
        return Way(plan.option.strategy, plan.option.switch_layer, plan.deadlines_s, gain_s, fingerprint=fingerprint)

    def allowed(self, fingerprint: bytes, sinks: int, size: PromptSize = NO_SIZE) -> list[Option]:
        """Return what the gate allows for segments behind so many sinks in a prompt of some size, by default of any."""
        if self._gate is None:
            return []
        model = fingerprint.hex(), self._codec, self._block_tokens
        return open_options(self._gate, model, Strategy(Kind.AUTO), self.controller.shape.groups, sinks, size)

    def _why_closed(self, fingerprint: bytes, sinks: int, size: PromptSize) -> str:
        if self._gate is None or not (options := self.allowed(fingerprint, sinks)):
            return NOTHING_OPEN
        covered = {
            self._gate.verdict(option.point(fingerprint.hex(), self._codec, self._block_tokens)).covered for option in options
        }
        return f"{TOO_LARGE}: it has {size}; allowed are {' or '.join(map(str, sorted(covered)))}"

    def measure(self, linker: Linker, tokens: Sequence[int]) -> None:
        """Measure a few prefills once, because nothing is planned before it is known what computing costs.

        They are of the beginning of a prompt: of 32 tokens first, then twice as many each time, until one takes 0.1 s or has the
        whole prompt, but three at least. So they take about half of a second, or as long as four prefills of 32 tokens.
        """
        with self._measuring:
            if self._is_measured:
                return
            self._is_measured = True
            size, prefills, enough = min(PREFILL_TOKENS_MIN, len(tokens)), 0, False
            linker.link(tokens[:size], [], EXACT)  # the first one is slower than others
            while prefills < PREFILLS_MIN or not enough:
                report = linker.link(tokens[:size], [], EXACT).report
                self.learn(Request(size - 1, 0, 0), report, None)
                prefills += 1
                enough = report.total_s >= PREFILL_S or size == len(tokens)
                size = size if enough else min(2 * size, len(tokens))

    def learn(self, request: Request, report: LinkReport, fetch: SegmentFetch | None) -> None:
        """Learn from a prompt what computing, loading and decoding cost.

        Args:
            request: The prompt, with what of it was linked.
            report: The report of the linker.
            fetch: The fetch of its segments.
        """
        if not report.why and report.rows:
            self.controller.computed(_work(self.controller.shape, request, report), max(0.0, report.total_s - report.waited_s))
        now_s = time.monotonic()
        for size, duration_s in list(fetch.loads) if fetch else ():
            self.controller.loaded(size, duration_s, now_s)
        for size, duration_s in list(fetch.decodes) if fetch else ():
            self.controller.decoded(size, duration_s)


def _work(shape: Shape, request: Request, report: LinkReport) -> Work:
    switch = report.switch_layer
    option = Option(report.strategy, switch)
    below = full_work(shape, request, 0, report.ahead_layers, prefix=False)
    below += full_work(shape, request, report.ahead_layers, switch)
    return sum((linked_work(shape, request, option, layer) for layer in range(switch, shape.layers)), below)


def _shape(engine: HuggingFaceEngine, codec: Codec, block_tokens: int) -> Shape:
    geometry = engine.geometry
    model: Any = engine.model
    embeddings, head = model.get_input_embeddings(), model.get_output_embeddings()
    outside = {id(weight): weight.numel() for one in (embeddings, head) if one is not None for weight in one.parameters()}
    layer = max(1, sum(weight.numel() for weight in model.parameters() if id(weight) not in outside)) / geometry.layers
    projected = 2 * geometry.kv_heads * geometry.head_dim * int(embeddings.weight.shape[1])
    return Shape(
        geometry.layers,
        tuple(layer_groups(geometry.layers)),
        codec.layer_bytes(geometry.block_shape(block_tokens), geometry.dtype) / block_tokens,
        min(1.0, projected / layer),
    )
