"""A worker's side over a paged cache of its own; the agent is a double that keeps blocks in a dictionary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from skymemory.agent.client import Outcome, Question
from skymemory.engines.vllm.identity import shard_key
from skymemory.engines.vllm.plans import Identity, LoadPlan, PagedBlock, Saved, StepPlan
from skymemory.engines.vllm.settings import UnsupportedError
from skymemory.engines.vllm.tally import Tally
from skymemory.engines.vllm.transfer_room import TransferRoom
from skymemory.engines.vllm.worker import WorkerSide
from skymemory.wire.icd import Status
from support.waiting import wait_until

BLOCKS, HEADS, TOKENS, CONTENT = 20, 2, 4, 16
IDENTITY = Identity(bytes(32), "model", TOKENS, "float32")


class Lease:
    """As the client's, with memory of its own."""

    def __init__(self, client: Client, length: int) -> None:
        self.view = memoryview(bytearray(length))
        self._client = client
        client.leased += 1

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        if self._client is not None:
            self._client.leased -= 1
        self._client = None


class Client:
    """An agent and its sky. `held`: answers wait there. `room`: leases at once."""

    def __init__(self) -> None:
        self.connected = True
        self.blocks: dict[bytes, bytes] = {}
        self.leased = 0
        self.room = 100
        self.held: list[Callable[[], None]] | None = None
        self.purged: list[bytes] = []
        self.prefills: list[tuple[int, float]] = []
        self.puts: list[bytes] = []
        self.status = Status.DONE
        self.closed = False
        self.asked = 0
        self.deadlines_s: list[float] = []
        self.called_back: list[int] = []

    def lease(self, length: int) -> Lease | None:
        return Lease(self, length) if self.connected and self.leased < self.room else None

    def get(self, blocks: list[tuple[bytes, Lease]], *, deadline_s: float) -> Question[list[Outcome]]:
        self.deadlines_s.append(deadline_s)

        def answer() -> list[Outcome]:
            outcomes = []
            for key, lease in blocks:
                if (data := self.blocks.get(key)) is not None:
                    lease.view[:] = data
                outcomes.append(Outcome(key, Status.MISS if data is None else Status.DONE, 0.1))
            return outcomes

        return self._answered(answer)

    def put(self, blocks: list[tuple[bytes, Lease]]) -> Question[list[Outcome]]:
        def answer() -> list[Outcome]:
            for key, lease in blocks:
                self.puts.append(key)
                if self.status is Status.DONE:
                    self.blocks[key] = bytes(lease.view)
            return [Outcome(key, self.status, 0.1) for key, _ in blocks]

        return self._answered(answer)

    def purge(self, keys: list[bytes]) -> None:
        self.purged += keys

    def prefilled(self, tokens: int, duration_s: float, before: int = 0) -> None:
        self.prefills.append((tokens, duration_s))

    def close(self) -> None:
        self.closed = True

    def call_back(self, question: Question[list[Outcome]]) -> None:
        if not question.done():
            self.called_back.append(question.number)

    def _answered(self, answer: Callable[[], list[Outcome]]) -> Question[list[Outcome]]:
        self.asked += 1
        future: Question[list[Outcome]] = Question()
        future.number = self.asked
        if self.held is None:
            future.set_result(answer())
        else:
            self.held.append(lambda: future.set_result(answer()))
        return future


class Worker:
    """`WorkerSide`, its cache and its client."""

    def __init__(
        self, client: Client, caches: dict[str, torch.Tensor] | None = None, arena_bytes: int = 1 << 20, **settings: Any
    ) -> None:
        self.client = client
        self.caches = random_caches() if caches is None else caches
        self.tally = Tally()
        given = {"rank": 0, "shards": 1, "replicas": 1, "load_timeout_s": 600.0, **settings}
        self.side = WorkerSide(
            blocks=BLOCKS,
            block_tokens=TOKENS,
            layout_name="LBHNC",
            open_client=lambda *_: client,
            room_for=lambda block_bytes: TransferRoom(block_bytes, 1, arena_bytes),
            tally=self.tally,
            **given,
        )
        self.side.register(self.caches)

    def step(self, *, computed: bool = True, hooks: bool = True, **plan: Any) -> None:
        """As vLLM does one."""
        self.side.begin(StepPlan(IDENTITY, **plan))
        if hooks:
            for name in self.caches:
                self.side.layer(name)
        self.side.load()
        self.side.end(computed)

    def saved(self, count: int) -> Saved:
        """What became of so many blocks."""
        total = Saved()

        def told() -> bool:
            if (some := self.side.saved()) is not None:
                total.add(some)
            return len(total.done) + len(total.failed) + len(total.refused) >= count

        wait_until(told, f"{count} blocks are stored, or not", pause_s=0.001)
        return total

    def loaded(self) -> tuple[set[str], set[int]]:
        """The next loads that have ended."""

        def ended() -> tuple[set[str], set[int]] | None:
            finished, errors = self.side.loaded()
            assert finished or not errors
            return (finished, errors) if finished else None

        return wait_until(ended, "a load ends", pause_s=0.001)

    def bytes_of(self, block: int) -> list[torch.Tensor]:
        return [cache[block].clone() for cache in self.caches.values()]


