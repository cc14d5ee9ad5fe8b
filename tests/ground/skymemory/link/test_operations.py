"""Operations of the core's ground on real satellites, beside a store: each reads what the other wrote."""

import asyncio
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256

import pytest

from skymemory.link.block_entry import BlockEntry
from skymemory.link.ground import Box, Ground
from skymemory.link.operations import Operation, Outcome, Sky, to_find
from skymemory.link.structures import Kind, Uplink
from skymemory.sky.placement.structures import Verdict
from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.icd import Status
from support.operations import DEADLINE_MS, asked, entry_of, found, got, opened, put
from support.settled import wait_until_settled
from support.spread import shares_of
from support.waiting import wait_until

StartSky = Callable[..., LocalConstellation]
CODED = {"servers": 12, "parity": 2}
SIZES = [1, 3, 5999, 6001, 60_001, 1_000_003]


def items_of(name: str) -> dict[bytes, bytes]:
    return {sha256(f"{__name__} {name} {index}".encode()).digest(): os.urandom(size) for index, size in enumerate(SIZES)}


@pytest.mark.parametrize("coded", [{}, CODED])
def test_each_reads_what_the_other_wrote(start_sky: StartSky, coded: dict[str, int]) -> None:
    local = start_sky(cache=coded)
    sky, ours, theirs = local.constellation, items_of(f"ours {coded}"), items_of(f"theirs {coded}")
    with opened(sky) as ground, SkyStore(sky, tenant_secret=b"") as store:
        assert [one.status for one in put(ground, sky, ours)] == [Status.DONE] * len(ours)
        assert [one.data for one in store.get(list(ours))] == list(ours.values())
        stored = store.put(list(theirs.items()))
        assert all(one.ok for one in stored)
        entries = [one for one in found(ground, sky, list(theirs)) if isinstance(one, BlockEntry)]
        assert entries == [replace(one.entry, set_at=0.0) for one in stored if one.entry is not None]
        assert got(ground, sky, entries) == list(theirs.values())


def test_what_is_purged_is_gone(start_sky: StartSky) -> None:
    local = start_sky()
    sky, items = local.constellation, items_of("purged")
    entries = [entry_of(sky, key, len(data)) for key, data in items.items()]
    with opened(sky) as ground, SkyStore(sky, tenant_secret=b"") as store:
        wait_until_settled(store)
        assert all(one.status is Status.DONE for one in put(ground, sky, items))
        assert [one.status for one in asked(ground, sky, Kind.CHECK, entries)] == [Status.DONE] * len(items)
        assert [one.status for one in asked(ground, sky, Kind.PURGE, entries)] == [Status.DONE] * len(items)
        assert [one.status for one in store.get(list(items))] == [Status.MISS] * len(items)
        assert found(ground, sky, list(items)) == [Status.MISS] * len(items)
        checked = asked(ground, sky, Kind.CHECK, entries)
        assert [one.status for one in checked] == [Status.MISS] * len(items)
        assert {one.verdict for one in checked} <= {Verdict.FORGET, Verdict.PURGE}
        assert got(ground, sky, entries) == [Status.MISS] * len(items)


def test_a_dead_satellite_is_passed_by_and_named(start_sky: StartSky) -> None:
    local = start_sky(cache=CODED)
    sky, items = local.constellation, items_of("dead")
    entries = [entry_of(sky, key, len(data)) for key, data in items.items()]
    with opened(sky) as ground:
        assert all(one.status is Status.DONE for one in put(ground, sky, items))
        (key, data), *_ = [(key, data) for key, data in items.items() if len(data) == 1_000_003]
        home = shares_of(sky, key, len(data))[0]
        local.kill(home)
        assert got(ground, sky, entries) == list(items.values())
        assert all(one.status is Status.DONE for one in put(ground, sky, items, version=5))  # at a stand-in, too
        wait_until(lambda: ground.reach().lost == {home})  # nobody waits for the look that tells
        assert not ground.reach().is_silent
        assert got(ground, sky, [replace(one, version=5, content=7) for one in entries]) == list(items.values())


def test_many_threads_share_a_ground(start_sky: StartSky) -> None:
    local = start_sky(cache=CODED)
    sky = local.constellation
    wrong: list[object] = []

    def work(number: int) -> None:
        items = items_of(f"thread {number}")
        entries = [entry_of(sky, key, len(data)) for key, data in items.items()]
        for _ in range(3):
            wrong.extend(one for one in put(ground, sky, items) if one.status is not Status.DONE)
            if got(ground, sky, entries) != list(items.values()):
                wrong.append(number)

    with opened(sky) as ground:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_memory_of_another_length_is_refused(start_sky: StartSky) -> None:
    sky = start_sky().constellation
    one = entry_of(sky, bytes(32), 10)
    with opened(sky) as ground:
        with pytest.raises(ValueError, match="9 bytes of memory for a block of 10"):
            ground.run([Operation(Kind.GET, one, 0, 1000, bytearray(9))])
        with pytest.raises(OSError, match="Invalid argument"):
            ground.run([Operation(Kind.GET, replace(one, chunk_len=0), 0, 1000, bytearray(10))])
        with pytest.raises(BufferError):
            ground.run([Operation(Kind.GET, one, 0, 1000, bytes(10))])  # it cannot be written
        with pytest.raises(ValueError, match="deadline_ms is 0"):
            ground.run([to_find([one.key], 0, 0)])
        assert ground.run([]) == []


