"""`CacheMaker`: the cache of a prompt whose tokens are known.

While the sky is asked for the exact prefix, the model computes what is wanted if there is none: the layers below the switch
layer, or all of them where nothing is to be linked. So a full prefill waits for no round trip. A prefix that is found counts from
the next layer on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, replace
from threading import Event
from typing import Final

from transformers import DynamicCache

from skymemory.prompt.manager import KVCManager
from skymemory.segments.controller import Request
from skymemory.segments.evidence import PromptSize
from skymemory.segments.grid import Option
from skymemory.segments.linker import Linked, Linker
from skymemory.segments.linking import Linking
from skymemory.segments.pieces import Piece
from skymemory.segments.placed_segment import PlacedSegment
from skymemory.segments.planner import EXACT, LEARNED_TOKENS, NOTHING_OPEN, SLOWER, UNMEASURED, Planner, Way
from skymemory.segments.segment_fetch import SegmentFetch
from skymemory.segments.sky_segments import SkySegments
from skymemory.segments.strategy import Kind, Strategy
from skymemory.segments.watched_gate import WatchedGate

TOO_LATE: Final = "the sky had not answered when all was computed"


@dataclass(frozen=True)
class CacheRequest:
    """A prompt to make a cache of; attributes that are not described are those of `SegmentManager.link`."""

    tokens: list[int]
    """Token ids."""
    placed: Sequence[PlacedSegment]
    """Segments that the strategy may use, in order."""
    strategy: Strategy
    switch_layer: int | None
    scope: bytes
    """Scope of the prompt's exact blocks."""
    computes: bool
    cancelled: Callable[[], bool]


