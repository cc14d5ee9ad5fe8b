"""Prompts that are larger than the sky, through both sides of the connector, an agent and real satellites."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch

from skymemory.agent.client import AgentClient, EngineInfo
from skymemory.engines.vllm.events import BlockEvents
from skymemory.engines.vllm.identity import shard_key
from skymemory.engines.vllm.plans import Identity
from skymemory.engines.vllm.scheduler import AgentSession, SchedulerSide
from skymemory.engines.vllm.tally import Tally
from skymemory.engines.vllm.transfer_room import TransferRoom
from skymemory.engines.vllm.worker import WorkerSide
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.key_derivation import block_key, name_key
from support.agents import AgentProcess, tell_up
from support.waiting import PATIENCE_S, wait_until

TOKENS = 16
BLOCKS = 48
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
    """The connector's sides, and as much of vLLM as asks them. Nothing stays in its own cache."""

    def __init__(self, agent: AgentProcess, workers: int = 1, values: int = 1560) -> None:
        """Start a scheduler and its workers, each of which holds its part of every block: `values` of each token."""
        self.tally = Tally()
        self._clients: list[AgentClient] = []
        self.caches = [{f"layer.{at}": torch.zeros(BLOCKS, 2, TOKENS, values) for at in range(2)} for _ in range(workers)]
        opening: Future[AgentSession] = Future()
        self.workers = [self._worker(agent, rank, workers) for rank in range(workers)]
        self.block_bytes = self.workers[0].layout.format.block_bytes
        self.client = self._client(agent, self.block_bytes, 1 << 16)
        opening.set_result(AgentSession(WHO, self.client))
        self._digests = ThreadPoolExecutor(1)
        self.scheduler = SchedulerSide(
            block_tokens=TOKENS,
            prompt_tokens_max=BLOCKS * TOKENS,
            shards=workers,
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
        self._step({})  # with it the workers open their clients
        assert all(client.wait_connected(PATIENCE_S) for client in self._clients)

    def ask(self, name: str, blocks: int) -> int:
        """Have a prompt computed or fetched, and all of it stored that is to be; how many tokens came from the sky.

        What does not come is computed, as by vLLM.
        """
        self._count += 1
        request = Asked(f"{self._count}", blocks * TOKENS + 1, name)
        self.scheduler.add(request)
        wait_until(lambda: self.scheduler.matched(request, 0)[0] is not None, "the lookup is answered")
        cached = self.scheduler.matched(request, 0)[0] or 0
        self.scheduler.allocated(request, range(BLOCKS), cached)
        if cached and (failed := self._load()):
            cached = min(failed) * TOKENS
        for at in range(cached // TOKENS):
            for rank, caches in enumerate(self.caches):
                assert all(torch.equal(cache[at], self._computed(request, at, rank)) for cache in caches.values())
        request.num_computed_tokens = cached
        while request.num_computed_tokens < request.num_tokens:
            tokens = min(STEP_TOKENS, request.num_tokens - request.num_computed_tokens)
            first, last = request.num_computed_tokens // TOKENS, (request.num_computed_tokens + tokens) // TOKENS
            for at in range(first, last):
                for rank, caches in enumerate(self.caches):
                    for cache in caches.values():
                        cache[at] = self._computed(request, at, rank)
            self._step({request.request_id: tokens})
            request.num_computed_tokens += tokens
        wait_until(self._all_is_stored, "what was computed is stored")
        self.scheduler.remove(request, request.num_computed_tokens)
        return cached

    def _load(self) -> set[int]:
        """Wait for what was found, and return the places of blocks that did not come."""
        waiting, failed = set(self.workers), set()

        def is_over() -> bool:
            self._step({})  # vLLM makes steps for others meanwhile
            for worker in [*waiting]:
                finished, errors = worker.loaded()
                waiting.difference_update({worker} if finished else ())
                failed.update(errors)
            return not waiting

        wait_until(is_over, "what was found is loaded", pause_s=0.002)
        self.scheduler.loaded([f"{self._count}"], failed)
        return failed

    def close(self) -> None:
        for worker in self.workers:
            worker.close()
        self.client.close()
        self._digests.shutdown()

    def _step(self, scheduled: dict[str, int]) -> None:
        plan = self.scheduler.plan(scheduled, lambda _: range(BLOCKS))
        for worker in self.workers:
            worker.begin(deepcopy(plan))  # vLLM pickles it
            worker.load()
            worker.end(computed=True)

    def _all_is_stored(self) -> bool:
        for worker in self.workers:
            if (saved := worker.saved()) is not None:
                assert not saved.failed
                self.scheduler.saved(saved)
        return not self.scheduler.saving

    def _computed(self, request: Asked, at: int, rank: int) -> torch.Tensor:
        number = int.from_bytes(request.block_hashes[at][:2]) + rank
        return torch.full(self.caches[rank]["layer.0"].shape[1:], float(number))

    def _room(self, block_bytes: int) -> TransferRoom:
        return TransferRoom(block_bytes, STEP_TOKENS // TOKENS, 64 * block_bytes)

    def _worker(self, agent: AgentProcess, rank: int, workers: int) -> WorkerSide:
        worker = WorkerSide(
            rank=rank,
            shards=workers,
            replicas=1,
            blocks=BLOCKS,
            block_tokens=TOKENS,
            layout_name="LBHNC",
            open_client=lambda who, block_bytes, arena_bytes: self._client(agent, block_bytes, arena_bytes),
            room_for=self._room,
            load_timeout_s=PATIENCE_S,
            tally=self.tally,
        )
        worker.register(self.caches[rank])
        return worker

    def _client(self, agent: AgentProcess, block_bytes: int, arena_bytes: int) -> AgentClient:
        info = EngineInfo("vllm", "model", WHO.root, TOKENS, block_bytes, "float32")
        self._clients.append(AgentClient(agent.socket, engine=info, arena_bytes=arena_bytes))
        return self._clients[-1]


@pytest.fixture
def sky(start_sky: Callable[..., LocalConstellation]) -> LocalConstellation:
    """Six servers of 1 MiB, two of parity: nine blocks of 400 kB, as twelve of 16 MiB hold nine of 16.8 MB."""
    return start_sky(constellation={"planes": 3, "slots": 3}, cache={"servers": 6, "centre": [2, 2]}, satellite={"store_mib": 1})


@pytest.fixture
def agent(sky: LocalConstellation, tmp_path: Path) -> Iterator[AgentProcess]:
    tell_up(tmp_path, sky)
    with AgentProcess(tmp_path) as process:
        process.wait_ready()
        yield process


@pytest.fixture(params=[1, 2], ids=["one worker", "two workers"])
def engine(agent: AgentProcess, request: pytest.FixtureRequest) -> Iterator[Engine]:
    with closing(Engine(agent, request.param, 1560 // request.param)) as made:
        yield made


def test_the_same_prompt_finds_the_same_beginning_each_time(engine: Engine) -> None:
    cached = [engine.ask("long", 14) for _ in range(4)]
    room = engine.scheduler.capacity
    assert room is not None
    assert 8 <= room < 14
    assert cached[0] == 0
    told = engine.tally.take()
    assert not any("load_failed" in name for name in told)  # what was found has come
    assert min(cached[1:]) >= (room - 1) * TOKENS  # a block may make way for the agent's own record of the format
    assert len(set(cached[2:])) == 1
    assert told["save_beyond"] >= 4 * (14 - room)


def test_a_block_that_one_worker_has_lost_is_computed_and_stored_anew(engine: Engine, sky: LocalConstellation) -> None:
    engine.ask("long", 5)
    lost = shard_key(block_key(name_key(WHO.root), Asked("", 5 * TOKENS, "long").block_hashes[3]), len(engine.workers) - 1)
    with SkyStore(sky.constellation) as store:
        assert store.purge([lost]).chunks
    assert engine.ask("long", 5) == 3 * TOKENS
    assert engine.ask("long", 5) == 5 * TOKENS


def test_another_prompt_takes_the_end_of_the_one_before(engine: Engine, agent: AgentProcess) -> None:
    engine.ask("long", 14)
    room = engine.scheduler.capacity
    assert room is not None
    parts = len(engine.workers) * (room - 1)
    wait_until(lambda: agent.metric("skymem_store_touches_total") >= parts, "the chain is touched")
    engine.ask("short", 3)
    assert engine.ask("short", 3) == 3 * TOKENS
    left = engine.ask("long", 14)
    assert (room - 5) * TOKENS <= left < room * TOKENS


def test_workers_lose_the_same_blocks(agent: AgentProcess) -> None:
    """Of 40 blocks another prompt takes the place of 20, and not of all that one worker has of the 40."""
    with closing(Engine(agent, workers=2, values=116)) as engine:
        names = count()

        def touches() -> float:
            return agent.metric("skymem_store_touches_total")

        def left() -> int:
            name = next(names)
            engine.ask(f"long {name}", BLOCKS)
            room = engine.scheduler.capacity
            assert room is not None
            assert 30 < room < BLOCKS
            wait_until(lambda: touches() >= 2 * room, "the chain is touched")
            before = touches()
            engine.ask(f"long {name}", BLOCKS)  # all parts are known now, so what the first worker tells is right
            wait_until(lambda: touches() >= before + 2 * room, "the chain is touched")
            engine.ask(f"short {name}", 20)
            return engine.ask(f"long {name}", BLOCKS) // TOKENS - (room - 20)

        # A touch may be on its way when the next prompt comes; then others try.
        assert any(-2 <= left() < 20 for _ in range(3))