def random_caches(layers: int = 3, blocks: int = BLOCKS) -> dict[str, torch.Tensor]:
    return {f"layer.{index}": torch.randn(blocks, HEADS, TOKENS, CONTENT) for index in range(layers)}


def plans(*places: int) -> list[PagedBlock]:
    """Blocks at these places, with keys by number."""
    return [PagedBlock(place, bytes([number]) * 32) for number, place in enumerate(places)]


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def make(client: Client) -> Iterator[Callable[..., Worker]]:
    """Make workers at one client."""
    made: list[Worker] = []

    def worker(**settings: Any) -> Worker:
        made.append(Worker(client, **settings))
        return made[-1]

    yield worker
    for one in made:
        one.side.close()
    assert client.leased == 0 or client.held


@pytest.mark.parametrize("hooks", [True, False])
def test_a_block_comes_back_at_another_place(make: Callable[..., Worker], client: Client, hooks: bool) -> None:
    worker = make()
    before = [worker.bytes_of(place) for place in (3, 4)]
    worker.step(saves=plans(3, 4), hooks=hooks)
    assert len(worker.saved(2).done) == 2
    worker.step(loads=[LoadPlan("a", tuple(plans(11, 12)))])
    assert worker.loaded() == ({"a"}, set())
    for place, tensors in zip((11, 12), before, strict=True):
        assert all(torch.equal(one, other) for one, other in zip(worker.bytes_of(place), tensors, strict=True))
    told = worker.tally.take()
    assert (told["saved"], told["loaded"], told["saved_bytes"]) == (2, 2, told["loaded_bytes"])
    assert list(client.blocks) == [shard_key(plan.key, 0) for plan in plans(3, 4)]


def strided() -> dict[str, torch.Tensor]:
    """Heads and tokens the other way round in memory, and layers within blocks."""
    memory = torch.randn(BLOCKS, 3, TOKENS, HEADS, CONTENT, dtype=torch.bfloat16)
    return {f"layer.{index}": memory[:, index].transpose(1, 2) for index in range(3)}


def of_two_sizes() -> dict[str, torch.Tensor]:
    return {**random_caches(2), "latent": torch.randn(BLOCKS, 1, TOKENS, 7)}


def of_smaller_blocks() -> dict[str, torch.Tensor]:
    return {"layer": torch.randn(2 * BLOCKS, HEADS, TOKENS // 2, CONTENT)}


@pytest.mark.parametrize("caches", [strided, of_two_sizes, of_smaller_blocks])
def test_other_layouts(make: Callable[..., Worker], caches: Callable[[], dict[str, torch.Tensor]]) -> None:
    worker = make(caches=caches())
    ratio = next(iter(worker.caches.values())).shape[0] // BLOCKS
    before = [cache[3 * ratio : 4 * ratio].clone() for cache in worker.caches.values()]
    worker.step(saves=plans(3))
    worker.saved(1)
    worker.step(loads=[LoadPlan("a", tuple(plans(9)))])
    worker.loaded()
    after = [cache[9 * ratio : 10 * ratio] for cache in worker.caches.values()]
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))


def test_a_layer_that_shares_its_cache_counts_once(client: Client) -> None:
    caches = random_caches(2)
    alone = Worker(client, caches=caches).side.layout
    shared = Worker(client, caches={**caches, "again": caches["layer.0"]}).side.layout
    assert shared.format.block_bytes == alone.format.block_bytes


def test_layouts_that_differ_are_told_apart(client: Client) -> None:
    formats = {Worker(client, caches=caches).side.layout.format for caches in (random_caches(), strided(), of_two_sizes())}
    assert len({one.layout for one in formats}) == 3


