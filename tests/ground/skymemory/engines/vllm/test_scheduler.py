"""The scheduler's side, asked as vLLM asks it; the agent is a double that answers when it is told to."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from skymemory.agent.client import NOTHING
from skymemory.agent.protocol import Found
from skymemory.engines.vllm.events import BlockEvents, Came, Went
from skymemory.engines.vllm.identity import shard_key
from skymemory.engines.vllm.plans import Identity, Saved
from skymemory.engines.vllm.scheduler import AgentSession, SchedulerSide
from skymemory.engines.vllm.tally import Tally
from skymemory.engines.vllm.transfer_room import TransferRoom
from support.waiting import wait_until

BLOCK = 4


def room(saves: int) -> TransferRoom:
    """Memory for so many blocks on their way to the sky."""
    return TransferRoom(1 << 20, saves, (2 * saves if saves < 16 else saves + 16) << 20)


ROOM = room(100)


@dataclass
class Asked:
    """As vLLM's request."""

    request_id: str
    num_tokens: int
    num_computed_tokens: int = 0
    num_prompt_tokens: int = 0
    skip_reading_prefix_cache: bool = False
    lora_request: Any = None
    salt: str = ""
    block_hashes: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.num_prompt_tokens = self.num_prompt_tokens or self.num_tokens
        self.block_hashes = [f"{self.salt}{index}".encode() for index in range(self.num_tokens // BLOCK)]


class Client:
    """An agent that knows so many blocks of every prompt; `held` answers wait."""

    def __init__(self) -> None:
        self.connected = True
        self.known = 0
        self.capacity = 0
        self.fetch: int | None = None
        self.held: list[Future[Found]] | None = None
        self.questions: list[tuple[list[bytes], int]] = []

    def find(self, keys: list[bytes], *, cached: int = 0, wanted: bool = True) -> Future[Found]:
        self.questions.append((keys, cached))
        future: Future[Found] = Future()
        if self.held is not None:
            self.held.append(future)
        else:
            future.set_result(self.answer(cached) if self.connected else NOTHING)
        return future

    def answer(self, cached: int) -> Found:
        new = max(0, self.known - cached)
        return Found(0, self.known, new if self.fetch is None else self.fetch, None, None, self.capacity, 10, 16)


class Scheduler:
    """`SchedulerSide` and what is around it."""

    def __init__(self, room: TransferRoom | None = ROOM, **settings: Any) -> None:
        self.client = Client()
        self.opening: Future[AgentSession] = Future()
        self.digest: Future[bytes] = Future()
        self.digested: list[Any] = []
        self.tally = Tally()
        self.events = BlockEvents()
        given = {
            "shards": 1,
            "prompt_tokens_max": 64,
            "loads": True,
            "saves": True,
            "always_fetch": False,
            "lookup_timeout_s": 3600.0,
            **settings,
        }
        self.side = SchedulerSide(
            block_tokens=BLOCK,
            open_session=self.opening,
            adapter_digest=self._digest_of,
            tally=self.tally,
            events=self.events,
            **given,
        )
        self.side.room = room

    def _digest_of(self, adapter: Any) -> Future[bytes]:
        self.digested.append(adapter)
        return self.digest

    def open(self) -> None:
        identity = Identity(bytes(32), "model", BLOCK, "float32")
        self.opening.set_result(AgentSession(identity, self.client))

    def plan(self, **scheduled: int) -> Any:
        return self.side.plan(scheduled, lambda _: range(100, 200))


@pytest.fixture
def scheduler() -> Scheduler:
    made = Scheduler()
    made.open()
    return made


def come(scheduler: Scheduler, tokens: int, name: str = "a", **more: Any) -> Asked:
    request = Asked(name, tokens, **more)
    scheduler.side.add(request)
    return request


def load(scheduler: Scheduler, request: Asked) -> Any:
    """Have all found blocks of a request loaded; the plan."""
    tokens, beside = scheduler.side.matched(request, 0)
    assert tokens
    assert beside
    scheduler.side.allocated(request, range(50, 100), tokens)
    [plan] = scheduler.plan().loads
    return plan


@pytest.mark.parametrize("loads", [True, False])
def test_a_first_request_waits_until_the_workers_have_told_their_layout(loads: bool) -> None:
    """Else what an engine that only stores computes in its first step would not be stored."""
    scheduler = Scheduler(room=None, loads=loads)
    request = come(scheduler, 3 * BLOCK)
    assert scheduler.side.matched(request, 0) == (None, False)
    assert scheduler.plan().is_layout_wanted
    scheduler.side.room = ROOM
    scheduler.open()
    assert scheduler.side.matched(request, 0) == (0, False)
    step = scheduler.plan(a=3 * BLOCK)
    assert not step.is_layout_wanted
    assert len(step.saves) == 3


def test_without_a_layout_a_request_is_computed_in_the_end() -> None:
    now = [0.0]
    scheduler = Scheduler(room=None, lookup_timeout_s=1.0, clock=lambda: now[0])
    scheduler.open()
    request = come(scheduler, 3 * BLOCK)
    assert scheduler.side.matched(request, 0) == (None, False)
    now[0] = 1.1
    assert scheduler.side.matched(request, 0) == (0, False)
    assert scheduler.plan(a=3 * BLOCK).saves == []
    scheduler.side.remove(request, 3 * BLOCK)


def test_nothing_is_known_before_root_and_agent_are_there() -> None:
    scheduler = Scheduler()
    scheduler.client.known = 2
    request = come(scheduler, 9)
    assert scheduler.side.matched(request, 0) == (None, False)
    assert scheduler.plan(a=9).identity is None
    scheduler.client.connected = False
    scheduler.open()
    assert scheduler.side.matched(request, 0) == (None, False)
    scheduler.client.connected = True
    assert scheduler.side.matched(request, 0) == (8, True)
    assert scheduler.side.matched(request, 0) == (8, True)  # as often as vLLM asks
    assert len(scheduler.client.questions) == 1


def test_an_engine_without_a_root_misses_at_once() -> None:
    scheduler = Scheduler()
    scheduler.opening.set_exception(OSError())
    assert scheduler.side.matched(come(scheduler, 9), 0) == (0, False)
    assert scheduler.plan(a=9).saves == []


def test_a_late_answer_is_a_miss() -> None:
    scheduler = Scheduler(lookup_timeout_s=0)
    scheduler.open()
    scheduler.client.held = []
    request = come(scheduler, 9)
    assert scheduler.side.matched(request, 0) == (0, False)
    scheduler.client.held[0].set_result(Found(0, 2, 2, None, None))
    assert scheduler.side.matched(request, 0) == (0, False)  # what was said to vLLM once stays so
    assert scheduler.tally.take()["lookup_late"] == 1


def test_one_token_is_always_computed(scheduler: Scheduler) -> None:
    scheduler.client.known = 2
    assert scheduler.side.matched(come(scheduler, 8), 0) == (7, True)
    assert scheduler.side.matched(come(scheduler, 9, "b"), 0) == (8, True)
    plan = load(scheduler, come(scheduler, 8, "c"))
    assert [block.block_id for block in plan.blocks] == [50, 51]


def test_what_vllm_has_is_neither_asked_for_nor_loaded(scheduler: Scheduler) -> None:
    scheduler.client.known = 3
    request = come(scheduler, 13)
    assert scheduler.side.matched(request, 12) == (0, False)
    assert scheduler.client.questions == []
    assert scheduler.side.matched(request, 4) == (8, True)
    assert scheduler.client.questions[0][1] == 1
    scheduler.side.allocated(request, range(50, 100), 8)
    [plan] = scheduler.plan().loads
    assert [block.block_id for block in plan.blocks] == [51, 52]
    keys, _ = scheduler.client.questions[0]
    assert [shard_key(block.key, 0) for block in plan.blocks] == keys[1:]


def test_vllm_has_lost_meanwhile_what_it_had(scheduler: Scheduler) -> None:
    scheduler.client.known = 3
    request = come(scheduler, 13)
    assert scheduler.side.matched(request, 4) == (8, True)
    assert scheduler.side.matched(request, 0) == (12, True)
    assert [cached for _, cached in scheduler.client.questions] == [1, 0]


def test_blocks_that_are_computed_faster_are_not_fetched(scheduler: Scheduler) -> None:
    scheduler.client.known, scheduler.client.fetch = 3, 0
    request = come(scheduler, 13)
    assert scheduler.side.matched(request, 0) == (0, False)
    assert scheduler.plan(a=13).saves == []  # they are in the sky
    assert scheduler.tally.take()["declined"] == 3


def test_all_are_fetched_where_that_is_wanted() -> None:
    scheduler = Scheduler(always_fetch=True)
    scheduler.open()
    scheduler.client.known, scheduler.client.fetch = 3, 0
    assert scheduler.side.matched(come(scheduler, 13), 0) == (12, True)


def test_blocks_are_stored_as_they_become_full(scheduler: Scheduler) -> None:
    request = come(scheduler, 11)
    scheduler.side.matched(request, 0)
    assert [block.block_id for block in scheduler.plan(a=6).saves] == [100]
    request.num_computed_tokens = 6
    assert [block.block_id for block in scheduler.plan(a=5).saves] == [101]
    request.num_computed_tokens = 11
    assert scheduler.plan(a=1).saves == []  # full, but vLLM does not know its last token yet
    request.block_hashes.append(b"2")
    request.num_computed_tokens = 12
    assert [block.block_id for block in scheduler.plan(a=1).saves] == [102]


def test_a_block_is_stored_once(scheduler: Scheduler) -> None:
    first, second = come(scheduler, 8, "a"), come(scheduler, 8, "b")
    assert len(scheduler.plan(a=8, b=8).saves) == 2
    keys = [*scheduler.side.saving]
    scheduler.side.saved(Saved(done=keys[:1], failed=keys[1:]))
    scheduler.side.remove(first, 8)
    scheduler.side.remove(second, 8)
    come(scheduler, 8, "c")
    assert [block.key for block in scheduler.plan(c=8).saves] == keys[1:]
    assert scheduler.tally.take() == {"save_failed": 1}


def test_no_more_is_stored_at_once_than_there_is_room_for() -> None:
    scheduler = Scheduler(room=room(2))
    scheduler.open()
    request = come(scheduler, 12)
    plans = scheduler.plan(a=12).saves
    assert [block.block_id for block in plans] == [100, 101]
    request.num_computed_tokens = 12
    assert scheduler.plan(a=1).saves == []
    scheduler.side.saved(Saved(done=[plans[0].key]))
    assert [block.block_id for block in scheduler.plan(a=1).saves] == [102]


def test_what_never_had_room_is_counted_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    scheduler = Scheduler(room=room(1))
    scheduler.open()
    for name in ("a", "b"):
        request = come(scheduler, 12, name, salt=name)
        scheduler.plan(**{name: 12})
        scheduler.side.remove(request, 12)
        scheduler.side.saved(Saved(done=[*scheduler.side.saving]))
    assert scheduler.tally.take()["save_skipped"] == 4
    [record] = caplog.records
    assert "2 of 3 blocks of a request were not stored" in record.getMessage()
    assert f"arena_mib {room(1).mib_for(3)} " in record.getMessage()


def test_what_was_refused_is_planned_again_later() -> None:
    ahead_s = 0.0
    scheduler = Scheduler(clock=lambda: time.monotonic() + ahead_s)
    scheduler.open()
    request = come(scheduler, 12)
    plans = scheduler.plan(a=12).saves
    scheduler.side.saved(Saved(refused=[plan.key for plan in plans[1:]]))
    request.num_computed_tokens = 12
    assert scheduler.plan(a=1).saves == []  # not in every step
    ahead_s += 1.0
    assert scheduler.plan(a=1).saves == plans[1:]
    assert scheduler.tally.take() == {}
    scheduler.side.remove(request, 12)
    scheduler.side.saved(Saved(refused=[plan.key for plan in plans[1:]]))
    assert scheduler.tally.take() == {"save_skipped": 2}


def test_all_parts_of_a_block_count() -> None:
    scheduler = Scheduler(shards=2)
    scheduler.open()
    scheduler.client.known = 3  # both parts of the first block, one of the second
    request = come(scheduler, 12)
    assert scheduler.side.matched(request, 0) == (4, True)
    keys, _ = scheduler.client.questions[0]
    assert len(set(keys)) == 6
    [_, plan] = scheduler.plan(a=12).saves
    assert [shard_key(plan.key, shard) for shard in (0, 1)] == keys[4:]
    scheduler.side.saved(Saved(done=[plan.key]))
    assert plan.key in scheduler.side.saving
    scheduler.side.saved(Saved(done=[plan.key]))
    assert plan.key not in scheduler.side.saving


def test_a_failed_load_is_not_tried_again_and_stored_anew(scheduler: Scheduler) -> None:
    scheduler.client.known = 3
    request = come(scheduler, 13)
    plan = load(scheduler, request)
    scheduler.side.loaded(["a"], {51, 52})
    assert scheduler.side.matched(request, 0) == (0, False)
    request.num_computed_tokens = 4
    assert [block.key for block in scheduler.plan(a=9).saves] == [block.key for block in plan.blocks[1:]]


def test_a_load_of_others_that_fails_changes_nothing(scheduler: Scheduler) -> None:
    scheduler.client.known = 2
    request = come(scheduler, 9)
    load(scheduler, request)
    scheduler.side.loaded([], {7})
    scheduler.side.loaded(["a", "unknown"], set())
    scheduler.side.loaded([], {50})  # a place that is somebody else's by now
    assert scheduler.side.matched(request, 0) == (8, True)


def test_a_request_that_was_preempted_asks_anew(scheduler: Scheduler) -> None:
    scheduler.client.known = 2
    request = come(scheduler, 9)
    load(scheduler, request)
    scheduler.side.loaded(["a"], set())
    assert scheduler.side.matched(request, 0) == (8, True)
    assert len(scheduler.client.questions) == 2


def test_a_block_that_the_sky_has_lost_is_stored_again(scheduler: Scheduler) -> None:
    request = come(scheduler, 8)
    plans = scheduler.plan(a=8).saves
    scheduler.side.saved(Saved(done=[plan.key for plan in plans]))
    scheduler.side.remove(request, 8)
    scheduler.client.known = 1
    again = come(scheduler, 8, "b")
    assert scheduler.side.matched(again, 0) == (4, True)
    assert scheduler.plan(b=8).saves == plans[1:]


def test_requests_that_want_no_cache_and_unknown_ones(scheduler: Scheduler) -> None:
    scheduler.client.known = 2
    assert scheduler.side.matched(come(scheduler, 9, skip_reading_prefix_cache=True), 0) == (0, False)
    assert scheduler.side.matched(Asked("never came", 9), 0) == (0, False)
    scheduler.side.remove(Asked("never came", 9), 9)
    scheduler.side.allocated(Asked("never came", 9), [1, 2], 8)
    assert scheduler.plan(nobody=9).saves == []


@pytest.mark.parametrize("role", ["loads", "saves"])
def test_one_role_only(role: str) -> None:
    scheduler = Scheduler(**{role: False})
    scheduler.open()
    scheduler.client.known = 2
    request = come(scheduler, 13)
    assert scheduler.side.matched(request, 0) == ((0, False) if role == "loads" else (8, True))
    assert len(scheduler.plan(a=13).saves) == (3 if role == "loads" else 0)
    scheduler.side.remove(request, 13)


def test_an_adapter_has_keys_of_its_own(scheduler: Scheduler) -> None:
    scheduler.client.known = 2
    adapter = SimpleNamespace(lora_name="style", lora_path="/style")
    request = come(scheduler, 9, lora_request=adapter)
    assert scheduler.side.matched(request, 0) == (None, False)  # its weights are being read
    scheduler.digest.set_result(bytes(32))
    assert scheduler.side.matched(request, 0) == (8, True)
    assert scheduler.side.matched(come(scheduler, 9, "b"), 0) == (8, True)
    of_adapter, of_model = (keys for keys, _ in scheduler.client.questions)
    assert not set(of_adapter) & set(of_model)


def test_an_adapter_is_looked_at_before_the_engine_reads_it() -> None:
    scheduler = Scheduler()
    adapter = SimpleNamespace(lora_name="style", lora_path="/style")
    come(scheduler, 9, lora_request=adapter)
    assert scheduler.digested == [adapter]  # though the model's weights are still being read


def test_an_adapter_is_looked_at_again_for_what_is_generated(scheduler: Scheduler) -> None:
    scheduler.digest.set_result(bytes(32))
    request = come(scheduler, 13, num_prompt_tokens=9, lora_request=SimpleNamespace(lora_name="style", lora_path="/style"))
    assert len(scheduler.plan(a=9).saves) == 2
    request.num_computed_tokens = 9
    scheduler.digest = Future()
    assert scheduler.plan(a=4).saves == []  # its files are being looked at
    scheduler.digest.set_exception(OSError())
    assert scheduler.plan(a=4).saves == []
    scheduler.digest = Future()
    scheduler.digest.set_result(bytes(32))
    assert scheduler.plan(a=4).saves == []


def test_an_adapter_without_weights_is_not_cached(scheduler: Scheduler) -> None:
    scheduler.digest.set_exception(OSError())
    request = come(scheduler, 9, lora_request=SimpleNamespace(lora_name="style", lora_path="/style"))
    assert scheduler.side.matched(request, 0) == (0, False)
    assert scheduler.plan(a=9).saves == []


def test_after_a_reset_nothing_old_is_found(scheduler: Scheduler) -> None:
    scheduler.client.known = 2
    old = come(scheduler, 13)
    scheduler.side.matched(old, 0)
    scheduler.side.forget(b"salt")
    assert scheduler.side.matched(old, 0) == (0, False)
    assert scheduler.plan(a=13).saves == []  # computed with what was before, perhaps
    new = come(scheduler, 13, "b")
    scheduler.side.matched(new, 0)
    before, after = (keys for keys, _ in scheduler.client.questions)
    assert not set(before) & set(after)
    scheduler.side.remove(old, 13)


def test_prefill_and_decode_are_told_apart(scheduler: Scheduler) -> None:
    come(scheduler, 13, "a")
    come(scheduler, 13, "b").num_computed_tokens = 13
    step = scheduler.plan(a=13, b=1)
    assert (step.prefill_tokens, step.prefill_before, step.other_tokens) == (13, 0, 1)


def test_where_in_their_prompts_prefilled_tokens_stand(scheduler: Scheduler) -> None:
    come(scheduler, 1000, "a").num_computed_tokens = 500
    assert scheduler.plan(a=100).prefill_before == 500
    come(scheduler, 1000, "b").num_computed_tokens = 700
    assert scheduler.plan(a=100, b=100).prefill_before == 550  # 200 behind these are as many pairs


def test_no_more_of_a_prompt_is_stored_than_the_sky_holds(scheduler: Scheduler, caplog: pytest.LogCaptureFixture) -> None:
    scheduler.client.capacity = 2
    for name in ("a", "b"):
        request = come(scheduler, 17, name, salt=name)
        scheduler.side.matched(request, 0)
        assert [block.block_id for block in scheduler.plan(**{name: 17}).saves] == [100, 101]
        scheduler.side.saved(Saved(done=[*scheduler.side.saving]))
        scheduler.side.remove(request, 17)
    counts = scheduler.tally.take()
    assert counts["save_beyond"] == 4
    assert "save_skipped" not in counts
    [record] = caplog.records  # once
    assert "this sky holds 8 tokens of this model (10 servers with store_mib 16)" in record.getMessage()


def test_workers_with_parts_of_their_own_share_the_sky() -> None:
    scheduler = Scheduler(shards=2)
    scheduler.open()
    scheduler.client.capacity = 5
    scheduler.side.matched(come(scheduler, 17), 0)
    assert len(scheduler.plan(a=17).saves) == 2


def test_an_engine_that_only_stores_learns_what_the_sky_holds() -> None:
    scheduler = Scheduler(loads=False)
    scheduler.open()
    scheduler.client.capacity = 2
    come(scheduler, 17)
    assert len(scheduler.plan(a=17).saves) == 2
    assert scheduler.client.questions == [([], 0)]


def test_the_use_of_a_chain_is_told_once_its_prompt_is_computed(scheduler: Scheduler) -> None:
    request = come(scheduler, 17)
    assert scheduler.plan(a=8).used == []
    request.num_computed_tokens = 8
    step = scheduler.plan(a=9)
    assert [block.key for block in step.saves] == list(step.used[0][2:])
    assert len(step.used[0]) == 4
    request.num_computed_tokens = 17
    assert scheduler.plan(a=1).used == []
    scheduler.side.remove(request, 18)
    assert scheduler.plan().used == []  # nothing was added since


def test_the_use_of_what_was_generated_is_told_at_the_end(scheduler: Scheduler) -> None:
    request = come(scheduler, 9)
    scheduler.plan(a=9)
    request.num_tokens, request.num_computed_tokens = 12, 11
    request.block_hashes.append(b"generated")
    scheduler.plan(a=1)
    request.num_computed_tokens = 12
    scheduler.side.remove(request, 12)
    [chain] = scheduler.plan().used
    assert len(chain) == 3


def test_what_came_and_went_is_told(scheduler: Scheduler) -> None:
    scheduler.client.known = 2
    request = come(scheduler, 17)
    scheduler.side.matched(request, 0)
    assert scheduler.events.take() == [Came(request, 0, 2)]  # found
    plans = scheduler.plan(a=17).saves
    scheduler.side.saved(Saved(done=[plan.key for plan in plans]))
    assert scheduler.events.take() == [Came(request, 2, 2)]  # stored
    scheduler.client.known = 3
    again = come(scheduler, 17, "b")
    scheduler.side.matched(again, 0)
    assert scheduler.events.take() == [Went((b"3",))]
    scheduler.side.forget(b"salt")
    assert scheduler.events.take() == [Went((b"0", b"1", b"2"))]


def test_a_block_that_does_not_load_has_gone(scheduler: Scheduler) -> None:
    scheduler.client.known = 3
    request = come(scheduler, 13)
    plan = load(scheduler, request)
    scheduler.events.take()
    scheduler.side.loaded(["a"], {plan.blocks[1].block_id, plan.blocks[2].block_id})
    assert scheduler.events.take() == [Went((b"1", b"2"))]


def test_what_is_not_followed_any_more_is_said_to_have_gone() -> None:
    events = BlockEvents(known_max=2)
    request = Asked("a", 16)
    for index in range(3):
        events.came(bytes([index]), request, index)
    assert events.take() == [Came(request, 0, 3), Went((b"0",))]
    events.came(bytes([0]), request, 0)
    assert events.take() == [Came(request, 0, 1), Went((b"1",))]


def test_the_lookup_of_the_only_request_is_waited_for() -> None:
    """vLLM does empty steps as long as it is told that nothing is known yet."""
    scheduler = Scheduler(alone_s=3600.0)
    scheduler.open()
    scheduler.client.held = []
    request = come(scheduler, 9)

    def answer() -> None:
        wait_until(lambda: scheduler.client.held, "the agent is asked")
        assert scheduler.client.held is not None
        scheduler.client.held[0].set_result(Found(0, 2, 2, None, None))

    with ThreadPoolExecutor(1) as pool:
        answered = pool.submit(answer)
        assert scheduler.side.matched(request, 0) == (8, True)
        answered.result()


def test_nobody_waits_for_the_lookup_of_another_request() -> None:
    scheduler = Scheduler(alone_s=3600.0)
    scheduler.open()
    scheduler.client.held = []
    first, second = come(scheduler, 9, "a"), come(scheduler, 9, "b")
    assert scheduler.side.matched(first, 0) == (None, False)
    assert scheduler.side.matched(second, 0) == (None, False)
