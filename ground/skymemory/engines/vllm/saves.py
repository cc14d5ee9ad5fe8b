"""Saves of blocks from the paged cache to the sky: copied out layer by layer within the step, sealed and sent after it."""

from __future__ import annotations

import logging
import queue
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from threading import Lock, Thread
from typing import Any

import torch

from skymemory.agent.client import AgentClient, Outcome
from skymemory.agent.lease import Lease
from skymemory.engines.framing import HEADER_BYTES, Framing
from skymemory.engines.vllm.coding import Coder
from skymemory.engines.vllm.pages import Pages
from skymemory.engines.vllm.plans import PagedBlock, Saved
from skymemory.engines.vllm.tally import Tally
from skymemory.prompt.codecs.base import CodecError

_log = logging.getLogger(__name__)

_LAST_S = 2.0
"""Seconds for blocks that are on their way when the engine ends; vLLM gives its workers five seconds."""


@dataclass(slots=True)
class _Save:
    plan: PagedBlock
    lease: Lease
    payload: torch.Tensor
    """Bytes of the block: in the arena, behind the header; or in memory of its own, for a codec to read."""


@dataclass(slots=True)
class _Batch:
    """Blocks of one step."""

    saves: list[_Save]
    ended: float = 0.0
    """Time at which the step was over, on the monotonic clock."""
    layers: set[int] = field(default_factory=set)
    """Layers that are copied out already."""
    staged: list[tuple[int, torch.Tensor]] = field(default_factory=list)
    """Layers of a GPU and their rows, in pinned memory."""
    event: Any = None


