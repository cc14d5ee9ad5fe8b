"""What is worth fetching, by a clock of the test and links that are formulas."""

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skymemory.agent.estimate import EXPLORE_S, EXPLORE_SHARE, LARGE_BYTES, Decision, Estimator
from skymemory.common.fit import FEW
from skymemory.link.block_entry import BlockEntry
from skymemory.link.operations import Served
from skymemory.wire.address import Satellite

SERVERS = [Satellite(3, slot) for slot in range(1, 11)]
BLOCK = 1_200_000
TOKENS = 128


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class World:
    """An estimator, a clock, and links that take `rtt_s` and `rate` bytes a second each."""

    def __init__(self, rtt_s: float = 0.03, rate: float = 20e6) -> None:
        self.clock = Clock()
        self.estimator = Estimator(self.clock)
        self.rtt_s, self.rate = rtt_s, rate
        self.held_up_s = 0.0
        """what other processes add to each answer, beside its round trip"""
        self.learned_s: float | None = None
        """by what was known before it, how long the last get should have taken"""
        self.servers = SERVERS
        self.estimator.placed(SERVERS)

    def hands_over(self) -> None:
        """Other satellites serve from now on."""
        self.servers = [Satellite(one.plane + 1, one.slot) for one in self.servers]
        self.estimator.placed(self.servers)

    def get(self, entries: Sequence[BlockEntry], lost: bool = False) -> float:
        """Takes its time by the formula; tells the estimator as the agent does."""
        self.estimator.begun(self, entries)
        each = [sum(share(entry, server) for entry in entries) for server in range(len(SERVERS))]
        last_s = [self.rtt_s + self.held_up_s + length / self.rate for length in each]
        served = [
            Served(satellite, satellite, self.rtt_s, 1, length, 1, 0, 0.0, self.rtt_s, end_s)
            for satellite, length, end_s in zip(self.servers, each, last_s, strict=True)
            if length
        ]
        duration_s = 5.0 if lost else max(last_s) + 0.0003
        self.clock.now_s += duration_s
        self.estimator.ended(self)
        if not lost:
            self.learned_s = self.estimator.learn(entries, served, duration_s)
        return duration_s

    def computes(self, token_s: float, prefills: int = 20) -> None:
        rng = random.Random(5)
        for _ in range(prefills):
            tokens = rng.randint(16, 4000)
            self.estimator.prefilled("engine", tokens, 0.01 + tokens * token_s)

    def worth(self, entries: Sequence[BlockEntry]) -> Decision:
        return self.estimator.worth("engine", entries, 0, TOKENS)


def share(entry: BlockEntry, server: int) -> int:
    chunks = range(server, entry.chunk_total, len(SERVERS))
    return sum(min(entry.chunk_len, entry.block_len - chunk * entry.chunk_len) for chunk in chunks)