def test_a_cache_of_other_blocks_is_refused(client: Client) -> None:
    with pytest.raises(UnsupportedError, match="21 rows, which are not 20 blocks"):
        Worker(client, caches=random_caches(blocks=21))


def test_an_arena_that_is_too_small_is_refused(client: Client) -> None:
    with pytest.raises(UnsupportedError, match="arena_mib is 0; a block of this model has 1728 bytes, so allowed are 1 and more"):
        Worker(client, arena_bytes=2000)


def test_a_step_that_failed_stores_nothing(make: Callable[..., Worker], client: Client) -> None:
    worker = make()
    worker.step(saves=plans(3), computed=False)
    assert len(worker.saved(1).failed) == 1
    assert client.blocks == {}
    assert client.leased == 0


def test_without_room_nothing_is_copied_and_nothing_waits(make: Callable[..., Worker], client: Client) -> None:
    worker = make()
    client.room = 1
    worker.step(saves=plans(3, 4))
    told = worker.saved(2)
    assert (len(told.done), told.refused) == (1, [plans(3, 4)[1].key])


def test_an_agent_that_comes_within_the_step(make: Callable[..., Worker], client: Client) -> None:
    worker = make()
    client.connected = False
    worker.side.begin(StepPlan(IDENTITY, saves=plans(3, 4)))
    worker.side.layer("layer.0")
    client.connected = True
    worker.side.end(True)
    assert len(worker.saved(2).done) == 2
    worker.step(loads=[LoadPlan("a", tuple(plans(13, 14)))])
    assert worker.loaded() == ({"a"}, set())
    assert all(torch.equal(one, other) for one, other in zip(worker.bytes_of(13), worker.bytes_of(3), strict=True))


def test_what_the_sky_does_not_take(make: Callable[..., Worker], client: Client) -> None:
    worker = make()
    client.status = Status.STORE_FULL
    worker.step(saves=plans(3))
    assert worker.saved(1).failed == [plans(3)[0].key]


def test_a_gap_ends_the_load(make: Callable[..., Worker], client: Client) -> None:
    worker = make()
    worker.step(saves=plans(*range(12)))
    worker.saved(12)
    del client.blocks[shard_key(plans(*range(12))[3].key, 0)]
    worker.step(loads=[LoadPlan("a", tuple(plans(*range(6, 18))))])
    finished, errors = worker.loaded()
    assert finished == {"a"}
    assert 9 in errors
    assert not errors & {6, 7, 8}
    told = worker.tally.take()
    assert told["load_failed.miss"] == 1


@pytest.mark.parametrize("damage", ["garbage", "a bit", "another block"])
def test_a_damaged_block_is_purged(make: Callable[..., Worker], client: Client, damage: str) -> None:
    worker = make()
    worker.step(saves=plans(3, 4))
    worker.saved(2)
    first, second = (shard_key(plan.key, 0) for plan in plans(3, 4))
    data = bytearray(client.blocks[second])
    data[-1] ^= 1
    client.blocks[second] = {"garbage": bytes(len(data)), "a bit": bytes(data), "another block": client.blocks[first]}[damage]
    before = worker.bytes_of(12)
    worker.step(loads=[LoadPlan("a", tuple(plans(11, 12)))])
    assert worker.loaded() == ({"a"}, {12})
    assert all(torch.equal(one, other) for one, other in zip(worker.bytes_of(12), before, strict=True))
    assert client.purged == [second]
    assert worker.tally.take()["load_failed.corrupt"] == 1


def test_a_load_that_takes_too_long_is_over_and_writes_no_more(make: Callable[..., Worker], client: Client) -> None:
    worker = make(load_timeout_s=0.05)
    worker.step(saves=plans(3))
    worker.saved(1)
    client.held = []
    before = worker.bytes_of(11)
    worker.step(loads=[LoadPlan("a", tuple(plans(11)))])
    assert worker.loaded() == ({"a"}, {11})
    client.held.pop()()
    client.held = None
    worker.step(loads=[LoadPlan("b", tuple(plans(12)))])
    assert worker.loaded() == ({"b"}, set())
    assert all(torch.equal(one, other) for one, other in zip(worker.bytes_of(11), before, strict=True))
    assert client.leased == 0


