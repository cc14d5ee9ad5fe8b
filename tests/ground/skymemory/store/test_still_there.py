"""What is found is there: in a store that is too small, beside satellites that say nothing, and after they started anew."""

import os
import random
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from skymemory.link.block_entry import BlockEntry
from skymemory.link.timing import Timing
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route, server_routes
from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.envelope import ENVELOPE_BYTES, Kind, seal
from skymemory.wire.key_derivation import root_key, seal_keys
from support.evictions import evict
from support.satellites import requests
from support.settled import wait_until_settled
from support.spread import shares_of
from support.waiting import wait_until

StartSky = Callable[..., LocalConstellation]
Stopped = Callable[..., AbstractContextManager[None]]
BLOCK = os.urandom(100_000)
"""17 chunks: a share at each of the nine servers"""
SEALS = seal_keys(root_key("tests", bytes(32)))
OVERFULL: dict[str, dict[str, object]] = {"satellite": {"store_mib": 1}}
"""room for 83 blocks or so"""


@pytest.fixture
def start_sky(start_sky: StartSky) -> StartSky:
    """Start skies without parity: one lost chunk breaks a block, which is what the tests of this file are about."""

    def start(logs: Path | None = None, **sections: dict[str, object]) -> LocalConstellation:
        return start_sky(logs, **{**sections, "cache": {"parity": 0, **sections.get("cache", {})}})

    return start


def open_store(sky: Constellation, **times: Any) -> SkyStore:
    """A busy machine may need longer than an answer takes over loopback."""
    return SkyStore(sky, timing=Timing(**{"min_s": 1.0, **times}))


def chain(name: object, length: int) -> list[bytes]:
    return [sha256(f"{__name__} {name} {index}".encode()).digest() for index in range(length)]


def put(store: SkyStore, keys: Sequence[bytes]) -> None:
    assert all(result.ok for result in store.put([(key, BLOCK) for key in keys]))


def evict_first(store: SkyStore, key: bytes) -> None:
    """Let the server of share 0 of a block lose it."""
    first = shares_of(store.constellation, key, len(BLOCK))[0]
    evict(store.control, [Route(first, first)], [key])


def found(store: SkyStore, keys: Sequence[bytes]) -> list[bytes]:
    """Keys of the beginning that is there, as a lookup has it."""
    return [entry.key for entry in store.still_there([store.find_longest(keys).entries])[0]]


def test_all_that_is_found_in_an_overfull_store_can_be_fetched(start_sky: StartSky) -> None:
    """Prompts with common beginnings, of more blocks than there is room for, in any order."""
    draw = random.Random(1)
    sky = start_sky(**OVERFULL).constellation
    with open_store(sky, min_s=5.0, max_s=5.0) as store:  # who is silent for a moment is believed to hold all
        believed = 0
        for _ in range(80):
            common, user, turns = draw.randrange(3), draw.randrange(8), draw.randrange(1, 4)
            keys = chain(common, 6) + chain((common, user), 4 * turns)
            known = store.find_longest(keys).entries
            (there,) = store.still_there([known])
            believed += len(known) > len(there)
            assert there == known[: len(there)]
            cached = draw.choice([0, 0, 2])  # an engine may have the first ones itself, so the sky forgets them first
            results = store.get(there[cached:])
            assert {result.status for result in results} <= {"done"}
            put(store, keys[len(there) :])
        assert believed > 10  # the index alone would have said otherwise
        assert store.stats().misses == 0


def test_what_is_gone_is_forgotten_and_its_rest_purged(start_sky: StartSky) -> None:
    sky = start_sky().constellation
    common, own = chain("common", 3), chain("own", 3)
    with open_store(sky) as store, open_store(sky) as other:
        put(store, own)
        put(store, common)
        keys = common + own
        assert found(store, keys) == keys
        wait_until_settled(store)
        last = server_routes(store.whereabouts, 0)[-1]
        evict(store.control, [last], own[:1])  # first and last block of the chain are there
        assert found(store, keys) == common
        assert store.index.get(own[0]) is None
        assert store.index.get(own[1]) is None  # without the one before it of no use
        assert other.find([own[0]])[0].entry is None  # nothing of it is left
        put(store, own[:1])
        assert found(store, keys) == keys
        assert [result.status for result in store.get(keys)] == ["done"] * 6


def test_without_lazy_purge_the_rest_is_left_and_not_found_again(start_sky: StartSky) -> None:
    sky = start_sky(cache={"lazy_purge": False}).constellation
    keys = chain("left", 2)
    with open_store(sky) as store, open_store(sky) as other:
        put(store, keys)
        last = shares_of(sky, keys[0], len(BLOCK))[-1]  # a look-up asks for the first one
        evict(store.control, [Route(last, last)], keys[:1])
        assert found(store, keys) == []
        assert found(store, keys) == []
        assert other.find([keys[0]])[0].entry is not None
        assert store.stats().purges == 0


def test_a_hole_behind_which_nothing_was_asked_is_found(start_sky: StartSky) -> None:
    """As soon as one block is gone the others are asked for, in order."""
    keys = chain("holes", 40)
    with open_store(start_sky().constellation) as store:
        put(store, keys)
        for gone in (keys[39], keys[31], keys[30]):
            evict_first(store, gone)
        assert found(store, keys) == keys[:30]
        assert found(store, keys) == keys[:30]


