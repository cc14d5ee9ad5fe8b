"""Prompts that are larger than the sky, through both sides of the connector, an agent and real satellites."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import torch

from skymemory.agent.client import AgentClient, EngineInfo
from skymemory.engines.vllm.events import BlockEvents
from skymemory.engines.vllm.plans import Identity
from skymemory.engines.vllm.scheduler import AgentSession, SchedulerSide
from skymemory.engines.vllm.tally import Tally
from skymemory.engines.vllm.transfer_room import TransferRoom
from skymemory.engines.vllm.worker import WorkerSide
from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess, tell_up
from support.waiting import PATIENCE_S, wait_until

TOKENS = 16
BLOCKS = 24
"""of vLLM's own cache"""
STEP_TOKENS = 4 * TOKENS
WHO = Identity(bytes(32), "model", TOKENS, "float32")


@dataclass
class Asked:
    """As vLLM's request."""

    request_id: str
    num_tokens: int
    name: str
    num_computed_tokens: int = 0
    skip_reading_prefix_cache: bool = False
    lora_request: Any = None
    block_hashes: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.num_prompt_tokens = self.num_tokens
        self.block_hashes = [sha256(f"{self.name} {at}".encode()).digest() for at in range(self.num_tokens // TOKENS)]


class Engine:
    """The connector's two sides, and as much of vLLM as asks them. Nothing stays in its own cache."""

    def __init__(self, agent: AgentProcess) -> None:
        self.tally = Tally()
        self._clients: list[AgentClient] = []
        self.caches = {f"layer.{at}": torch.zeros(BLOCKS, 2, TOKENS, 1560) for at in range(2)}
        opening: Future[AgentSession] = Future()
        self.worker = WorkerSide(
            rank=0,
            replicas=1,
            blocks=BLOCKS,
            block_tokens=TOKENS,
            layout_name="LBHNC",
            open_client=lambda who, block_bytes, arena_bytes: self._client(agent, block_bytes, arena_bytes),
            room_for=self._room,
            load_timeout_s=PATIENCE_S,
            tally=self.tally,
        )
        self.worker.register(self.caches)
        self.block_bytes = self.worker.layout.format.block_bytes
        self.client = self._client(agent, self.block_bytes, 1 << 16)
        opening.set_result(AgentSession(WHO, self.client))
        self._digests = ThreadPoolExecutor(1)
        self.scheduler = SchedulerSide(
            block_tokens=TOKENS,
            prompt_tokens_max=BLOCKS * TOKENS,
            shards=1,
            loads=True,
            saves=True,
            always_fetch=True,
            lookup_timeout_s=PATIENCE_S,
            open_session=opening,
            adapter_digest=lambda _: Future(),
            tally=self.tally,
            events=BlockEvents(),
        )
        self.scheduler.room = self._room(self.block_bytes)
        self._count = 0
        self._step({})  # with it the worker opens its client
        assert all(client.wait_connected(PATIENCE_S) for client in self._clients)

    def ask(self, name: str, blocks: int) -> int:
        """Have a prompt computed or fetched, and all of it stored that is to be; how many tokens came from the sky."""
        self._count += 1
        request = Asked(f"{self._count}", blocks * TOKENS + 1, name)
        self.scheduler.add(request)
        wait_until(lambda: self.scheduler.matched(request, 0)[0] is not None, "the lookup is answered")
        cached = self.scheduler.matched(request, 0)[0] or 0
        self.scheduler.allocated(request, range(BLOCKS), cached)
        if cached:
            wait_until(self._is_loaded, "what was found is loaded", pause_s=0.002)
        for at in range(cached // TOKENS):
            assert all(torch.equal(cache[at], self._computed(request, at)) for cache in self.caches.values())
        request.num_computed_tokens = cached
        while request.num_computed_tokens < request.num_tokens:
            tokens = min(STEP_TOKENS, request.num_tokens - request.num_computed_tokens)
            first, last = request.num_computed_tokens // TOKENS, (request.num_computed_tokens + tokens) // TOKENS
            for at in range(first, last):
                for cache in self.caches.values():
                    cache[at] = self._computed(request, at)
            self._step({request.request_id: tokens})
            request.num_computed_tokens += tokens
        wait_until(self._all_is_stored, "what was computed is stored")
        self.scheduler.remove(request, request.num_computed_tokens)
        return cached

    def _is_loaded(self) -> bool:
        self._step({})  # vLLM makes steps for others meanwhile
        finished, errors = self.worker.loaded()
        self.scheduler.loaded(finished, errors)
        assert not (finished and errors)
        return bool(finished)

    def close(self) -> None:
        self.worker.close()
        self.client.close()
        self._digests.shutdown()

    def _step(self, scheduled: dict[str, int]) -> None:
        plan = self.scheduler.plan(scheduled, lambda _: range(BLOCKS))
        self.worker.begin(plan)
        self.worker.load()
        self.worker.end(computed=True)

    def _all_is_stored(self) -> bool:
        if (saved := self.worker.saved()) is not None:
            assert not saved.failed
            self.scheduler.saved(saved)
        return not self.scheduler.saving

    def _computed(self, request: Asked, at: int) -> torch.Tensor:
        number = int.from_bytes(request.block_hashes[at][:3])
        return torch.full(self.caches["layer.0"].shape[1:], float(number))

    def _room(self, block_bytes: int) -> TransferRoom:
        return TransferRoom(block_bytes, STEP_TOKENS // TOKENS, 64 * block_bytes)

    def _client(self, agent: AgentProcess, block_bytes: int, arena_bytes: int) -> AgentClient:
        info = EngineInfo("vllm", "model", WHO.root, TOKENS, block_bytes, "float32")
        self._clients.append(AgentClient(agent.socket, engine=info, arena_bytes=arena_bytes))
        return self._clients[-1]


@pytest.fixture
def agent(start_sky: Callable[..., LocalConstellation], tmp_path: Path) -> Iterator[AgentProcess]:
    """Over six servers of 1 MiB, two of parity: nine blocks of 400 kB, as twelve of 16 MiB hold nine of 16.8 MB."""
    local = start_sky(constellation={"planes": 3, "slots": 3}, cache={"servers": 6, "centre": [2, 2]}, satellite={"store_mib": 1})
    tell_up(tmp_path, local)
    with AgentProcess(tmp_path) as process:
        process.wait_ready()
        yield process


@pytest.fixture
def engine(agent: AgentProcess) -> Iterator[Engine]:
    with closing(Engine(agent)) as made:
        yield made


def test_the_same_prompt_finds_the_same_beginning_each_time(engine: Engine) -> None:
    cached = [engine.ask("long", 14) for _ in range(4)]
    room = engine.scheduler.capacity
    assert room is not None
    assert 8 <= room < 14
    assert cached[0] == 0
    assert min(cached[1:]) >= (room - 1) * TOKENS  # a block may make way for the agent's own record of the format
    assert len(set(cached[2:])) == 1
    assert engine.tally.take()["save_beyond"] >= 4 * (14 - room)


def test_another_prompt_takes_the_end_of_the_one_before(engine: Engine, agent: AgentProcess) -> None:
    engine.ask("long", 14)
    room = engine.scheduler.capacity
    assert room is not None
    wait_until(lambda: agent.metric("skymem_store_touches_total") >= room - 1, "the chain is touched")
    engine.ask("short", 3)
    assert engine.ask("short", 3) == 3 * TOKENS
    left = engine.ask("long", 14)
    assert (room - 5) * TOKENS <= left <= (room - 3) * TOKENS
