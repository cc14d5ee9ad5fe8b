"""Gets of a ground while chunks move: what one place of a share does not hold is asked for at the next.

With one server a share is the whole block, and its places are the centres at which the window was, the oldest first.
"""

import random
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import pairwise
from secrets import token_bytes

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skymemory.link.block_entry import BlockEntry
from skymemory.link.control import ControlPlane
from skymemory.link.ground import Ground
from skymemory.link.operations import Operation, Outcome
from skymemory.link.structures import Kind
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.sky.placement.structures import Verdict
from skymemory.testbed.local import LocalConstellation
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.icd import Status
from support.operations import DEADLINE_MS, entry_of, fetched, found, got, homes_of, opened, put, scatter, turned
from support.satellites import forget, holds_share, migrate
from support.waiting import wait_until

CHUNK_BYTES = 1000
ONE_SERVER = {"servers": 1, "parity": 0, "chunk_bytes": CHUNK_BYTES}
A, B, C, D = (Satellite(2, slot) for slot in (2, 3, 4, 5))
StartSky = Callable[..., LocalConstellation]
Stopped = Callable[..., AbstractContextManager[None]]


def checked(ground: Ground, sky: Constellation, *entries: BlockEntry) -> list[Outcome]:
    return ground.run([Operation(Kind.CHECK, one, sky.cache.tenant, DEADLINE_MS) for one in entries])


def new_block(sky: Constellation, chunks: int, bytes_less: int = 0) -> tuple[BlockEntry, bytes]:
    data = random.randbytes(chunks * CHUNK_BYTES - bytes_less)
    return entry_of(sky, token_bytes(32), len(data)), data


@pytest.fixture
def sky(full_sky: LocalConstellation) -> Constellation:
    return full_sky.constellation.replace(cache=ONE_SERVER)


@pytest.mark.parametrize("chunks", [2, 7, 40, 500])
@pytest.mark.parametrize("holders", [(A, B), (B, A)])
def test_a_share_that_lies_in_halves_is_found(sky: Constellation, chunks: int, holders: tuple[Satellite, Satellite]) -> None:
    entry, data = new_block(sky, chunks, bytes_less=1)
    scatter(sky, entry, data, lambda number: holders[number % 2])
    with opened(sky, turned(sky, A, B)) as ground:
        outcome, room = fetched(ground, sky, entry)
    assert (outcome.status, outcome.failed) == (Status.DONE, None)
    assert (outcome.chunks, outcome.bytes) == (chunks, len(data))
    assert room == data


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_wherever_its_chunks_lie_a_block_is_found(full_sky: LocalConstellation, data: st.DataObject) -> None:
    """Whatever the number of servers: each chunk lies at one of the places that its share has had."""
    servers = data.draw(st.integers(1, 6))
    sky = full_sky.constellation.replace(cache={**ONE_SERVER, "servers": servers})
    centres = [A, B, C, D][: data.draw(st.integers(1, 4))]
    chunks = data.draw(st.integers(1, 30))
    picks = [data.draw(st.integers(0, 3)) for _ in range(chunks)]  # before anything depends on the block's key
    entry, block = new_block(sky, chunks, bytes_less=data.draw(st.integers(0, CHUNK_BYTES - 1)))
    homes = homes_of(sky, centres, entry.key, len(block))
    scatter(sky, entry, block, lambda number: homes[picks[number] % len(centres)][number % servers])
    with opened(sky, turned(sky, *centres)) as ground:
        assert got(ground, sky, [entry]) == [block]


def test_many_blocks_of_which_some_have_moved(full_sky: LocalConstellation) -> None:
    sky = full_sky.constellation.replace(cache={**ONE_SERVER, "servers": 3})
    blocks = [new_block(sky, 200) for _ in range(12)]
    nowhere, _ = new_block(sky, 200)
    with opened(sky, turned(sky, A)) as ground:
        assert all(one.status is Status.DONE for one in put(ground, sky, {entry.key: data for entry, data in blocks[::2]}))
        ground.set_sky(turned(sky, A, B)._replace(changes=2))
        assert all(one.status is Status.DONE for one in put(ground, sky, {entry.key: data for entry, data in blocks[1::2]}))
        assert got(ground, sky, [*(entry for entry, _ in blocks), nowhere]) == [*(data for _, data in blocks), Status.MISS]
        outcome, _ = fetched(ground, sky, nowhere)
        assert outcome.last_status == icd.STATUS_NOT_FOUND
        assert outcome.failed in {one for homes in homes_of(sky, (A, B), nowhere.key, nowhere.block_len) for one in homes}


