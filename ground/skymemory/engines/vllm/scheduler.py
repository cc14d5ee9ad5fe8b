"""The scheduler's side: decides which blocks to load and to store, and never waits.

A request's blocks are asked for when vLLM first asks what is cached for it. Until the answer is there vLLM is told "not known
yet" and goes on with other requests. A late answer is a miss. A block whose load failed is computed, and the request asks for
no other: else a block that cannot be read would be asked for again and again.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from typing import Any, Protocol

from skymemory.agent.client import AgentClient
from skymemory.agent.protocol import Found
from skymemory.engines.vllm.events import BlockEvents
from skymemory.engines.vllm.identity import derived_root, shard_key
from skymemory.engines.vllm.plans import Identity, LoadPlan, PagedBlock, Saved, StepPlan
from skymemory.engines.vllm.tally import Tally
from skymemory.engines.vllm.transfer_room import TransferRoom
from skymemory.wire.key_derivation import block_key, name_key

_log = logging.getLogger("vllm.skymemory")
"""Logger below vLLM's own: of other loggers vLLM shows only warnings."""

_KNOWN_BLOCKS = 1 << 16
"""Most keys that are remembered as stored."""
_ALONE_S = 0.002
"""Seconds to wait for the lookup of the only request before vLLM is told "not known yet" and does empty steps."""
_REFUSED_S = 0.1
"""Seconds for which a request plans nothing after workers had no room or no agent for a block."""


class ScheduledRequest(Protocol):
    """The part of vLLM's `ScheduledRequest` that is used here."""

    request_id: str
    num_computed_tokens: int
    num_prompt_tokens: int
    num_tokens: int
    block_hashes: Sequence[bytes]
    skip_reading_prefix_cache: bool
    lora_request: Any


@dataclass(slots=True)
class AgentSession:
    """The engine once its root is known."""

    identity: Identity
    client: AgentClient
    since: float = field(default_factory=time.monotonic)


@dataclass(slots=True)
class _Lookup:
    first: int
    """First block asked for: those before are in vLLM's own cache."""
    started: float
    future: Future[Any] | None = None
    """Answer of the agent; None if it was not asked yet, since root or agent are not there."""
    fetch: int | None = None
    """Blocks to load; None if not known yet."""


@dataclass(slots=True)
class _Track:
    """A request that vLLM has not finished."""

    request: ScheduledRequest
    since: float
    """Time at which it came, on the monotonic clock."""
    keys: list[bytes] = field(default_factory=list)
    """Keys of its full blocks, as far as they were needed."""
    lookup: _Lookup | None = None
    barred: bool = False
    """True if no more is loaded for it."""
    loading: dict[int, bytes] = field(default_factory=dict)
    """Blocks on their way into the paged cache: keys by place."""
    saved: int = 0
    """Blocks at its beginning that are stored, on their way, or not to be stored."""
    save_after: float = 0.0
    """Time until which nothing is stored of it, on the monotonic clock: there was no room."""
    closed: bool = False
    """True if no more is stored of it."""
    told: int = 0
    """Blocks of it whose use the agent knows."""
    adapter: Future[bytes] | None = None
    """Digest of its LoRA adapter that was asked for."""


@dataclass(slots=True)
class _Saving:
    """A block on its way to the sky."""

    track: _Track
    index: int
    """Index among the request's blocks."""
    parts: int
    """Number of workers that have not yet stored their part."""


