"""The worker's side: moves its part of each block between the paged cache and the agent."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import blake3
import torch

from skymemory.agent.client import AgentClient
from skymemory.engines.framing import DTYPE_BYTES_MAX, HEADER_BYTES, LAYOUT_BYTES_MAX, BlockFormat, Framing
from skymemory.engines.vllm.coding import Coder
from skymemory.engines.vllm.identity import shard_key
from skymemory.engines.vllm.loads import Loader
from skymemory.engines.vllm.pages import Pages
from skymemory.engines.vllm.plans import Identity, Layout, Saved, StepPlan
from skymemory.engines.vllm.saves import Saver
from skymemory.engines.vllm.settings import UnsupportedError
from skymemory.engines.vllm.tally import Tally
from skymemory.engines.vllm.transfer_room import TransferRoom

_PREFILL_TOKENS = 16
"""Fewest tokens of a step that say how fast prefill is."""


class _Session:
    """Connection, loader and saver, from the step in which the engine's root was known."""

    def __init__(self, client: AgentClient, loader: Loader, saver: Saver) -> None:
        self.client = client
        self.loader = loader
        self.saver = saver

    def close(self) -> None:
        self.loader.close()
        self.saver.close()
        self.client.close()


class WorkerSide:
    """The connector's part in a worker. Called by the thread of the engine's steps."""

    def __init__(
        self,
        *,
        rank: int,
        shards: int,
        replicas: int,
        blocks: int,
        block_tokens: int,
        layout_name: str,
        open_client: Callable[[Identity, int, int], AgentClient],
        room_for: Callable[[int], TransferRoom],
        load_timeout_s: float,
        tally: Tally,
        codec: str = "raw",
    ) -> None:
        """Take over what the connector knows.

        Args:
            rank: Rank among the workers with the same layers, from 0.
            shards: Workers with a part of their own of each block.
            replicas: Number of consecutive ranks that hold the same heads.
            blocks: Blocks of the paged cache.
            layout_name: Name that vLLM has for the order of the tensors.
            open_client: Makes a client by identity, bytes of a block, and memory for blocks on their way.
            codec: Codec of stored blocks; `raw` stores them as they are.
            room_for: Returns the memory for blocks on their way, by bytes of a block.
        """
        self.shard = rank // replicas
        """Number of this worker's part of each block, from 0."""
        self._shards = shards
        self._writes = rank % replicas == 0
        self._times = rank == 0
        self._blocks = blocks
        self._block_tokens = block_tokens
        self._layout_name = layout_name
        self._open_client = open_client
        self._room_for = room_for
        self._load_timeout_s = load_timeout_s
        self._tally = tally
        self._codec = codec
        self._coder: Coder | None = None
        self._pages: Pages | None = None
        self._session: _Session | None = None
        self._step: StepPlan | None = None
        self._began = 0.0
        self._mark: Any = None
        """Place on a GPU's stream where the step began."""
        self._marks: deque[tuple[Any, Any, StepPlan]] = deque()
        """Begin and end of steps that the GPU may still compute."""

    @property
    def layout(self) -> Layout:
        """Layout of this worker's part of a block."""
        assert self._pages is not None
        pages = self._pages
        layers = len(pages) if pages.layer_bytes is not None else 1
        coder = self._coder
        mark = blake3.blake3(json.dumps(pages.facts).encode()).hexdigest(8)
        return Layout(
            BlockFormat(
                block_tokens=self._block_tokens,
                layers=layers,
                layer_bytes=pages.payload_bytes // layers if coder is None else coder.layer_bytes,
                dtype=(pages.dtype if coder is None else f"{pages.dtype} {coder.name}")[:DTYPE_BYTES_MAX],
                layout=f"{self._layout_name},{mark}"[:LAYOUT_BYTES_MAX],
            ),
            pages.facts,
        )

    @property
    def is_layout_wanted(self) -> bool:
        """True if the scheduler does not know the layout yet."""
        return self._step is not None and self._step.is_layout_wanted

    def register(self, caches: dict[str, torch.Tensor]) -> None:
        """Take the paged cache.

        Raises:
            UnsupportedError: The cache cannot be cut into blocks, or the arena is too small for them.
        """
        try:
            self._pages = Pages(caches, self._blocks)
            self._coder = None if self._codec == "raw" else Coder(self._codec, self._pages)
        except (ValueError, RuntimeError) as error:
            raise UnsupportedError(f"SkyMemoryConnector: the KV cache has a layout that is not supported: {error}") from error
        block_bytes = self.layout.format.block_bytes
        room = self._room_for(block_bytes)
        least = 4 * block_bytes
        if room.arena_bytes < least:
            raise UnsupportedError(
                f"kv_connector_extra_config: arena_mib is {room.arena_bytes >> 20}; a block of this model has "
                f"{block_bytes} bytes, so allowed are {-(-least >> 20)} and more"
            )

    def begin(self, step: StepPlan) -> None:
        """Begin a step."""
        self._step = step
        if step.identity is not None and self._session is None:
            self._session = self._open(step.identity)
        if self._session is not None and step.saves and self._writes:
            self._session.saver.begin(step.saves)
        self._began = time.perf_counter()
        on_gpu = self._pages is not None and self._pages.device.type == "cuda"
        self._mark = _mark() if on_gpu and self._is_prefill(step) else None

    def load(self) -> None:
        """Begin the loads of this step, which go on beside the next ones."""
        if self._step is None or not self._step.loads:
            return
        assert self._session is not None  # a scheduler that plans loads knows the identity
        for plan in self._step.loads:
            self._session.loader.submit(plan)
        self._step.loads = []

    def layer(self, name: str) -> None:
        """Copy out a layer that is computed."""
        if self._session is not None and self._pages is not None and (index := self._pages.layer(name)) is not None:
            self._session.saver.layer(index)

    def end(self, computed: bool) -> None:
        """End the step.

        Args:
            computed: False if it failed.
        """
        if self._session is None or self._step is None:
            return
        self._session.saver.end(computed)
        if self._writes:
            for chain in self._step.used:
                # A block is of no use without the parts of all workers. So they are used in one order, and evicted together.
                # Each worker tells this when its own parts have come; the last one tells it when all have.
                self._session.saver.used([shard_key(key, shard) for key in chain for shard in range(self._shards)])
            self._step.used = []
        if computed and self._is_prefill(self._step):
            self._prefilled(self._session.client, self._step)

    def abort(self, requests: Iterable[str]) -> None:
        """Call back the loads of requests that are finished."""
        if self._session is not None:
            self._session.loader.abort(requests)

    def loaded(self) -> tuple[set[str], set[int]]:
        """Return the requests whose loads have ended since the last call, and the places that hold nothing."""
        return self._session.loader.results() if self._session is not None else (set(), set())

    def saved(self) -> Saved | None:
        """Return what became of blocks since the last call; None if nothing is new."""
        return self._session.saver.results() if self._session is not None else None

    def close(self) -> None:
        """Send the blocks that were copied out, and leave."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _is_prefill(self, step: StepPlan) -> bool:
        return self._times and step.prefill_tokens >= _PREFILL_TOKENS and step.prefill_tokens >= 9 * step.other_tokens

    def _prefilled(self, client: AgentClient, step: StepPlan) -> None:
        """Tell the agent how long the step took, on a GPU only after the GPU has finished it."""
        if self._mark is None:
            client.prefilled(step.prefill_tokens, time.perf_counter() - self._began, step.prefill_before)
            return
        self._marks.append((self._mark, _mark(), step))
        while self._marks and self._marks[0][1].query():
            began, ended, step = self._marks.popleft()
            client.prefilled(step.prefill_tokens, began.elapsed_time(ended) / 1e3, step.prefill_before)

    def _open(self, identity: Identity) -> _Session:
        assert self._pages is not None
        pages, frames, coder = self._pages, Framing(self.layout.format, identity.root), self._coder
        client = self._open_client(identity, frames.block_bytes, self._room_for(frames.block_bytes).arena_bytes)

        def key_of(key: bytes) -> bytes:
            return shard_key(key, self.shard)

        def take(view: memoryview, key: bytes, place: int) -> None:
            frames.open(view, key_of(key))
            data = torch.frombuffer(view, dtype=torch.uint8, offset=HEADER_BYTES)
            pages.write(place, data if coder is None else coder.decode(data))

        loader = Loader(
            client,
            block_bytes=frames.block_bytes,
            key_of=key_of,
            take=take,
            timeout_s=self._load_timeout_s,
            tally=self._tally,
        )
        saver = Saver(client, pages, frames, key_of=key_of, tally=self._tally, coder=coder)
        return _Session(client, loader, saver)


def _mark() -> Any:
    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # torch leaves it untyped
    event.record()
    return event