class CacheMaker:
    """Makes caches of prompts from exact prefixes and segments in the sky, and the model. Thread-safe."""

    def __init__(
        self,
        manager: KVCManager,
        linker: Linker,
        planner: Planner,
        watched: WatchedGate,
        segments: Callable[[], SkySegments],
        lookups: ThreadPoolExecutor,
    ) -> None:
        """Use a model and a sky.

        Args:
            manager: The manager of the model's prompts.
            linker: The model's linker.
            planner: The model's planner.
            watched: The gate.
            segments: Returns the segments in the manager's store.
            lookups: Threads that ask the sky.
        """
        self._manager = manager
        self._linker = linker
        self._planner = planner
        self._watched = watched
        self._segments = segments
        self._lookups = lookups
        self._lossless = manager.codec.name == "raw"

    def make(self, request: CacheRequest) -> Linked:
        """Make the cache of a prompt (`SegmentManager.link`)."""
        tokens, done = request.tokens, Event()
        work = self._linker.begin(tokens, request.cancelled)
        looked_up = self._lookups.submit(
            self._manager.get_cache, tokens, scope=request.scope, cancelled=lambda: done.is_set() or request.cancelled()
        )
        try:
            # Where much of the prompt is known to be there, what would be computed ahead is not worth the layer that it may cost
            if 2 * self._manager.known_tokens(tokens, scope=request.scope) < len(tokens):
                way = self._compute_ahead(request, work, looked_up)
                if work.is_complete:
                    return self._learned(request, work, way, self._linker.link(work, [], EXACT))
            prefix = looked_up.result()
        finally:
            done.set()
            looked_up.cancel()
        return self._made(request, work, prefix)

    def _compute_ahead(self, request: CacheRequest, work: Linking, looked_up: Future[DynamicCache]) -> Way:
        """Compute layers until the look-up of the prefix has ended, as far as they are wanted if it finds nothing."""
        way, needed = self._way(request, 0, 0)
        if not needed:
            if request.computes:
                work.compute_ahead(self._linker.layers, looked_up.done)
            return way
        work.compute_ahead(way.switch_layer, looked_up.done)
        if request.computes and way.gain_s < math.inf:
            wait([looked_up], way.gain_s)
            work.compute_ahead(self._linker.layers, looked_up.done)
        return replace(way, why=TOO_LATE)

    def _made(self, request: CacheRequest, work: Linking, prefix: DynamicCache) -> Linked:
        """Make the rest of a cache, now that the prefix is known."""
        covered = prefix.get_seq_length()
        way, needed = self._way(request, covered, work.ahead_layers)
        if way.strategy.kind is Kind.EXACT and not request.computes and not work.ahead_layers:
            learned = LEARNED_TOKENS if way.why == SLOWER else 0  # the controller learns from what it found to be slower
            end = max([covered + learned, *(one.end for one in needed)])
            work = self._linker.begin(request.tokens[: end + 1], request.cancelled)
        fetch = None
        came: list[Piece] = []
        with ExitStack() as stack:
            if needed:
                first = Option(way.strategy, way.switch_layer).first_loaded
                manifests, variants = [one.manifest for one in needed], [one.variant for one in needed]
                fetch = self._segments().fetch(manifests, variants=variants, first_layer=first, deadlines_s=way.deadlines_s)
                stack.enter_context(fetch)
                came = [one.part(part, self._lossless) for one, parts in zip(needed, fetch.parts, strict=True) for part in parts]
            linked = self._linker.link(work, came, way.strategy, prefix=prefix, switch_layer=way.switch_layer)
        lacking = sum(len(one.manifest.tokens) for one in needed) - sum(piece.tokens for piece in came)
        lacks = f"the sky did not give {lacking:,} tokens of segments" if lacking else ""
        return self._learned(request, work, way, linked, came, fetch, lacks)

    def _way(self, request: CacheRequest, covered: int, ahead_layers: int) -> tuple[Way, list[PlacedSegment]]:
        """Return how to make a cache behind a prefix and layers that are computed, and the segments that this needs."""
        end = len(request.tokens) - 1
        behind = [one for one in request.placed if one.start < end and one.end > covered]
        if request.strategy.kind is Kind.AUTO:
            way = self._chosen(request.tokens, behind, covered, ahead_layers)
        else:
            way = Way(request.strategy, self._linker.switch_layer(request.strategy, request.switch_layer))
        way = replace(way, switch_layer=max(way.switch_layer, ahead_layers))
        if way.strategy.kind is Kind.EXACT:
            behind = [one for one in behind if one.piece(self._lossless).exact]
        # With keys and values of all rows at the last layer there is nothing left to load
        return way, behind if way.switch_layer < self._linker.layers - 1 else []

    def _chosen(self, tokens: list[int], behind: list[PlacedSegment], covered: int, ahead_layers: int) -> Way:
        """Return the way of a prompt whose strategy is to be chosen."""
        if all(one.piece(self._lossless).exact for one in behind):
            return Way()
        end = len(tokens) - 1
        linked = sum(min(one.end, end) - max(one.start, covered) for one in behind)
        request = Request(end, linked, sum(1 for one in behind if one.start > 0), covered, ahead_layers=ahead_layers)
        fingerprint = self._manager.fingerprint()
        damage = self._watched.look(fingerprint)
        sinks = {one.manifest.sinks for one in behind}
        size = PromptSize(len(behind), max(len(one.manifest.tokens) for one in behind), len(tokens))
        way = self._planner.way(fingerprint, request, sinks, size)
        if way.why == UNMEASURED:
            self._planner.measure(self._linker, tokens)
            way = self._planner.way(fingerprint, request, sinks, size)
        return replace(way, why=f"{NOTHING_OPEN}: {damage}") if damage and way.why == NOTHING_OPEN else way

    def _learned(
        self,
        request: CacheRequest,
        work: Linking,
        way: Way,
        linked: Linked,
        came: Sequence[Piece] = (),
        fetch: SegmentFetch | None = None,
        lacks: str = "",
    ) -> Linked:
        """Have the controller learn from a cache, and return it with all reasons in its report."""
        report = linked.report
        starts = [piece.start for piece in came if report.linked_tokens and piece.segment_start > 0 and not piece.first]
        learned = Request(work.tokens.shape[1] - 1, report.linked_tokens, len(starts), report.prefix_tokens)
        self._planner.learn(learned, report, fetch)
        linked = replace(linked, report=replace(report, why="; ".join(filter(None, [way.why, lacks, report.why]))))
        self._watched.consider(request.tokens, way, linked, request.scope)
        return linked