def blocks(*sizes: int, chunk_len: int = 6000) -> list[BlockEntry]:
    return [
        BlockEntry(size.to_bytes(32, "big"), size, min(size, chunk_len), -(-size // min(size, chunk_len)), 0, 0) for size in sizes
    ]


def fetch_s(estimator: Estimator, entries: Sequence[BlockEntry]) -> float | None:
    """The estimate for a get of all these blocks: an engine of which nothing is known fetches all."""
    return estimator.worth("unknown", entries, 0, TOKENS).fetch_s if entries else 0.0


def recompute_s(estimator: Estimator, engine: str, tokens_before: int, tokens: int) -> float | None:
    """The estimate for computing these tokens, as those of one block."""
    return estimator.worth(engine, blocks(BLOCK), tokens_before, tokens).recompute_s


# ---- what is not known yet ------------------------------------------------------------------------------------------


def test_the_first_gets_find_out() -> None:
    world = World()
    world.computes(1e-9)
    for _ in range(FEW):
        decision = world.worth(blocks(BLOCK, BLOCK))
        assert (decision.fetch, decision.fetch_s, decision.kind) == (2, None, "explore")
        assert decision.recompute_s is not None
        world.get(blocks(BLOCK, BLOCK))
    assert world.worth(blocks(BLOCK, BLOCK)).kind == "recompute"


def test_an_engine_that_has_said_nothing_fetches() -> None:
    world = World()
    for _ in range(FEW):
        world.get(blocks(BLOCK))
    decision = world.worth(blocks(BLOCK, BLOCK))
    assert (decision.fetch, decision.recompute_s, decision.kind) == (2, None, "fetch")
    assert decision.fetch_s is not None
    assert recompute_s(world.estimator, "engine", 0, 100) is None
    assert world.estimator.prefill_s("engine", 100) is None


def test_of_nothing_nothing_is_fetched() -> None:
    assert World().worth([]) == Decision(0, None, None, "fetch")


def test_another_constellation_is_another_one() -> None:
    world = World()
    for _ in range(FEW):
        world.get(blocks(BLOCK))
    world.estimator.forget_sky()
    assert fetch_s(world.estimator, blocks(BLOCK)) is None
    world.estimator.placed(SERVERS)
    assert world.worth(blocks(BLOCK)).kind == "explore"


# ---- estimates ------------------------------------------------------------------------------------------------------


def test_gets_of_any_size_take_as_long_as_estimated() -> None:
    world, rng = World(), random.Random(1)
    for _ in range(FEW):
        world.get(blocks(LARGE_BYTES))
    off = []
    for get in range(60):
        entries = blocks(*[int(10 ** rng.uniform(3.5, 6.5))] * rng.choice([1, 2, 8, 16]))
        estimate_s = fetch_s(world.estimator, entries)
        duration_s = world.get(entries)
        if get >= 5:
            assert estimate_s is not None
            off.append(abs(estimate_s / duration_s - 1))
    assert sorted(off)[len(off) // 2] < 0.05


def test_a_lost_satellite_poisons_nothing() -> None:
    world = World()
    for _ in range(20):
        world.get(blocks(BLOCK))
    before_s = fetch_s(world.estimator, blocks(BLOCK))
    world.get(blocks(BLOCK), lost=True)
    assert fetch_s(world.estimator, blocks(BLOCK)) == before_s


@pytest.mark.parametrize("slow_s", [0.001, 0.05, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_small_gets_say_nothing_of_large_ones_however_slow_they_are(slow_s: float, seed: int) -> None:
    world, rng = World(), random.Random(seed)
    prompt = blocks(*[2_900_000] * 16)
    duration_s = [world.get(prompt) for _ in range(10)][-1]
    for _ in range(300):
        world.clock.now_s += 1
        world.rtt_s = slow_s * rng.lognormvariate(0, 1) * (20 if rng.random() < 0.05 else 1)
        world.get(blocks(*[rng.randint(1, 1000)] * rng.choice([1, 1, 5])))
        told_s = fetch_s(world.estimator, prompt)
        assert told_s is not None
        assert duration_s / 2 < told_s < duration_s * 2


def test_a_few_small_gets_from_new_satellites_say_nothing_of_large_ones() -> None:
    world = World()
    prompt = blocks(*[2_900_000] * 16)
    duration_s = [world.get(prompt) for _ in range(10)][-1]
    world.hands_over()
    world.held_up_s = 3.0
    for _ in range(FEW):
        world.get(blocks(1000))
        told_s = fetch_s(world.estimator, prompt)
        assert told_s is not None
        assert duration_s / 2 < told_s < duration_s * 2


def test_a_few_large_gets_from_new_satellites_make_small_ones_no_faster() -> None:
    world = World()
    for _ in range(10):
        world.get(blocks(1000))
    world.hands_over()
    for _ in range(FEW - 1):
        world.get(blocks(*[2_900_000] * 16))
        assert fetch_s(world.estimator, blocks(1000)) == pytest.approx(0.03, rel=0.2)


def test_small_gets_alone_do_not_tell_what_large_ones_take() -> None:
    world = World()
    world.computes(1e-9)
    for _ in range(50):
        world.get(blocks(3))
    decision = world.worth(blocks(*[BLOCK] * 4))
    assert (decision.kind, decision.fetch, decision.fetch_s) == ("explore", 4, None)
    assert fetch_s(world.estimator, blocks(100)) == pytest.approx(0.03, rel=0.1)


def test_small_prefills_say_nothing_of_large_ones_however_slow_they_are() -> None:
    estimator, rng = Estimator(Clock()), random.Random(3)
    for _ in range(30):
        tokens = rng.randint(1000, 4000)
        estimator.prefilled("engine", tokens, 0.02 + 1e-4 * tokens)
    for _ in range(200):
        held_up = rng.lognormvariate(0, 1) * (20 if rng.random() < 0.05 else 1)
        estimator.prefilled("engine", rng.randint(1, 32), 0.02 * held_up, before=3000)
        assert recompute_s(estimator, "engine", 0, 4000) == pytest.approx(0.4, rel=0.2)


def test_what_runs_comes_first() -> None:
    world = World()
    for _ in range(20):
        world.get(blocks(BLOCK))
        world.get(blocks(*[BLOCK] * 8))
    alone_s = fetch_s(world.estimator, blocks(BLOCK))
    assert alone_s is not None
    runs_s, both_s = (fetch_s(world.estimator, blocks(*[BLOCK] * count)) for count in (8, 11))
    assert runs_s is not None
    assert both_s is not None
    world.estimator.begun("one", blocks(*[BLOCK] * 8))
    assert fetch_s(world.estimator, blocks(BLOCK)) == pytest.approx(runs_s + alone_s)
    world.clock.now_s += runs_s / 2
    assert fetch_s(world.estimator, blocks(BLOCK)) == pytest.approx(runs_s / 2 + alone_s)
    world.estimator.begun("another", blocks(*[BLOCK] * 3))
    assert fetch_s(world.estimator, blocks(BLOCK)) == pytest.approx(both_s - runs_s / 2 + alone_s)
    decision = world.worth(blocks(BLOCK))
    assert decision.fetch_s == pytest.approx(both_s - runs_s / 2 + alone_s)
    world.clock.now_s += 100  # they take longer than they should; nobody knows how long
    assert fetch_s(world.estimator, blocks(BLOCK)) == pytest.approx(alone_s)
    world.clock.now_s -= 100
    world.estimator.ended("one")
    world.estimator.ended("another")
    world.estimator.ended("another")
    assert fetch_s(world.estimator, blocks(BLOCK)) == pytest.approx(alone_s)


def test_a_satellite_that_has_not_served_yet_is_like_the_others_with_its_own_round_trip() -> None:
    world = World()
    for size in (6000, BLOCK, 4 * BLOCK, 6000, BLOCK, 4 * BLOCK):
        world.get(blocks(size))
    here_s = fetch_s(world.estimator, blocks(BLOCK))
    assert here_s is not None
    others = [Satellite(4, server.slot) for server in SERVERS]
    world.estimator.placed(others)
    assert fetch_s(world.estimator, blocks(BLOCK)) == pytest.approx(here_s, rel=0.2)
    world.estimator.links({others[0]: 0.2})
    there_s = fetch_s(world.estimator, blocks(BLOCK))
    assert there_s is not None
    assert there_s > 0.2


def test_prefill_grows_with_the_position() -> None:
    estimator, rng = Estimator(), random.Random(3)

    def takes_s(before: int, tokens: int) -> float:
        return 0.02 + 5e-5 * tokens + 1e-8 * tokens * (before + tokens / 2)

    for _ in range(60):
        before, tokens = rng.choice([0, 0, 1000, 8000]), rng.randint(16, 8000)
        estimator.prefilled("engine", tokens, takes_s(before, tokens) * rng.uniform(0.95, 1.05), before)
    whole_s = estimator.prefill_s("engine", 2000, 4000)
    assert whole_s == pytest.approx(takes_s(4000, 2000), rel=0.15)
    early_s, late_s = recompute_s(estimator, "engine", 0, 1000), recompute_s(estimator, "engine", 16000, 1000)
    assert early_s is not None
    assert late_s is not None
    assert late_s > 2 * early_s
    assert early_s == pytest.approx(takes_s(0, 1000) - 0.02, rel=0.3)  # what it costs to begin is due anyway
    assert recompute_s(estimator, "another", 0, 1000) is None


sizes = st.lists(st.integers(1, 1 << 26), max_size=12)


@given(st.lists(st.tuples(sizes.filter(bool), st.floats(1e-6, 10)), max_size=12), sizes, sizes, st.integers(1, 8192))
def test_more_blocks_never_take_less(
    history: list[tuple[list[int], float]], some: list[int], more: list[int], chunk: int
) -> None:
    world = World()
    for measured, duration_s in history:
        world.estimator.learn(blocks(*measured, chunk_len=chunk), [], duration_s)
        world.estimator.prefilled("engine", sum(measured) % 5000 + 1, duration_s)
    fewer = blocks(*some, chunk_len=chunk)
    all_of_them = [*fewer, *blocks(*more, chunk_len=chunk)]
    few_s, all_s = fetch_s(world.estimator, fewer), fetch_s(world.estimator, all_of_them)
    if few_s is not None and all_s is not None:
        assert 0 <= few_s <= all_s * (1 + 1e-9) < math.inf
    decision = world.worth(all_of_them)
    assert 0 <= decision.fetch <= len(all_of_them)
    for estimate_s in (decision.fetch_s, decision.recompute_s):
        assert estimate_s is None or 0 <= estimate_s < math.inf
    if decision.kind == "fetch" and decision.fetch and decision.fetch_s is not None:
        alone_s = fetch_s(world.estimator, all_of_them[: decision.fetch])
        assert decision.fetch_s == pytest.approx(alone_s)


# ---- decisions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("token_s", "kind"), [(1e-3, "fetch"), (1e-6, "recompute")])
def test_the_faster_one_is_done(token_s: float, kind: str) -> None:
    world = World()
    for _ in range(10):
        world.get(blocks(BLOCK))
    world.computes(token_s)
    decision = world.worth(blocks(*[BLOCK] * 10))
    assert decision.kind == kind
    assert decision.fetch == (10 if kind == "fetch" else 0)
    assert decision.fetch_s is not None
    assert decision.recompute_s is not None
    assert (decision.fetch_s < decision.recompute_s) == (kind == "fetch")


def test_what_would_not_come_before_the_deadline_is_not_fetched() -> None:
    world = World()
    for _ in range(20):
        world.get(blocks(BLOCK))
        world.get(blocks(*[BLOCK] * 4))
    world.computes(1e-2)
    assert world.worth(blocks(*[BLOCK] * 20)).fetch == 20
    world.estimator.placed(SERVERS, deadline_s=0.09)  # 0.03 s, and 6 ms a block
    assert 6 <= world.worth(blocks(*[BLOCK] * 20)).fetch <= 11


def test_finding_out_whether_fetching_is_faster_by_now_costs_little() -> None:
    world = World(rate=5e5)
    for _ in range(10):
        world.get(blocks(BLOCK))
    world.computes(1e-5)
    computed_s, explored_s = 0.0, 0.0
    for _ in range(3000):
        world.clock.now_s += 0.1
        decision = world.worth(blocks(*[BLOCK] * 10))
        assert decision.kind != "fetch"
        assert decision.recompute_s is not None
        if decision.kind == "explore":
            assert decision.fetch == 1
            explored_s += world.get(blocks(BLOCK))
        else:
            computed_s += decision.recompute_s
    assert 0 < explored_s < 0.05 * (computed_s + EXPLORE_S) + 2 * EXPLORE_SHARE


def test_a_link_that_got_better_is_found() -> None:
    world = World(rate=1e5)
    for _ in range(30):
        world.get(blocks(BLOCK))
    world.computes(1e-3)
    assert world.worth(blocks(BLOCK)).kind == "recompute"
    world.rtt_s, world.rate = 0.004, 1e9
    explored = 0
    for _ in range(1000):
        world.clock.now_s += 10
        decision = world.worth(blocks(BLOCK))
        if decision.kind == "fetch":
            break
        if decision.fetch:
            explored += 1
            world.get(blocks(BLOCK))
    assert decision.kind == "fetch"
    assert explored <= 4
    assert world.clock.now_s < 100 + 40 * EXPLORE_S


def test_a_decision_against_fetching_is_tried_again_in_time_though_small_gets_go_on() -> None:
    """Blocks are so small that exploring by a share of the computing time would take hours."""
    world = World(rate=1e5)
    for _ in range(10):
        world.get(blocks(BLOCK))
    world.computes(1e-6)
    assert world.worth(blocks(BLOCK)).kind == "recompute"
    began_s = world.clock.now_s
    while (decision := world.worth(blocks(BLOCK, BLOCK))).kind == "recompute":
        world.clock.now_s += 1
        world.get(blocks(100))
    assert (decision.kind, decision.fetch) == ("explore", 1)
    assert world.clock.now_s - began_s < EXPLORE_S + 2
    assert world.worth(blocks(BLOCK)).kind == "recompute", "once was enough"


def test_what_was_slow_minutes_ago_does_not_count_for_ever() -> None:
    world = World(rate=1e5)
    for _ in range(30):
        world.get(blocks(BLOCK))
    world.computes(1e-3)
    world.clock.now_s += EXPLORE_S
    world.rate = 1e9
    world.get(blocks(BLOCK))
    assert world.worth(blocks(*[BLOCK] * 16)).kind == "fetch"


def test_blocks_that_are_small_one_by_one_are_tried_as_many_at_once() -> None:
    world = World(rate=1e5)
    for _ in range(10):
        world.get(blocks(BLOCK))
    world.computes(1e-6)
    world.clock.now_s += EXPLORE_S
    decision = world.worth(blocks(*[LARGE_BYTES // 4] * 10))
    assert (decision.kind, decision.fetch) == ("explore", 4)


def test_a_link_that_got_worse_is_believed_soon() -> None:
    world = World(rate=1e9)
    for _ in range(30):
        world.get(blocks(BLOCK))
    world.computes(1e-3)
    world.rate = 1e5
    gets = 0
    while world.worth(blocks(BLOCK)).kind == "fetch":
        gets += 1
        world.get(blocks(BLOCK))
    assert gets <= 6


def test_small_gets_in_quick_succession_are_not_all_learned_from() -> None:
    world = World(rtt_s=1e-4, rate=1e9)
    for _ in range(40):
        world.clock.now_s += 0.1
        world.get(blocks(6000))
    for _ in range(FEW):
        world.get(blocks(6000))
        assert world.learned_s is None
        world.get(blocks(LARGE_BYTES))
    assert world.learned_s is None
    world.get(blocks(LARGE_BYTES))
    assert world.learned_s is not None
    world.clock.now_s += 0.1
    world.get(blocks(6000))
    assert world.learned_s is not None


def test_what_is_learned_of_a_get_was_not_known_before_it() -> None:
    world, rng = World(), random.Random(2)
    for _ in range(30):
        world.rtt_s, world.rate = rng.uniform(0.01, 0.1), rng.uniform(1e6, 1e8)
        entries = blocks(*[BLOCK] * rng.choice([1, 2, 8]))
        before_s = fetch_s(world.estimator, entries)
        world.get(entries)
        assert world.learned_s == before_s


def test_engines_are_bounded() -> None:
    estimator = Estimator()
    for engine in range(300):
        for _ in range(FEW):
            estimator.prefilled(str(engine), 100, 0.1)
    assert recompute_s(estimator, "0", 0, 100) is None
    assert recompute_s(estimator, "299", 0, 100) is not None