def test_a_satellite_that_started_anew_holds_nothing(start_sky: StartSky) -> None:
    local = start_sky()
    keys = chain("anew", 4)
    with open_store(local.constellation) as store:
        put(store, keys)
        again = Whereabouts(local.constellation).servers(0)[5]
        local.kill(again)
        local.restart(again)
        assert found(store, keys) == []
        put(store, keys)
        assert found(store, keys) == keys


def test_silence_is_not_waited_for_and_not_asked_again(start_sky: StartSky, stopped: Stopped) -> None:
    local = start_sky()
    silent = Whereabouts(local.constellation).servers(0)[4]
    keys = chain("silence", 4)
    with open_store(local.constellation) as store:
        store.probe(store.control)
        put(store, keys)
        assert found(store, keys) == keys
        before = requests(store.control, [Route(silent, silent)])
        with stopped(local, silent):
            for _ in range(20):
                assert found(store, keys) == keys  # as the index says
        asked = requests(store.control, [Route(silent, silent)]) - before - 1
        assert 1 <= asked <= 3 * 3  # blocks of one check, and sendings of each question
        assert store.stats().satellites_lost == 0  # that is for others to judge


def test_a_host_that_stood_still_asks_all_once_more(start_sky: StartSky, stopped: Stopped) -> None:
    local = start_sky()
    keys = chain("stood still", 4)
    with open_store(local.constellation) as store:
        store.probe(store.control)
        put(store, keys)
        assert found(store, keys) == keys
        asked: list[bool] = []

        def check() -> None:
            before = store.stats().questions
            assert found(store, keys) == keys  # as the index says
            asked.append(store.stats().questions > before)

        for times in (1, 2):
            with stopped(local):
                for _ in range(times):
                    check()
            check()
        assert asked == [True] * 4 + [False]  # after the second silence in a row nobody


def test_others_are_believed_while_one_is_silent(start_sky: StartSky, stopped: Stopped) -> None:
    local = start_sky()
    keys = chain("others", 4)
    with open_store(local.constellation) as store:
        put(store, keys)
        first, *_, last = server_routes(store.whereabouts, 0)
        evict(store.control, [last], keys[:1])
        with stopped(local, first.satellite):
            assert found(store, keys) == []


def test_nobody_is_asked_in_a_silent_sky(start_sky: StartSky, stopped: Stopped) -> None:
    local = start_sky(cache={"deadline_ms": 2000})
    keys = chain("dark", 4)
    with open_store(local.constellation, pause_first_s=3600.0) as store:
        put(store, keys)
        with stopped(local):
            assert not store.get(keys[:1])[0].ok
            assert store.silent
            before = store.stats().questions
            assert found(store, keys) == keys
            assert store.stats().questions == before


def test_blocks_whose_share_another_satellite_stands_in_for_stay_in_the_sky(start_sky: StartSky, stopped: Stopped) -> None:
    local = start_sky(cache={"deadline_ms": 2000})
    keys = chain("stand-in", 3)
    with open_store(local.constellation, lost_s=3600.0) as store, open_store(local.constellation) as other:
        put(store, keys)
        put(other, keys)
        with stopped(local, Whereabouts(local.constellation).servers(0)[4]):
            assert store.put([(bytes(32), BLOCK)])[0].ok  # finds the loss
            wait_until(lambda: store.stats().satellites_lost == 1, "it is found lost")
            assert found(store, keys) == []
            assert found(store, keys) == []  # though satellites still have chunks of it
        assert store.stats().purges == 0
        assert found(other, keys) == keys


def test_a_block_that_another_host_replaced_is_there_as_that_host_put_it(start_sky: StartSky) -> None:
    """Two hosts compute unequal bits for the same tokens. The one that was first still finds the block of the other."""
    keys = chain("replaced", 4)
    sky = start_sky().constellation
    with open_store(sky) as store, open_store(sky) as other:
        put(store, keys)
        for key in (keys[0], keys[2]):
            block = bytes(seal(Kind.PROMPT, key, b"", BLOCK[ENVELOPE_BYTES:], keys=SEALS))
            assert len(block) == len(BLOCK)
            assert other.purge([key]).confirmed
            assert other.put([(key, block)])[0].ok
            (there,) = store.still_there([store.find_longest(keys).entries])
            assert [entry.key for entry in there] == keys
            assert store.find_longest(keys).entries == there
            assert store.get([key])[0].data == block


def test_several_chains_at_once(start_sky: StartSky) -> None:
    keys = [chain(("several", number), 3) for number in range(20)]
    with open_store(start_sky().constellation) as store:
        for one in keys:
            put(store, one)
        evict_first(store, keys[19][0])
        evict_first(store, keys[7][2])
        asked: list[list[BlockEntry]] = [[], *(store.find_longest(one).entries for one in keys)]
        there = store.still_there(asked)
        assert [len(one) for one in there] == [0, *([3] * 7), 2, *([3] * 11), 0]
        assert store.still_there([]) == []