class Saver:
    """Copies in the thread of the engine's steps, and does all else in a thread of its own. Never waits for room."""

    def __init__(
        self,
        client: AgentClient,
        pages: Pages,
        frames: Framing,
        *,
        key_of: Callable[[bytes], bytes],
        tally: Tally,
        coder: Coder | None = None,
    ) -> None:
        """Start the thread.

        Args:
            key_of: Returns the key in the sky for a plan's key.
            coder: Makes blocks smaller; None: they are stored as they are.
        """
        self._client = client
        self._pages = pages
        self._frames = frames
        self._key_of = key_of
        self._tally = tally
        self._coder = coder
        self._batch: _Batch | None = None
        self._refused: list[PagedBlock] = []
        """Blocks of this step that have no memory."""
        self._lock = Lock()
        self._saved = Saved()
        self._sending: set[Future[list[Outcome]]] = set()
        self._work: queue.SimpleQueue[_Batch | list[bytes] | None] = queue.SimpleQueue()
        self._thread = Thread(target=self._send_all, name="skymemory-save", daemon=True)
        self._thread.start()

    def begin(self, plans: Sequence[PagedBlock]) -> None:
        """Take memory for the blocks that are full after this step."""
        self._batch, self._refused = self._leased(plans)

    def layer(self, index: int) -> None:
        """Copy a layer that is computed."""
        if self._batch is not None and index not in self._batch.layers:
            self._copy(self._batch, index)

    def end(self, computed: bool) -> None:
        """End the step.

        Args:
            computed: False if the step failed, so that the copies may be anything.
        """
        batch, self._batch = self._batch, None
        refused, self._refused = self._refused, []
        if not computed:
            if batch is not None:
                self._drop(batch)
            self._report(Saved(failed=[plan.key for plan in refused]))
            return
        # A step takes long enough for room, or an agent, to come.
        late, refused = self._leased(refused)
        self._report(Saved(refused=[plan.key for plan in refused]))
        for one in (batch, late):
            if one is not None:
                self._finish(one)

    def _leased(self, plans: Sequence[PagedBlock]) -> tuple[_Batch | None, list[PagedBlock]]:
        """Return the blocks that there is memory for, and the others."""
        saves: list[_Save] = []
        refused: list[PagedBlock] = []
        for plan in plans:
            lease = self._client.lease(self._frames.block_bytes)
            if lease is None:
                refused.append(plan)
                continue
            if self._coder is None:
                payload = torch.frombuffer(lease.view, dtype=torch.uint8, offset=HEADER_BYTES)
            else:
                payload = torch.empty(self._coder.payload_bytes, dtype=torch.uint8)
            saves.append(_Save(plan, lease, payload))
        return _Batch(saves) if saves else None, refused

    def _copy(self, batch: _Batch, index: int) -> None:
        batch.layers.add(index)
        if self._pages.device.type == "cpu":
            for save in batch.saves:
                self._pages.read(index, save.plan.block_id, save.payload)
        else:
            # The copy is in the order of the stream: the next step writes after it.
            batch.staged.append((index, self._pages.gather(index, [save.plan.block_id for save in batch.saves])))

    def _finish(self, batch: _Batch) -> None:
        batch.ended = time.monotonic()
        for index in range(len(self._pages)):  # a step in one CUDA graph does not stop at its layers
            if index not in batch.layers:
                self._copy(batch, index)
        if batch.staged:
            batch.event = torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            batch.event.record()
        self._work.put(batch)

    def used(self, keys: list[bytes]) -> None:
        """Tell the agent that a chain was used, after earlier copies have been stored.

        Args:
            keys: Keys in the sky, the first block first.
        """
        self._work.put(keys)

    def results(self) -> Saved | None:
        """Return what became of blocks since the last call; None if nothing is new."""
        with self._lock:
            saved, self._saved = self._saved, Saved()
        return saved or None

    def close(self) -> None:
        """End the thread. Blocks that were copied out are sent first, if that does not take long."""
        self._work.put(None)
        self._thread.join()
        wait(self._sending, timeout=_LAST_S)

    def _send_all(self) -> None:
        while (batch := self._work.get()) is not None:
            if isinstance(batch, list):
                self._tell_used(batch)
                continue
            try:
                future = self._send(batch)
            except Exception:
                _log.exception("blocks could not be packed and are not stored")
                self._drop(batch)
                continue
            self._sending.add(future)
            future.add_done_callback(self._sending.discard)
            future.add_done_callback(partial(self._sent, batch))

    def _send(self, batch: _Batch) -> Future[list[Outcome]]:
        if batch.event is not None:
            batch.event.synchronize()
        for index, rows in batch.staged:
            for save, row in zip(batch.saves, rows, strict=True):
                self._pages.put(index, row, save.payload)
        if self._coder is not None:
            self._encode(batch, self._coder)
        for save in batch.saves:
            self._frames.seal(save.lease.view, self._key_of(save.plan.key))
        return self._client.put([(self._key_of(save.plan.key), save.lease) for save in batch.saves])

    def _encode(self, batch: _Batch, coder: Coder) -> None:
        """Make the blocks smaller, in the thread that sends them. Blocks that cannot be coded are not stored."""
        for save in [*batch.saves]:
            room = torch.frombuffer(save.lease.view, dtype=torch.uint8, offset=HEADER_BYTES)
            try:
                coder.encode(save.payload, room)
                save.payload = room  # the uncoded bytes are not kept until the block is stored
            except CodecError as error:
                _log.warning("block %s is not stored: %s", self._key_of(save.plan.key).hex()[:16], error)
                del room
                batch.saves.remove(save)
                save.lease.release()
                self._report(Saved(failed=[save.plan.key]))

    def _tell_used(self, keys: list[bytes]) -> None:
        """Tell the agent of used chains once nothing is on its way: a block that comes later would count as used after them."""
        on_way = set(self._sending)
        if not on_way:
            self._client.used(keys)
            return
        left = count(len(on_way) - 1, -1)

        def ended(_: Future[list[Outcome]]) -> None:
            if next(left) == 0:
                self._client.used(keys)

        for future in on_way:
            future.add_done_callback(ended)

    def _sent(self, batch: _Batch, future: Future[list[Outcome]]) -> None:
        if future.exception() is not None:
            return self._drop(batch)
        for save, outcome in zip(batch.saves, future.result(), strict=True):
            save.lease.release()
            if outcome.ok:
                self._tally.count("saved")
                self._tally.count("saved_bytes", self._frames.block_bytes)
                self._report(Saved(done=[save.plan.key]))
            else:
                self._report(Saved(failed=[save.plan.key]))
        self._tally.time("save", time.monotonic() - batch.ended)
        return None

    def _drop(self, batch: _Batch) -> None:
        for save in batch.saves:
            save.lease.release()
        self._report(Saved(failed=[save.plan.key for save in batch.saves]))

    def _report(self, saved: Saved) -> None:
        with self._lock:
            self._saved.add(saved)