class SchedulerSide:
    """The connector's part in the scheduler, one per engine. Called by one thread."""

    def __init__(
        self,
        *,
        block_tokens: int,
        prompt_tokens_max: int,
        shards: int,
        loads: bool,
        saves: bool,
        always_fetch: bool,
        lookup_timeout_s: float,
        open_session: Future[AgentSession],
        adapter_digest: Callable[[Any], Future[bytes]],
        tally: Tally,
        events: BlockEvents,
        alone_s: float = _ALONE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take over what the connector knows.

        Args:
            block_tokens: Tokens of a block.
            prompt_tokens_max: Most tokens of a request (`--max-model-len`).
            shards: Workers with a part of their own of each block.
            loads: True if blocks are fetched (`kv_role` is a consumer or both).
            saves: True if blocks are stored (producer or both).
            always_fetch: True if blocks are fetched even if they are computed faster.
            lookup_timeout_s: Time after which an answer is a miss, and that a new client has to find its agent.
            open_session: Ends when root and client are there; fails if there is no cache for this engine.
            alone_s: Time to wait for a lookup of the only request.
            events: Gets the blocks that came and went.
            clock: Clock of all waits, in seconds.
            adapter_digest: Digest of a LoRA request's weights; fails if it is not known what computes its blocks.
        """
        self._block_tokens = block_tokens
        self._prompt_tokens_max = prompt_tokens_max
        self._shards = shards
        self._loads_wanted = loads
        self._saves_wanted = saves
        self._always_fetch = always_fetch
        self._timeout_s = lookup_timeout_s
        self.room: TransferRoom | None = None
        """Room of the workers for blocks on their way; None until the workers have told how large a block is."""
        self._warned = False
        self._opening = open_session
        self._adapter_digest = adapter_digest
        self._tally = tally
        self._events = events
        self._alone_s = alone_s
        self._clock = clock
        self._epoch = b""
        self._tracks: dict[str, _Track] = {}
        self._stored: OrderedDict[bytes, None] = OrderedDict()
        self.saving: dict[bytes, _Saving] = {}
        """Blocks that are being stored, by their keys."""
        self._loads: list[LoadPlan] = []
        self._used: list[tuple[bytes, ...]] = []
        self.capacity: int | None = None
        """Blocks that the sky holds; None until it is known."""
        self._asking: Future[Any] | None = None
        """Question for the capacity alone."""

    def add(self, request: ScheduledRequest) -> None:
        """Begin to track a request."""
        self._tracks[request.request_id] = _Track(request, self._clock())
        if request.lora_request is not None:
            self._adapter_digest(request.lora_request)  # the digest is taken before the engine reads the files

    def matched(self, request: ScheduledRequest, computed: int) -> tuple[int | None, bool]:
        """Return the tokens behind the first `computed` that can be loaded, and True if that goes on beside the engine's steps.

        Args:
            computed: Tokens that vLLM has itself, a multiple of a block's.

        Returns:
            (None, False) as long as it is not known.
        """
        track = self._tracks.get(request.request_id)
        if track is not None and self.room is None and self._clock() - track.since <= self._timeout_s:
            return None, False  # the workers tell their layout after the next step, also if it computes nothing
        first = computed // self._block_tokens
        blocks = min(request.num_tokens // self._block_tokens, len(request.block_hashes))
        if not self._loads_wanted or track is None or track.barred or request.skip_reading_prefix_cache or blocks <= first:
            return 0, False
        if track.lookup is None or track.lookup.first != first:
            track.lookup = _Lookup(first, self._clock())
        fetch = self._poll(track, track.lookup, blocks)
        if fetch is None:
            return None, False
        # At least one token has to be computed, because the next one is read off there.
        tokens = min((first + fetch) * self._block_tokens, request.num_tokens - 1) - computed
        return (tokens, True) if tokens > 0 else (0, False)

    def allocated(self, request: ScheduledRequest, block_ids: Sequence[int], external: int) -> None:
        """Note that vLLM made room for a request.

        Args:
            block_ids: Places of all its blocks.
            external: Tokens to be loaded; 0 for none.
        """
        track = self._tracks.get(request.request_id)
        if external <= 0 or track is None or track.lookup is None:
            return
        first = track.lookup.first
        end = -(-(first * self._block_tokens + external) // self._block_tokens)
        track.loading = dict(zip(block_ids[first:end], track.keys[first:end], strict=True))
        track.lookup = None
        blocks = tuple(PagedBlock(place, key) for place, key in track.loading.items())
        self._loads.append(LoadPlan(request.request_id, blocks))

    def plan(self, scheduled: dict[str, int], places: Callable[[str], Sequence[int] | None]) -> StepPlan:
        """Return the tasks of the workers in this step.

        Args:
            scheduled: Tokens to be computed, by request.
            places: Returns the places of a request's blocks in the paged cache.
        """
        session = self._session()
        step = StepPlan(
            session.identity if session else None, loads=self._loads, used=self._used, is_layout_wanted=self.room is None
        )
        self._loads, self._used = [], []
        if session is not None and not self._loads_wanted:
            self._ask_capacity(session)
        for name, tokens in scheduled.items():
            track = self._tracks.get(name)
            if track is None:
                continue
            if (before := track.request.num_computed_tokens) < track.request.num_prompt_tokens:
                step.prefill_tokens += tokens
                step.prefill_pairs += tokens * (before + tokens / 2)
            else:
                step.other_tokens += tokens
            if session is not None and self._saves_wanted:
                step.saves += self._to_save(track, before + tokens, places)
            if before < track.request.num_prompt_tokens <= before + tokens:
                step.used += self._to_tell(track, before + tokens)
        return step

    def _to_save(self, track: _Track, computed: int, places: Callable[[str], Sequence[int] | None]) -> list[PagedBlock]:
        """Return full blocks of a request that are not stored yet, the first ones first, as many as there is room for.

        Guessed tokens have no hash, so their blocks are not among them.
        """
        full = self._stored_max(track.request, computed)
        room = self.room
        if room is None or track.closed or full <= track.saved or self._clock() < track.save_after:
            return []
        if not self._extend_keys(track, full):
            return []
        found = places(track.request.request_id)
        if found is None:
            return []
        plans: list[PagedBlock] = []
        for index in range(track.saved, full):
            key = track.keys[index]
            if key not in self._stored and key not in self.saving:
                if len(self.saving) >= room.saves:
                    break  # a later step stores the rest, if the request still runs
                self.saving[key] = _Saving(track, index, self._shards)
                plans.append(PagedBlock(found[index], key))
            track.saved = index + 1
        return plans

    def _full(self, request: ScheduledRequest, computed: int) -> int:
        return min(computed // self._block_tokens, len(request.block_hashes))

    def _stored_max(self, request: ScheduledRequest, computed: int) -> int:
        """Return how many full blocks of a request are to be stored: more than the sky holds would evict the first ones."""
        full = self._full(request, computed)
        return full if self.capacity is None else min(full, self.capacity)

    def _to_tell(self, track: _Track, computed: int) -> list[tuple[bytes, ...]]:
        """Return the chain of a request, so that satellites evict its end first; an empty list if there is none."""
        track.told = min(self._stored_max(track.request, computed), len(track.keys))
        return [tuple(track.keys[: track.told])] if track.told else []

    def saved(self, outcome: Saved) -> None:
        """Take in what workers report of blocks that were to be stored."""
        for key in outcome.failed:
            if self.saving.pop(key, None) is not None:
                self._tally.count("save_failed")
        for key in outcome.refused:
            if (saving := self.saving.pop(key, None)) is not None:
                track = saving.track
                track.saved = min(track.saved, saving.index)
                track.save_after = self._clock() + _REFUSED_S
                if self._tracks.get(track.request.request_id) is not track:
                    self._tally.count("save_skipped")  # the request is finished, so this is too late
        for key in outcome.done:
            if (saving := self.saving.get(key)) is not None:
                saving.parts -= 1
                if saving.parts == 0:
                    del self.saving[key]
                    self._remember([key])
                    self._events.came(key, saving.track.request, saving.index)

    def loaded(self, finished: Iterable[str], failed: set[int]) -> None:
        """Take in which requests have their blocks, and which places hold nothing."""
        if failed:
            for track in self._tracks.values():
                if lost := [key for place, key in track.loading.items() if place in failed]:
                    track.barred = True
                    track.saved = min(track.saved, track.keys.index(lost[0]))
                    for key in lost:
                        self._stored.pop(key, None)  # the block is computed now, and can be stored anew
                        self._events.went(key)
        for name in finished:
            if name in self._tracks:
                self._tracks[name].loading = {}

    def remove(self, request: ScheduledRequest, computed: int) -> None:
        """Stop tracking a request that is finished, or was aborted.

        Args:
            computed: Tokens of it that were computed.
        """
        track = self._tracks.pop(request.request_id, None)
        if track is None or track.closed or not self._saves_wanted:
            return
        full = self._stored_max(request, computed)
        self._left_out(full - track.saved, full)
        self._tally.count("save_beyond", self._full(request, computed) - full)
        if full > track.told:
            self._used += self._to_tell(track, computed)

    def _left_out(self, blocks: int, full: int) -> None:
        """Count blocks of a finished request that are not stored, and log them the first time."""
        if blocks <= 0:
            return
        self._tally.count("save_skipped", blocks)
        session, room = self._session(), self.room
        if not self._warned and room is not None and session is not None and session.client.connected:
            self._warned = True
            _log.warning(
                "%d of %d blocks of a request were not stored: it was finished before there was room. %d may be on their way "
                "to the sky at once; all fit with arena_mib %d in kv_connector_extra_config (now %d). Later ones are counted in "
                "vllm:skymemory_save_skipped_blocks_total",
                blocks,
                full,
                room.saves,
                room.mib_for(full),
                room.arena_bytes >> 20,
            )

    def forget(self, salt: bytes) -> None:
        """Stop finding any block stored so far: the weights have changed, or the cache is to be cleared.

        Args:
            salt: Bytes that were never used before.
        """
        self._epoch += salt
        self._stored.clear()
        self._events.all_went()
        for track in self._tracks.values():
            track.lookup, track.barred, track.closed = None, True, True

    def _session(self) -> AgentSession | None:
        if not self._opening.done() or self._opening.exception() is not None:
            return None
        return self._opening.result()

    def _poll(self, track: _Track, lookup: _Lookup, blocks: int) -> int | None:
        if lookup.fetch is not None:
            return lookup.fetch
        now = self._clock()
        if lookup.future is None:
            self._ask(track, lookup, blocks, now)
        if lookup.future is not None and len(self._tracks) == 1:
            wait([lookup.future], timeout=self._alone_s)
        if lookup.future is not None and lookup.future.done():
            found = lookup.future.result()
            self._learn_capacity(found)
            whole = found.blocks // self._shards
            self._remember(track.keys[:whole])
            for index, key in enumerate(track.keys[:whole]):
                self._events.came(key, track.request, index)
            for key in track.keys[whole:blocks]:
                self._stored.pop(key, None)
                self._events.went(key)
            new = max(0, whole - lookup.first)
            lookup.fetch = new if self._always_fetch else min(new, found.fetch // self._shards)
            self._tally.count("found", new)
            self._tally.count("declined", new - lookup.fetch)
            self._tally.count("missing", blocks - lookup.first - new)
        elif track.barred or (self._opening.done() and self._opening.exception() is not None):
            lookup.fetch = 0
        elif now - lookup.started > self._timeout_s:
            lookup.fetch = 0
            self._tally.count("lookup_late")
        if lookup.fetch is not None:
            self._tally.time("lookup", now - lookup.started)
        return lookup.fetch

    def _ask(self, track: _Track, lookup: _Lookup, blocks: int, now: float) -> None:
        session = self._session()
        if session is None or (not session.client.connected and now - session.since < self._timeout_s):
            return
        if self._extend_keys(track, blocks):
            keys = [shard_key(key, shard) for key in track.keys[:blocks] for shard in range(self._shards)]
            lookup.future = session.client.find(keys, cached=lookup.first * self._shards)

    def _ask_capacity(self, session: AgentSession) -> None:
        """Ask for the capacity of the sky: an engine that only stores looks for no blocks, but has to know it all the same."""
        if self._asking is None and self.capacity is None and session.client.connected:
            self._asking = session.client.find([], wanted=False)
        if self._asking is not None and self._asking.done():
            self._learn_capacity(self._asking.result())
            self._asking = None

    def _learn_capacity(self, found: Found) -> None:
        """Take the capacity that the agent reports, and log it the first time and when it changes."""
        blocks = found.capacity // self._shards
        if not found.capacity or blocks == self.capacity:
            return
        self.capacity = blocks
        tokens = blocks * self._block_tokens
        where = f"{found.servers} servers with store_mib {found.store_mib}"
        _log.info("SkyMemory: this sky holds %d tokens of this model: %d blocks (%s)", tokens, blocks, where)
        if tokens < self._prompt_tokens_max:
            _log.warning(
                "SkyMemory: this sky holds %d tokens of this model (%s), and a prompt may have %d: of a longer one only the "
                "beginning is stored (`skymem size` says which store_mib is enough)",
                tokens,
                where,
                self._prompt_tokens_max,
            )

    def _extend_keys(self, track: _Track, blocks: int) -> bool:
        """Compute keys of so many blocks. Return False if the root is not known yet."""
        session = self._session()
        if session is None:
            return False
        if len(track.keys) < blocks:
            root = self._root(session.identity.root, track)
            if root is None:
                return False
            names = name_key(root)
            track.keys += [block_key(names, value) for value in track.request.block_hashes[len(track.keys) : blocks]]
        return True

    def _root(self, root: bytes, track: _Track) -> bytes | None:
        """Return the root of a request's keys; None if it is not known yet, or never (then the request is closed)."""
        if self._epoch:
            root = derived_root(root, self._epoch)
        adapter = track.request.lora_request
        if adapter is None:
            return root
        digest = track.adapter = track.adapter or self._adapter_digest(adapter)
        if not digest.done():
            return None
        track.adapter = None  # the adapter's files may be others when the next block is full
        if digest.exception() is not None:
            track.barred = track.closed = True
            return None
        return derived_root(root, digest.result())

    def _remember(self, keys: Iterable[bytes]) -> None:
        for key in keys:
            self._stored[key] = None
            self._stored.move_to_end(key)
        while len(self._stored) > _KNOWN_BLOCKS:
            self._stored.popitem(last=False)