@pytest.mark.parametrize(
    ("cache", "uplink"),
    [
        ({}, Uplink.DIRECT),
        ({"uplink": "nearest"}, Uplink.CENTRE),
        ({"host": "satellite", "layout": "hop"}, Uplink.ABOARD),
    ],
)
def test_hosts_of_all_kinds_have_a_way_in(start_sky: StartSky, cache: dict[str, str], uplink: Uplink) -> None:
    sky, items = start_sky(cache=cache).constellation, items_of(f"way {cache}")
    assert Sky.of(Whereabouts(sky), time.time()).uplink == uplink
    entries = [entry_of(sky, key, len(data)) for key, data in items.items()]
    with opened(sky) as ground:
        assert all(one.status is Status.DONE for one in put(ground, sky, items))
        assert got(ground, sky, entries) == list(items.values())


def taken(box: Box) -> dict[bytes, Outcome]:
    outcomes = {}
    while (told := box.take()) is not None:
        outcomes[told[0].entry.key] = told[1]
    return outcomes


def test_outcomes_are_taken_as_they_come(start_sky: StartSky) -> None:
    sky, items = start_sky(cache=CODED).constellation, items_of("box")
    memory = {key: bytearray(len(data)) for key, data in items.items()}
    with opened(sky) as ground:
        assert all(one.status is Status.DONE for one in put(ground, sky, items))
        box = ground.box()
        assert box.take() is None
        assert not box.wait(60)  # nothing runs
        for key, room in memory.items():
            box.submit(Operation(Kind.GET, entry_of(sky, key, len(room)), sky.cache.tenant, DEADLINE_MS, room))
        outcomes: dict[bytes, Outcome] = {}
        while len(outcomes) < len(items):
            assert box.wait(60)
            outcomes |= taken(box)
        assert {one.status for one in outcomes.values()} == {Status.DONE}
        assert {key: bytes(room) for key, room in memory.items()} == items


def test_an_operation_is_called_back_and_memory_comes_free(start_sky: StartSky) -> None:
    local = start_sky()
    sky = local.constellation
    with opened(sky) as ground:
        for satellite in sky.torus.satellites():
            local.kill(satellite)
        room = bytearray(100_000)
        box = ground.box()
        one = Operation(Kind.GET, entry_of(sky, bytes(32), len(room)), sky.cache.tenant, 600_000, room)
        ticket = box.submit(one)
        assert not box.wait(0.2)
        with pytest.raises(BufferError):
            room.append(0)  # the ground has it
        began_s = time.monotonic()
        box.cancel([ticket])
        assert box.wait(60)
        assert time.monotonic() - began_s < 10
        told = box.take()
        assert told is not None
        assert told[0] is one
        assert told[1].status is Status.CANCELLED
        del told
        room.append(0)
        box.submit(one.__class__(Kind.GET, one.entry, one.tenant, 600_000, memory := bytearray(100_000)))
        del box  # what runs ends
        memory.append(0)


def test_many_operations_are_called_back_at_once(start_sky: StartSky) -> None:
    local = start_sky()
    sky = local.constellation
    with opened(sky) as ground:
        for satellite in sky.torus.satellites():
            local.kill(satellite)
        box = ground.box()
        entry = entry_of(sky, bytes(32), 1)
        operations = [Operation(Kind.GET, entry, sky.cache.tenant, 600_000, bytearray(1)) for _ in range(1000)]
        tickets = [box.submit(one) for one in operations]
        assert len(set(tickets)) == 1000
        box.cancel(tickets[1:])
        box.cancel([-1, 1 << 40])  # nobody has these
        for wrong in (["no number"], [1 << 80]):
            with pytest.raises((TypeError, OverflowError)):
                box.cancel(wrong)  # type: ignore[arg-type]
        ended: list[tuple[Operation, Outcome]] = []
        while len(ended) < 999:
            assert box.wait(60)
            if (told := box.take()) is not None:
                ended.append(told)
        assert {one.status for _, one in ended} == {Status.CANCELLED}
        assert all(one is not operations[0] for one, _ in ended)
        assert box.submit(operations[1]) in tickets[1:]
        box.close()
        assert box.take() is None
        assert box.submit(operations[2]) in tickets  # all are free again


def test_a_loop_of_events_awaits_outcomes(start_sky: StartSky) -> None:
    sky, items = start_sky(cache=CODED).constellation, items_of("loop")
    entries = [entry_of(sky, key, len(data)) for key, data in items.items()]

    async def looked_up(ground: Ground) -> list[Outcome]:
        loop = asyncio.get_running_loop()
        box = ground.box(has_descriptor=True)
        futures: dict[bytes, asyncio.Future[Outcome]] = {one.key: loop.create_future() for one in entries}

        def take() -> None:
            for key, outcome in taken(box).items():
                futures[key].set_result(outcome)

        loop.add_reader(box.fileno(), take)
        for one in entries:
            box.submit(to_find([one.key], sky.cache.tenant, DEADLINE_MS))
        outcomes = await asyncio.gather(*futures.values())
        loop.remove_reader(box.fileno())
        return outcomes

    with opened(sky) as ground:
        assert all(one.status is Status.DONE for one in put(ground, sky, items))
        outcomes = asyncio.run(looked_up(ground))
        assert [one.found[0].entry for one in outcomes] == entries