def test_more_chunks_than_one_set_can_name(start_sky: StartSky) -> None:
    sky = start_sky(satellite={"store_mib": 64}, cache=ONE_SERVER).constellation
    entry, data = new_block(sky, 2 * icd.LIMIT_CHUNK_SET + 3)
    scatter(sky, entry, data, lambda number: A if number % 3 else B)
    with opened(sky, turned(sky, B, A)) as ground:
        assert got(ground, sky, [entry]) == [data]


def test_what_is_lost_on_the_way_is_not_taken_for_moved(start_sky: StartSky) -> None:
    sky = start_sky(cache={**ONE_SERVER, "uplink": "nearest"}, links={"loss_ppm": 50_000, "jitter_us": 500}).constellation
    entry, data = new_block(sky, 300)
    scatter(sky, entry, data, lambda number: A if number % 2 else D)
    with opened(sky, turned(sky, A, D)) as ground:  # over D, so that what A has crosses links that lose
        outcome, room = fetched(ground, sky, entry)
    assert (outcome.status, room) == (Status.DONE, data)
    assert outcome.repeats > 0


def test_chunks_in_parts(start_sky: StartSky) -> None:
    """Those that have moved, and those that have not."""
    local = start_sky(network={"mtu": 1472}, cache={**ONE_SERVER, "chunk_bytes": 6000})
    sky, data = local.constellation, random.randbytes(240_000)
    entry = entry_of(sky, token_bytes(32), len(data))
    half = data[:120_000]
    with opened(sky, turned(sky, A)) as ground, ControlPlane(sky) as control:
        assert put(ground, sky, {entry.key: data})[0].status is Status.DONE
        assert migrate(control, Route(A, A), B, entry.key).ok
        wait_until(lambda: holds_share(control, Route(B, B), entry, 0, 1))
        ground.set_sky(turned(sky, A, B)._replace(changes=2))
        assert got(ground, sky, [entry]) == [data]
        other = entry_of(sky, token_bytes(32), len(half))
        assert put(ground, sky, {other.key: half})[0].status is Status.DONE
        assert got(ground, sky, [other, entry]) == [half, data]


def test_chunks_that_move_meanwhile_are_found(start_sky: StartSky) -> None:
    """Satellite by satellite forward, with gets all the time that ask in the order of time."""
    sky = start_sky(satellite={"store_mib": 64}, cache=ONE_SERVER).constellation
    path = [A, B, C]
    blocks = [new_block(sky, 100) for _ in range(10)]
    with opened(sky, turned(sky, A)) as ground, ControlPlane(sky) as control:
        assert all(one.status is Status.DONE for one in put(ground, sky, {entry.key: data for entry, data in blocks}))
        ground.set_sky(turned(sky, *path)._replace(changes=2))
        over = threading.Event()

        def turn() -> None:
            try:
                for source, target in pairwise(path):
                    for entry, _ in blocks:
                        assert migrate(control, Route(source, source), target, entry.key).ok
                        wait_until(lambda to=target, entry=entry: holds_share(control, Route(to, to), entry, 0, 1))
                over.set()
            finally:
                ended.set()

        ended = threading.Event()
        mover = threading.Thread(target=turn)
        mover.start()
        try:
            rounds = 0
            while not ended.is_set() or rounds < 2:
                assert got(ground, sky, [entry for entry, _ in blocks]) == [data for _, data in blocks]
                rounds += 1
        finally:
            mover.join()
        assert over.is_set()


def test_a_put_goes_to_the_places_of_now_only(sky: Constellation) -> None:
    entry, data = new_block(sky, 10)
    with opened(sky, turned(sky, A, B, C)) as ground, ControlPlane(sky) as control:
        assert put(ground, sky, {entry.key: data})[0].status is Status.DONE
        assert [holds_share(control, Route(one, one), entry, 0, 1) for one in (A, B, C)] == [False, False, True]


def test_an_older_block_of_the_name_is_passed_over(sky: Constellation) -> None:
    entry, data = new_block(sky, 10)
    older, alone = entry_of(sky, entry.key, 9000), entry_of(sky, token_bytes(32), 9000)
    scatter(sky, older, bytes(9000), lambda _: A)
    scatter(sky, alone, bytes(9000), lambda _: A)
    scatter(sky, entry, data, lambda _: B)
    with opened(sky, turned(sky, A, B)) as ground:
        assert got(ground, sky, [entry]) == [data]
        # It is not gone for certain: the name stands for something else somewhere
        outcome, _ = fetched(ground, sky, replace(entry, key=alone.key))
        assert (outcome.status, outcome.entry) == (Status.BAD_LENGTH, alone)
        assert outcome.verdict is not Verdict.PURGE