def test_more_blocks_than_the_arena_holds(make: Callable[..., Worker], client: Client) -> None:
    worker = make()
    worker.step(saves=plans(*range(10)))
    worker.saved(10)
    client.room = 3
    before = [worker.bytes_of(place) for place in range(10)]
    worker.step(loads=[LoadPlan("a", tuple(plans(*range(10, 20))))])
    assert worker.loaded() == ({"a"}, set())
    for place, tensors in enumerate(before):
        assert all(torch.equal(one, other) for one, other in zip(worker.bytes_of(place + 10), tensors, strict=True))


def test_an_agent_that_has_gone(make: Callable[..., Worker], client: Client) -> None:
    worker = make()
    worker.step(saves=plans(3))
    worker.saved(1)
    worker.step(loads=[LoadPlan("a", tuple(plans(11)))])
    worker.loaded()
    client.connected = False
    worker.step(saves=plans(3), loads=[LoadPlan("b", tuple(plans(11)))])
    assert worker.loaded() == ({"b"}, {11})
    assert worker.saved(1).refused == [plans(3)[0].key]


def test_a_client_that_has_not_found_its_agent_yet(make: Callable[..., Worker], client: Client) -> None:
    worker = make()
    worker.step(saves=plans(3))
    worker.saved(1)
    later = make(caches=worker.caches)
    client.connected = False
    later.step(loads=[LoadPlan("a", tuple(plans(11)))])
    assert later.side.loaded() == (set(), set())
    client.connected = True
    assert later.loaded() == ({"a"}, set())


def test_parts_of_a_block(make: Callable[..., Worker], client: Client) -> None:
    first, second, replica = (make(rank=rank, shards=2, replicas=2) for rank in (0, 2, 3))
    for worker in (first, second, replica):
        worker.step(saves=plans(3), prefill_tokens=1000)
    first.saved(1)
    second.saved(1)
    assert set(client.blocks) == {shard_key(plans(3)[0].key, shard) for shard in (0, 1)}
    replica.step(loads=[LoadPlan("a", tuple(plans(11)))])
    replica.loaded()
    assert all(torch.equal(one, other) for one, other in zip(replica.bytes_of(11), second.bytes_of(3), strict=True))
    assert [tokens for tokens, _ in client.prefills] == [1000]  # once for all


def test_only_steps_that_are_prefill_tell_its_speed(make: Callable[..., Worker], client: Client) -> None:
    worker = make()
    worker.step(prefill_tokens=4)
    worker.step(prefill_tokens=1000, other_tokens=200)
    worker.step(prefill_tokens=1000, computed=False)
    worker.step(prefill_tokens=500, other_tokens=3)
    assert [tokens for tokens, _ in client.prefills] == [500]


def test_before_the_identity_is_known(make: Callable[..., Worker]) -> None:
    worker = make()
    worker.side.begin(StepPlan())
    worker.side.layer("layer.0")
    worker.side.load()
    worker.side.end(True)
    assert worker.side.saved() is None
    assert worker.side.loaded() == (set(), set())
    worker.step()
    worker.side.layer("of another group")


def test_the_end_sends_what_was_copied(make: Callable[..., Worker], client: Client) -> None:
    worker = make()
    worker.step(saves=plans(3, 4))
    worker.side.close()
    assert len(client.blocks) == 2
    assert client.closed


def test_the_loads_of_an_aborted_request_are_called_back(make: Callable[..., Worker], client: Client) -> None:
    worker = make()
    client.held = []
    worker.step(loads=[LoadPlan("a", tuple(plans(*range(12)))), LoadPlan("b", tuple(plans(12, 13)))])
    wait_until(lambda: len(client.held or ()) == 3, "all are asked for: eight of the first request at once")
    worker.side.abort({"a"})
    wait_until(lambda: client.called_back == [1, 2], "those of the first request are called back, and no others")
    for answer in client.held:
        answer()
    ended: set[str] = set()

    def both_ended() -> bool:
        ended.update(worker.side.loaded()[0])
        return ended == {"a", "b"}

    wait_until(both_ended, "both have ended")
    assert all(0 < one <= 600 for one in client.deadlines_s)
    assert client.leased == 0


def test_blocks_behind_a_gap_are_called_back(make: Callable[..., Worker], client: Client) -> None:
    worker = make()
    client.held = []
    worker.step(loads=[LoadPlan("a", tuple(plans(*range(20))))])
    wait_until(lambda: len(client.held or ()) == 3, "all are asked for")
    client.held[1]()  # they are not there
    wait_until(lambda: client.called_back == [3], "what is behind them is of no use, what is before them is")
    client.held[0]()
    client.held[2]()
    worker.loaded()
