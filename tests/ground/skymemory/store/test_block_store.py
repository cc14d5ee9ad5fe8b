"""What all stores of blocks have in common: `SkyStore`, `AgentStore`, and the tests' own."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path

import pytest

from skymemory.agent.agent_store import AgentStore
from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.block_store import BlockStore
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess, tell_up
from support.memory_store import MemoryStore
from support.waiting import PATIENCE_S

LENGTHS = [1, 6001, 54_000, 300]


@pytest.fixture(scope="module")
def agent(full_sky: LocalConstellation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    folder = tmp_path_factory.mktemp("agent")
    tell_up(folder, full_sky)
    with AgentProcess(folder) as started:
        started.wait_ready()
        yield started


def agent_store(agent: AgentProcess) -> AgentStore:
    store = AgentStore(agent.socket, arena_bytes=1 << 16)  # so that blocks go in turns
    assert store.wait_connected(PATIENCE_S)
    return store


MAKE: dict[str, Callable[[pytest.FixtureRequest], BlockStore]] = {
    "sky": lambda request: SkyStore(request.getfixturevalue("full_sky").constellation),
    "agent": lambda request: agent_store(request.getfixturevalue("agent")),
    "memory": lambda request: MemoryStore(),
}


@pytest.fixture(params=MAKE)
def store(request: pytest.FixtureRequest) -> Iterator[BlockStore]:
    with MAKE[request.param](request) as made:
        yield made


@pytest.fixture
def items(request: pytest.FixtureRequest) -> dict[bytes, bytes]:
    """Keys of their own for every test."""
    return {sha256(f"{request.node.nodeid} {length}".encode()).digest(): os.urandom(length) for length in LENGTHS}


def test_blocks_go_and_come_back(store: BlockStore, items: dict[bytes, bytes]) -> None:
    keys = list(items)
    assert not store.silent
    assert [(one.key, one.status) for one in store.put(list(items.items()))] == [(key, "done") for key in keys]
    assert [bytes(one.data or b"") for one in store.get(keys)] == list(items.values())
    for fresh in (False, True):
        found = [one.entry for one in store.find([*keys, bytes(32)], fresh=fresh)]
        assert [entry and entry.block_len for entry in found] == [*LENGTHS, None]
        chain = store.find_longest([*keys, bytes(32)], fresh=fresh)
        assert [entry.key for entry in chain.entries] == keys
        assert list(chain.unanswered) == []
    assert [bytes(one.data or b"") for one in store.get(chain.entries[::-1])] == list(items.values())[::-1]
    assert [one.ok for one in store.prefetch([*keys, bytes(32)], time.time() + 60)] == [True] * 4 + [False]


def test_what_is_purged_is_a_miss(store: BlockStore, items: dict[bytes, bytes]) -> None:
    keys = list(items)
    store.put(list(items.items()))
    purged = store.purge(keys[1:2])
    assert purged.chunks > 0
    assert purged.confirmed
    assert [one.status for one in store.find(keys)] == ["done", "miss", "done", "done"]
    assert [one.status for one in store.get(keys)] == ["done", "miss", "done", "done"]
    assert [entry.key for entry in store.find_longest(keys).entries] == keys[:1]


def test_what_was_fetched_and_is_of_no_use_is_purged(store: BlockStore, items: dict[bytes, bytes]) -> None:
    """The agent tells no entries, so its store leaves it to satellites."""
    keys = list(items)
    store.put(list(items.items()))
    store.forget(store.get(keys[1:2]))
    gone = "done" if isinstance(store, AgentStore) else "miss"
    assert [one.status for one in store.find(keys, fresh=True)] == ["done", gone, "done", "done"]
    store.forget([])


def test_longer_blocks_than_allowed_are_not_fetched(store: BlockStore, items: dict[bytes, bytes]) -> None:
    keys = list(items)
    store.put(list(items.items()))
    assert [one.status for one in store.get(keys, block_bytes_max=6001)] == ["done", "done", "too_large", "done"]
    assert [entry.key for entry in store.find_longest(keys, block_bytes_max=6001).entries] == keys[:2]


def test_blocks_come_one_by_one(store: BlockStore, items: dict[bytes, bytes]) -> None:
    keys = list(items)
    entries = [one.entry for one in store.put(list(items.items()))]
    asked = [*keys, bytes(32), keys[0], *(entry or key for entry, key in zip(entries, keys, strict=True))]
    results = list(store.get_each(asked, block_bytes_max=6001))
    words = ["done", "done", "too_large", "done"]
    assert [one.status for one in results] == [*words, "miss", "done", *words]
    assert [one.key for one in results] == [*keys, bytes(32), keys[0], *keys]
    assert [bytes(one.data) for one in results if one.data is not None] == [
        items[one.key] for one in results if one.status == "done"
    ]
    some = store.get_each(asked)
    assert bytes(next(some).data or b"") == items[keys[0]]
    assert [one.status for one in store.get(keys)] == ["done"] * 4  # in the middle
    assert bytes(next(some).data or b"") == items[keys[1]]
    some.close()
    assert [bytes(one.data or b"") for one in store.get_each(keys)] == list(items.values())


def test_nothing_is_asked_for(store: BlockStore) -> None:
    assert store.find([]) == store.get([]) == store.put([]) == store.prefetch([], time.time() + 60) == []
    assert list(store.get_each([])) == []
    assert store.find_longest([]).entries == []
    assert store.purge([]).chunks == 0


def test_wrong_keys_are_named(store: BlockStore) -> None:
    calls: list[Callable[[], object]] = [
        lambda: store.find([b"short"]),
        lambda: store.find_longest([b"short"]),
        lambda: store.get([b"short"]),
        lambda: list(store.get_each([b"short"])),
        lambda: store.put([(b"short", b"x")]),
        lambda: store.purge([b"short"]),
        lambda: store.prefetch([b"short"], time.time() + 60),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="key of 5 bytes; 32 are allowed"):
            call()
    with pytest.raises(ValueError, match="is past"):
        store.prefetch([bytes(32)], 1.0)


def test_blocks_that_the_arena_cannot_hold(agent: AgentProcess, full_sky: LocalConstellation, tmp_path: Path) -> None:
    key = sha256(b"larger than the arena").digest()
    with SkyStore(full_sky.constellation) as sky, agent_store(agent) as store:
        assert sky.put([(key, bytes(1 << 17))])[0].ok
        assert [one.status for one in store.get([key])] == ["too_large"]
        for length in (0, 1 << 17):
            with pytest.raises(ValueError, match=f"block of {length:,} bytes; allowed are 1 to 65,536"):
                store.put([(key, bytes(length))])


def test_early_blocks_come_over_the_agent_before_late_ones(
    start_sky: Callable[..., LocalConstellation], stopped: Callable[..., AbstractContextManager[None]], tmp_path: Path
) -> None:
    """A satellite says nothing, and then it does."""
    local = start_sky(cache={"deadline_ms": 60_000})
    tell_up(tmp_path, local)
    data = [os.urandom(length) for length in (6_000, 3_000_000, 6_000, 3_000_000)]
    keys = [sha256(b"early %d" % number).digest() for number in range(4)]
    with AgentProcess(tmp_path) as agent:
        agent.wait_ready()
        with AgentStore(agent.socket, arena_bytes=7_000_000) as store:
            assert store.wait_connected(PATIENCE_S)
            assert all(one.ok for one in store.put(list(zip(keys, data, strict=True))))
            results = store.get_each(keys)
            with stopped(local, Whereabouts(local.constellation).servers(0)[5]):
                assert bytes(next(results).data or b"") == data[0]
            assert [bytes(one.data or b"") for one in results] == data[1:]
            for taken in range(4):  # what is asked for and not taken leaves the arena in any case
                some = store.get_each(keys)
                assert all(next(some).ok for _ in range(taken))
                some.close()
            assert [bytes(one.data or b"") for one in store.get(keys)] == data
            some = store.get_each(keys)
            assert next(some).ok
        statuses = [one.status for one in some]  # the store is closed
        assert {*statuses} <= {"done", "unanswered"}
        assert len(statuses) == 3


def test_without_an_agent_all_is_a_miss(tmp_path: Path) -> None:
    key = bytes(32)
    with AgentStore(tmp_path / "agent.sock") as store:
        assert not store.wait_connected(0)
        assert store.silent
        assert [one.status for one in store.find([key])] == ["unanswered"]
        chain = store.find_longest([key])
        assert (chain.entries, list(chain.unanswered)) == ([], [key])
        assert [one.status for one in store.get([key])] == ["unanswered"]
        assert [one.status for one in store.get_each([key])] == ["unanswered"]
        assert [one.status for one in store.put([(key, b"x")])] == ["unanswered"]
        assert [one.status for one in store.prefetch([key], time.time() + 60)] == ["unanswered"]
        assert store.purge([key]) == (0, False)
    store.close()  # twice


def test_an_agent_without_a_constellation_is_silent(tmp_path: Path) -> None:
    with AgentProcess(tmp_path) as agent, agent_store(agent) as store:
        assert list(store.find_longest([bytes(32)]).unanswered) == [bytes(32)]
        assert store.silent
        assert [one.status for one in store.put([(bytes(32), b"x")])] == ["unanswered"]
        assert not agent.metric('skymem_model_tokens{dtype="bytes",model=""}')