# ---- places that do not answer ------------------------------------------------------------------------------------------


def test_a_silent_place_is_passed_over(start_sky: StartSky, stopped: Stopped) -> None:
    local = start_sky(cache=ONE_SERVER)
    sky = local.constellation
    blocks = [new_block(sky, 20) for _ in range(30)]
    nowhere, missing = new_block(sky, 20)
    with opened(sky, turned(sky, B)) as ground:
        assert all(one.status is Status.DONE for one in put(ground, sky, {entry.key: data for entry, data in blocks}))
        ground.set_sky(turned(sky, A, B)._replace(changes=2))
        with stopped(local, A):
            assert got(ground, sky, [entry for entry, _ in blocks]) == [data for _, data in blocks]
            outcome, _ = fetched(ground, sky, nowhere, 2000)
            # Whether the silent one holds it, nobody knows
            assert outcome.status is not Status.DONE
            assert outcome.verdict is not Verdict.PURGE
        # As good as new afterwards
        ground.set_sky(turned(sky, A)._replace(changes=3))
        wait_until(lambda: put(ground, sky, {nowhere.key: missing})[0].status is Status.DONE)
        ground.set_sky(turned(sky, A, B)._replace(changes=4))
        assert got(ground, sky, [nowhere]) == [missing]


def test_all_places_silent_ends_by_the_deadline_and_says_nothing_of_the_block(start_sky: StartSky, stopped: Stopped) -> None:
    local = start_sky(cache=ONE_SERVER)
    sky = local.constellation
    entries = [new_block(sky, 5)[0] for _ in range(20)]
    operations = [Operation(Kind.GET, one, sky.cache.tenant, 600, bytearray(one.block_len)) for one in entries]
    with opened(sky, turned(sky, A, B, C)) as ground, stopped(local):
        start_s = time.monotonic()
        outcomes = ground.run(operations)
        assert time.monotonic() - start_s < 60
        assert {one.status for one in outcomes} <= {Status.EXPIRED, Status.UNANSWERED}
        assert {one.verdict for one in outcomes} == {Verdict.KEEP}
        assert found(ground, sky, [entries[0].key]) == [Status.UNANSWERED]
        assert ground.reach().is_silent


def test_an_unreachable_place_is_passed_over(start_sky: StartSky) -> None:
    here, there = Satellite(1, 1), Satellite(1, 2)
    sky = start_sky(
        constellation={"planes": 1, "slots": 2},
        cache={**ONE_SERVER, "centre": [1, 1], "uplink": "nearest"},
        links={"override": [{"from": [1, 1], "to": [1, 2], "cut": True}]},
    ).constellation
    entry, data = new_block(sky, 10)
    nowhere, _ = new_block(sky, 10)
    with opened(sky, turned(sky, here)) as ground:
        assert put(ground, sky, {entry.key: data})[0].status is Status.DONE
        ground.set_sky(turned(sky, there, here)._replace(changes=2))
        assert got(ground, sky, [entry]) == [data]
        outcome, _ = fetched(ground, sky, nowhere)
        assert outcome.status is not Status.DONE
        assert outcome.verdict is not Verdict.PURGE


# ---- what places say ------------------------------------------------------------------------------------------------------


def test_what_two_places_hold_in_part_is_there_until_one_of_them_forgets(sky: Constellation) -> None:
    """Of a CHECK: a share that moves may lie in part at one place and in part at another, whatever the order."""
    entry, data = new_block(sky, 30)
    longer = replace(entry, block_len=entry.block_len - 1)
    nowhere, _ = new_block(sky, 30)
    for places in ((A, B), (B, A)):
        scatter(sky, entry, data, lambda number: (A, B)[number % 2])
        with opened(sky, turned(sky, *places)) as ground, ControlPlane(sky) as control:
            assert [one.status for one in checked(ground, sky, entry, nowhere, longer)] == [Status.DONE, Status.MISS, Status.MISS]
            assert [one.is_other for one in checked(ground, sky, entry, nowhere, longer)] == [False, False, True]
            forget(control, [Route(B, B)], [entry.key], sky.cache.tenant)
            assert [one.status for one in checked(ground, sky, entry)] == [Status.MISS]
