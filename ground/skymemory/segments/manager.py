"""`SegmentManager`: segments of one model, which any prompt can use wherever they stand in it.

    kvc = KVCManager(model, tokenizer, store)
    segments = SegmentManager(kvc)
    document = segments.add(text, ttl_s=3600)
    prompt = segments.link(["Read this.\\n", document, "\\nWhat does it say?"], strategy="lego:8")
    model.generate(prompt.input_ids, past_key_values=prompt.cache)
    segments.expire(document.id)

Pieces are tokenised apart, so a segment has the same tokens wherever it stands. What begins the prompt and lies under exact keys
comes first, then segments; all else is computed. What does not come is computed, too.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Final

import torch
from transformers import DynamicCache

from skymemory.common.progress import Progress, no_progress
from skymemory.prompt.huggingface import UnsupportedModelError
from skymemory.prompt.manager import KVCManager, time_to_come
from skymemory.prompt.prompts import Prompt
from skymemory.prompt.statistics import ExpectReport
from skymemory.segments.answers import answer_tensors, answer_tokens, end_tokens
from skymemory.segments.cache_maker import CacheMaker, CacheRequest
from skymemory.segments.check import read_prompts
from skymemory.segments.controller import Controller
from skymemory.segments.errors import SegmentError
from skymemory.segments.gate import Gate, is_canary
from skymemory.segments.grid import checked_strategies, options
from skymemory.segments.groups import layer_groups
from skymemory.segments.host_list import Segment
from skymemory.segments.layout import LaidOut
from skymemory.segments.linker import Linked, Linker
from skymemory.segments.linking import LinkReport
from skymemory.segments.placed_segment import PlacedSegment
from skymemory.segments.planner import EXACT, Planner
from skymemory.segments.prompt_pieces import PromptPiece, PromptPieces, Unchecked
from skymemory.segments.sky_segments import Context, SegmentModel, SkySegments
from skymemory.segments.strategy import Kind, Strategy
from skymemory.segments.watched_gate import WatchedGate

_LOOKUPS_MAX: Final = 8
"""Most look-ups that go on beside the model at once. Further ones wait."""


@dataclass(frozen=True)
class LinkedPrompt:
    """A prompt that was put together from pieces, for `generate`.

    Attributes:
        input_ids: Token ids of the whole prompt, [1, tokens], on the model's device.
        cache: Keys and values of all tokens but the last one.
        report: Report of what was done.
        segments: Its segments, in order.
    """

    input_ids: torch.Tensor
    cache: DynamicCache
    report: LinkReport
    segments: tuple[PlacedSegment, ...] = ()


class SegmentManager:
    """Segments of one manager's model in its store. Thread-safe."""

    def __init__(
        self,
        manager: KVCManager,
        *,
        gate: Gate | None = None,
        folder: Path | None = None,
        is_canary: Callable[[bytes], bool] = is_canary,
        scope: bytes = b"",
    ) -> None:
        """Check with a few tokens whether segments of the model can be linked.

        If they cannot, `why_not` says why; prompts without segments work all the same.

        Args:
            manager: The manager of the model's prompts, whose store, codec and tenant secret are used.
            gate: Evidence of what `auto` may link. By default that of this host, which `check` and other hosts add to
                (`skymemory.segments.kept_gate`).
            folder: Folder of the host's list of segments and of its gate's records; the state folder by default.
            is_canary: Chooses requests that are computed in full, too, from their tokens and a number of their own.
            scope: Name of one of several users of a tenant, who never find each other's segments.
        """
        self._manager = manager
        self._folder = folder
        self._scope = scope
        self._lossless = manager.codec.name == "raw"
        self._linker: Linker | None = None
        self._planner: Planner | None = None
        self._sky: tuple[Any, SkySegments] | None = None
        self._watched = WatchedGate(manager, gate, folder, is_canary)
        self._pieces = self._new_pieces()
        self._maker: CacheMaker | None = None
        self._lookups = ThreadPoolExecutor(_LOOKUPS_MAX, thread_name_prefix="skymem-lookups")
        self._computing = Lock()
        self.why_not = ""
        """Reason why segments of the model cannot be linked; "" if they can."""
        try:
            self._linker = Linker(manager.engine.model)
            self._planner = Planner(manager.engine, manager.codec, manager.block_tokens, self._watched.gate)
            self._maker = self._new_maker()
        except UnsupportedModelError as error:
            self.why_not = str(error)
            return
        with suppress(ValueError):  # a model that cannot be digested now may be later
            self._watched.look(manager.fingerprint())

    @property
    def gate(self) -> Gate:
        """Evidence of what `auto` may link."""
        return self._watched.gate

    @property
    def controller(self) -> Controller:
        """Costs of computing and loading, as they were measured.

        Raises:
            UnsupportedModelError: Segments of the model cannot be linked.
        """
        self._linked()
        assert self._planner is not None
        return self._planner.controller

    def fingerprint(self) -> bytes:
        """Return the digest of model and tokenizer (`KVCManager.fingerprint`)."""
        return self._manager.fingerprint()

    def scoped(self, scope: bytes) -> SegmentManager:
        """Return a manager of the segments of another scope, which shares model, gate and controller with this one."""
        other = copy.copy(self)
        other._scope, other._sky = scope, None  # noqa: SLF001  # it is of this class
        other._pieces, other._maker = other._new_pieces(), other._new_maker()  # noqa: SLF001
        return other

    def add(
        self,
        content: Prompt,
        ttl_s: float | None = None,
        sinks: int = 0,
        display_name: str = "",
        *,
        progress: Progress = no_progress,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Segment:
        """Compute a segment and store it, if the sky does not have it.

        Args:
            content: Text, token ids, or a tokenizer's result. A text is tokenised without special tokens.
            ttl_s: Seconds until it expires; it never does by default.
            sinks: Tokens BOS to compute it behind; 4 for `lego0`, else 0.
            display_name: A name for people. A segment that is there keeps its own if none is given.
            progress: Called with the number of blocks stored and of blocks to store.
            cancelled: Tells, before each layer is computed, whether nobody waits for the segment any more.

        Raises:
            CancelledSegmentError: Nobody waits for the segment any more.
            UnsupportedModelError: Segments of the model cannot be linked; the message says why.
            TypeError: The content is neither text nor token ids.
            SilentSkyError: Nobody answered.
            SegmentError: An argument is out of range, or the sky cannot hold the segment.
            ValueError: The model does not have a token id, or cannot be digested now.
        """
        compute = self._computes(sinks, cancelled)
        tokens = self._pieces.plain(content)
        return self._segments().put(
            tokens,
            lambda: compute(tokens),
            sinks=sinks,
            ttl_s=ttl_s,
            display_name=display_name or None,
            progress=progress,
        )

    def add_all(
        self,
        contents: Sequence[Prompt],
        ttl_s: float | None = None,
        sinks: int = 0,
        *,
        progress: Progress = no_progress,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> list[Segment]:
        """Compute several segments and store them, in their order; EPIC's `generate_context_cache`.

        What the sky has of all of them is looked up at once. Errors and other arguments are those of `add`; the segments before
        the one at fault are stored.

        Args:
            contents: Texts, token ids, or a tokenizer's results, one for each segment.
            ttl_s: Seconds until they expire; they never do by default.
            sinks: Tokens BOS to compute each behind.
            progress: Called with the number of segments stored and of all that differ.
            cancelled: Tells, before each layer is computed, whether nobody waits for the segments any more.
        """
        each = [self._pieces.plain(content) for content in contents]
        compute = self._computes(sinks, cancelled)
        return self._segments().put_all(each, lambda number: compute(each[number]), sinks=sinks, ttl_s=ttl_s, progress=progress)

    def add_answer(self, prompt: LinkedPrompt, output_ids: Prompt, ttl_s: float | None = None, display_name: str = "") -> Segment:
        """Store the model's answer to a prompt as a segment, out of the cache that `generate` has used.

        Nothing is computed again. The answer ends before the first token that ends it (EOS). It was computed behind the prompt:
        it is exact nowhere, and `auto` computes it. If the same tokens were added alone, both are kept (docs/pic.md).

        Args:
            prompt: The prompt, with the cache that was given to `generate`.
            output_ids: Token ids that `generate` returned, those of prompt and answer.
            ttl_s: Seconds until it expires; it never does by default.
            display_name: A name for people.

        Raises:
            SegmentError: The output does not begin with the prompt, the answer has no token, the cache lacks some of it, or as
                from `add`.
            ValueError: The cache is not of this model, or not of one prompt.
            UnsupportedModelError: Segments of the model cannot be linked.
        """
        linker, sky, engine = self._linked(), self._segments(), self._manager.engine
        before: list[int] = prompt.input_ids[0].tolist()
        answer = answer_tokens(before, self._pieces.plain(output_ids), end_tokens(engine.model))
        return sky.put(
            answer,
            lambda: answer_tensors(linker, engine, before, answer, prompt.cache),
            context=Context(before, [one.id for one in prompt.segments]),
            ttl_s=ttl_s,
            display_name=display_name or None,
        )

    def add_variants(self, prompt: LinkedPrompt) -> list[Segment]:
        """Store segments of a prompt as variants, which know the segments before them, out of its cache (Cache-Craft).

        Nothing is computed again. Only segments all of whose keys and values were computed are stored, and that have other
        segments before them. A segment has up to three variants. Strategies that are chosen by name take the one that has most
        segments before it in common with their prompt (docs/pic.md).

        Args:
            prompt: The prompt, as `link` returned it, also after `generate`.

        Returns:
            The segments that have got a variant.

        Raises:
            SegmentError: As from `get` and `add`.
            ValueError: The cache is not of this model, or not of one prompt.
            UnsupportedModelError: Segments of the model cannot be linked.
        """
        linker, sky = self._linked(), self._segments()
        computed = self._manager.engine.check(prompt.cache)
        tokens: list[int] = prompt.input_ids[0].tolist()
        stored = []
        for number, one in enumerate(prompt.segments):
            before = [other.id for other in prompt.segments[:number]]
            if before and one.end <= computed and one.manifest.sinks == 0:
                take_out = partial(linker.take_out, prompt.cache, tokens[one.start : one.end], one.start)
                stored.append(sky.put_variant(sky.get(one.id), take_out, Context(tokens[: one.start], before)))
        return [segment for segment in stored if segment is not None]

    def get(self, segment: str) -> Segment:
        """Return the segment of an id, which any host of the tenant may have added.

        Raises:
            UnknownSegmentError: The sky has no segment of this id.
            ExpiredSegmentError: It has expired by this host's clock.
            OtherModelError: It is of another model, tokenizer, codec or block size.
            SilentSkyError: Nobody answered.
            UnsupportedModelError: Segments of the model cannot be linked.
        """
        return self._segments().segment(segment)

    def listed(self) -> list[Segment]:
        """Return this host's segments that have not expired, those of other models, too. The sky is not asked.

        Raises:
            UnsupportedModelError: Segments of the model cannot be linked.
        """
        return self._segments().listed()

    def update(
        self, segment: str, *, ttl_s: float | None = None, expires_unix_s: float | None = None, display_name: str | None = None
    ) -> Segment:
        """Change when a segment expires, or its name (`SegmentDirectory.update`). What is None stays.

        Args:
            segment: The id.
            ttl_s: Seconds from now until it expires; infinity if it never shall.
            expires_unix_s: Unix time at which it expires, instead of `ttl_s`.
            display_name: A name for people.

        Raises:
            SegmentError: As from `get`, or an argument is out of range.
            UnsupportedModelError: Segments of the model cannot be linked.
        """
        return self._segments().update(segment, ttl_s=ttl_s, expires_unix_s=expires_unix_s, display_name=display_name)

    def expect(self, segments: Sequence[Segment | str], at: float | datetime) -> list[ExpectReport]:
        """Place segments so that they are in the window when a prompt needs them (`BlockStore.prefetch`).

        Args:
            segments: Segments, or their ids.
            at: Time at which they are needed: Unix time, or a datetime (local time if it names no zone).

        Returns:
            Numbers of blocks of each segment, with those of variants. What the sky could not place is counted and does not raise.

        Raises:
            SegmentError: As from `get`.
            ValueError: The time is past.
            UnsupportedModelError: Segments of the model cannot be linked.
        """
        at_s = time_to_come(at)
        sky = self._segments()
        ids = [one.id if isinstance(one, Segment) else one for one in segments]
        manifests = sky.get_all(set(ids)) if ids else {}
        return sky.expect([manifests[one] for one in ids], max(at_s, time.time())) if ids else []

    def expire(self, segment: str) -> bool:
        """Purge the segment of an id, and return True if all satellites confirmed (`SkySegments.expire`).

        Raises:
            UnknownSegmentError: The sky has no segment of this id.
            SilentSkyError: Nobody answered.
            UnsupportedModelError: Segments of the model cannot be linked.
        """
        return self._segments().expire(segment)

    def may_link(self, strategy: str = "auto") -> bool:
        """Return True if a strategy may link segments now, and not only those that are exact.

        Raises:
            ValueError: There is no such strategy, or the model cannot be digested now.
        """
        wanted = Strategy.parse(strategy)
        if self._planner is not None and wanted.kind is Kind.AUTO:
            self._watched.look(self._manager.fingerprint())
        return self._may_link(wanted)

    def lay_out(
        self, pieces: Sequence[PromptPiece], strategy: str = "auto", *, check_length: Callable[[int], object] = lambda _: None
    ) -> LaidOut:
        """Return the tokens of a prompt from its pieces, and where its segments stand (arguments and errors as of `link`).

        `check_length` is called with the number of tokens before they are put together. It may raise, and so refuse the prompt.
        """
        return self._laid_out(pieces, Strategy.parse(strategy), check_length)

    def link(
        self,
        pieces: Sequence[PromptPiece] | LaidOut,
        strategy: str = "auto",
        *,
        switch_layer: int | None = None,
        prefix_scope: bytes | None = None,
        computes: bool = True,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> LinkedPrompt:
        """Make the cache of a prompt from its pieces.

        Pieces are tokenised apart, without special tokens. A text that comes first gets what the tokenizer puts in front, such as
        BOS. Where a segment comes first, an empty text before it does that.

        Segments that this program has used lately are looked up while the model computes. If the sky has said by the end that
        one is gone, that raises; else the next call does.

        No failure of the sky raises once the segments are known: what does not come is computed.

        Args:
            pieces: Texts, token ids, segments and passages, in order; or what `lay_out` made of them.
            strategy: One word of `skymemory.segments.strategy`. `auto` takes one that the gate allows, where that is faster, and
                else computes all that is not exact. The others link without having proved that answers stay as they are.
            switch_layer: Layer below which all rows are computed (docs/pic.md); 1 for a blend and else 0 by default. `auto`
                chooses it.
            prefix_scope: Scope of the prompt's exact blocks (`KVCManager.get_cache`); that of the segments by default.
            computes: False: where nothing is to be linked that is not exact, the cache may end after what is exact. Up to 512
                tokens more are computed where linking would be slower, as the controller learns from them.
            cancelled: Tells, before each layer, whether nobody waits for the prompt any more.

        Raises:
            CancelledLinkError: Nobody waits for the prompt any more.
            TypeError: A piece is neither text nor token ids nor a segment.
            ValueError: There is no such strategy, it does not go with the switch layer or the sinks of a segment, or the model
                does not have a token id.
            SegmentError: There is no token, or a segment is unknown, has expired or is of another model.
            UnsupportedModelError: A strategy is wanted, and segments of the model cannot be linked.
        """
        begin_s = time.monotonic()
        self._watched.canaries.linked()
        wanted = Strategy.parse(strategy)
        if wanted.kind not in {Kind.EXACT, Kind.AUTO}:
            self._linked()
        unchecked = Unchecked()
        laid = pieces if isinstance(pieces, LaidOut) else self._laid_out(pieces, wanted, unchecked=unchecked)
        checked = self._lookups.submit(self._pieces.check, unchecked) if unchecked.ids or unchecked.passages else None
        tokens, scope = laid.tokens, self._scope if prefix_scope is None else prefix_scope
        if self._maker is None:
            linked = self._computed(tokens, self._manager.get_cache(tokens, scope=scope))
        else:
            linked = self._maker.make(CacheRequest(tokens, laid.used(wanted), wanted, switch_layer, scope, computes, cancelled))
        if checked is not None and checked.done() and isinstance(error := checked.exception(), SegmentError):
            raise error
        ids = torch.tensor([tokens], device=self._manager.engine.model.device)
        return LinkedPrompt(ids, linked.cache, replace(linked.report, total_s=time.monotonic() - begin_s), laid.placed)

    def check_canaries(self) -> int:
        """Compute the canaries that wait, and return their number.

        A thread does that, too, once no prompt was linked for 2 s, or when a canary has waited for a minute. A program that knows
        when it is idle calls this then.
        """
        return self._watched.canaries.check_now()

    def check(
        self, lines: Iterable[str], strategies: Sequence[str] = (), *, stop_early: bool = True, progress: Progress = no_progress
    ) -> list[dict[str, Any]]:
        """Check strategies on prompts, and keep the evidence for `auto`, on this host and through the sky (docs/pic.md).

        Evidence of an earlier check of the same strategies is dropped when this one has ended. If it does not end, all stays as
        it was.

        Args:
            lines: Lines of a file of prompts (`skymemory.segments.check`).
            strategies: Words of `skymemory.segments.grid`; by default those of `auto`.
            stop_early: True: leave a strategy alone as soon as these prompts cannot open it any more.
            progress: Called with the number of prompts checked and of all.

        Returns:
            `Verdict.figures()` of each strategy and switch layer.

        Raises:
            ValueError: A line is no prompt, there are too few, or a strategy cannot be checked.
            CheckError: A prompt could not be linked.
            CodecError: The codec cannot take the model's tensors.
            SegmentError: The model was changed meanwhile.
            UnsupportedModelError: Segments of the model cannot be linked.
        """
        linker, bos = self._linked(), self._bos()
        prompts = read_prompts(lines, lambda text, index: self._pieces.front(index) + self._pieces.plain(text))
        grid = options(checked_strategies(strategies, bos), layer_groups(linker.layers))
        if not grid:
            raise ValueError(f"the model has {linker.layers} layers, of which these strategies would load none")
        return self._watched.check(linker, prompts, grid, bos=bos, stop_early=stop_early, progress=progress)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _computes(self, sinks: int, cancelled: Callable[[], bool]) -> Callable[[Sequence[int]], torch.Tensor]:
        """Return a function that computes a segment."""
        linker, bos = self._linked(), self._bos()
        if sinks and bos is None:
            raise SegmentError(f"a segment behind {sinks} sinks needs a model with a BOS token, and this one has none")

        def compute(tokens: Sequence[int]) -> torch.Tensor:
            with self._computing:  # one after the other, so that threads do not fill the memory
                return linker.compute(tokens, sinks=sinks, bos=bos, cancelled=cancelled)

        return compute

    def _linked(self) -> Linker:
        if self._linker is None:
            raise UnsupportedModelError(self.why_not)
        return self._linker

    def _segments(self) -> SkySegments:
        """Return the segments in the manager's store, which may have been replaced by another one."""
        self._linked()
        known, store = self._sky, self._manager.store
        if known is None or known[0] is not store:
            engine = self._manager.engine
            model = SegmentModel(self._manager.fingerprint, engine.geometry, engine.vocabulary)
            made = SkySegments(
                store,
                model,
                codec=self._manager.codec,
                block_tokens=self._manager.block_tokens,
                tenant_secret=self._manager.tenant_secret,
                scope=self._scope,
                folder=self._folder,
            )
            self._sky = known = (store, made)
        return known[1]

    def _new_pieces(self) -> PromptPieces:
        add = lambda tokens, passage: self.add(tokens, passage.ttl_s, display_name=passage.display_name)  # noqa: E731
        return PromptPieces(self._manager, self._segments, add)

    def _new_maker(self) -> CacheMaker | None:
        if self._linker is None or self._planner is None:
            return None
        return CacheMaker(self._manager, self._linker, self._planner, self._watched, self._segments, self._lookups)

    def _laid_out(
        self,
        pieces: Sequence[PromptPiece],
        wanted: Strategy,
        check_length: Callable[[int], object] = lambda _: None,
        unchecked: Unchecked | None = None,
    ) -> LaidOut:
        tokens, placed = self._pieces.lay_out(pieces, lambda: self._may_link(wanted), check_length, unchecked)
        laid = LaidOut(tokens, tuple(placed), self._lossless)
        laid.check(wanted)
        return laid

    def _bos(self) -> int | None:
        given: Any = self._manager.tokenizer.bos_token_id
        bos: int | None = self._manager.engine.model.config.bos_token_id if given is None else given
        return bos

    def _may_link(self, wanted: Strategy) -> bool:
        """Return True if a strategy may link segments, and not only those that are exact."""
        if self._planner is None or wanted.kind is Kind.EXACT:
            return False
        return wanted.kind is not Kind.AUTO or bool(self._planner.allowed(self._manager.fingerprint(), sinks=0))

    def _computed(self, tokens: list[int], prefix: DynamicCache) -> Linked:
        """Compute a prompt of a model that cannot be linked."""
        covered, end = prefix.get_seq_length(), len(tokens) - 1
        engine = self._manager.engine
        cache = engine.prefill(tokens[:-1], prefix)
        layers = engine.geometry.layers
        rows = (end - covered,) * layers if end > covered else ()
        report = LinkReport(EXACT, layers, 0, rows, covered, 0, 0, end, self.why_not, waited_s=0.0, total_s=0.0)
        return Linked(cache, report)
