"""A store in an event loop: calls side by side, called back, with deadlines; equal gets are one."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from hashlib import sha256
from itertools import pairwise

import pytest

from skymemory.sky.placement.structures import Verdict
from skymemory.store.async_store import AsyncStore
from skymemory.store.keyvalue import KeyValue
from skymemory.store.results import GetResult, Status
from skymemory.store.runner import Moved
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from support.waiting import PATIENCE_S

StartSky = Callable[..., LocalConstellation]
Stopped = Callable[..., AbstractContextManager[None]]
BLOCK = 60_000
SOON_S = 2.0
"""Far more than a call back takes on a busy machine, and far less than the deadline of the constellations here."""


def key(name: object) -> bytes:
    return sha256(f"{__name__} {name}".encode()).digest()


def data_of(results: list[GetResult]) -> bytes:
    """Return the bytes of the first block."""
    return bytes(results[0].data or b"")


def with_store(local: LocalConstellation, work: Callable[[AsyncStore], Awaitable[None]]) -> list[Moved]:
    """Work with a store, and return what it has moved."""
    moved: list[Moved] = []

    async def run() -> None:
        with SkyStore(local.constellation, watch=moved.append, tenant_secret=b"secret") as store:
            face = AsyncStore(store)
            try:
                async with asyncio.timeout(PATIENCE_S):
                    await work(face)
            finally:
                face.close()

    asyncio.run(run())
    return moved


@pytest.fixture
def patient(start_sky: StartSky) -> LocalConstellation:
    """A sky whose blocks are waited for for ten minutes."""
    return start_sky(cache={"deadline_ms": 600_000, "parity": 0})


def test_calls_run_side_by_side(full_sky: LocalConstellation) -> None:
    items = [(key(("beside", number)), os.urandom(1000 * number + 1)) for number in range(40)]

    async def work(store: AsyncStore) -> None:
        puts = await asyncio.gather(*(store.put([item]) for item in items))
        assert all(one.ok for [one] in puts)
        gets = await asyncio.gather(*(store.get([name]) for name, _ in items))
        assert [data_of(one) for one in gets] == [data for _, data in items]
        names = [name for name, _ in items]
        assert len((await store.find_longest([*names, key("none")])).entries) == 40
        assert await store.still_there([[]]) == [[]]
        assert await store.touch(names) == 0  # the sky is far from full
        assert (await store.prefetch(names[:1], time.time() + 60))[0].ok
        assert (await store.purge(names[:1])).confirmed
        assert (await store.make_way(names[1:2]))[0].confirmed
        assert [one.status for one in await store.find(names[:3], fresh=True)] == ["miss", "miss", "done"]

    with_store(full_sky, work)


def test_a_large_block_gets_its_memory_beside_the_loop(full_sky: LocalConstellation) -> None:
    name, data = key("large"), os.urandom(2_000_000)

    async def work(store: AsyncStore) -> None:
        assert (await store.put([(name, data)]))[0].ok
        assert data_of(await store.get([name])) == data
        assert (await store.get([name], block_bytes_max=5))[0].status == "too_large"

    with_store(full_sky, work)


def test_a_call_that_is_cancelled_is_called_back(patient: LocalConstellation, stopped: Stopped) -> None:
    name, data = key("called back"), os.urandom(BLOCK)

    async def work(store: AsyncStore) -> None:
        assert (await store.put([(name, data)]))[0].ok
        room = bytearray(BLOCK)
        with stopped(patient, *store.store.whereabouts.servers(0)[:3]):
            calls = [
                asyncio.create_task(store.get([name], into=[memoryview(room)])),
                asyncio.create_task(store.put([(key("other"), data)])),
            ]
            await asyncio.sleep(0.1)
            start_s = time.monotonic()
            for call in calls:
                call.cancel()
                call.cancel()
            for call in calls:
                with pytest.raises(asyncio.CancelledError):
                    await call
            assert time.monotonic() - start_s < SOON_S
            kept = bytes(room)
        assert data_of(await store.get([name])) == data
        assert bytes(room) == kept  # nobody writes into its memory any more

    with_store(patient, work)


def test_a_call_ends_at_its_deadline(patient: LocalConstellation, stopped: Stopped) -> None:
    name, data = key("deadline"), os.urandom(BLOCK)

    async def work(store: AsyncStore) -> None:
        assert (await store.put([(name, data)]))[0].ok
        with stopped(patient, store.store.whereabouts.servers(0)[2]):
            start_s = time.monotonic()
            assert (await store.get([name], deadline_s=0.1))[0].status == Status.EXPIRED
            assert store.store.get([name], deadline_s=0.1)[0].status == Status.EXPIRED  # in a thread, too
            assert time.monotonic() - start_s < SOON_S
        assert data_of(await store.get([name], deadline_s=PATIENCE_S)) == data
        with stopped(patient):
            start_s = time.monotonic()
            late = await store.put([(key("late"), data)], deadline_s=0.1)
            assert late[0].status in (Status.EXPIRED, Status.UNANSWERED)
            assert time.monotonic() - start_s < SOON_S

    with_store(patient, work)


def test_equal_gets_are_one(patient: LocalConstellation, stopped: Stopped) -> None:
    name, data = key("equal"), os.urandom(BLOCK)

    async def work(store: AsyncStore) -> None:
        assert (await store.put([(name, data)]))[0].ok
        rooms = [bytearray(BLOCK) for _ in range(3)]
        with stopped(patient, store.store.whereabouts.servers(0)[2]):
            gets = [asyncio.create_task(store.get([name], into=[memoryview(room)])) for room in rooms]
            gets += [asyncio.create_task(store.get([name])) for _ in range(3)]
            short = asyncio.create_task(store.get([name], into=[memoryview(bytearray(5))]))
            await asyncio.sleep(0.1)
            gets[1].cancel()
            gets[4].cancel()
        results = await asyncio.gather(*gets, return_exceptions=True)
        assert [isinstance(one, asyncio.CancelledError) for one in results] == [False, True, False, False, True, False]
        assert [bytes(rooms[0]), bytes(rooms[2])] == [data] * 2
        assert bytes(rooms[1]) == bytes(BLOCK)
        copies = [one for one in results[3:] if not isinstance(one, BaseException)]
        assert [data_of(one) for one in copies] == [data] * 2
        assert copies[0][0].data is not copies[1][0].data
        assert (await short)[0].status == "bad_length"

    moved = with_store(patient, work)
    assert [one.status for move in moved if not move.up for one in move.transfers] == [Status.DONE]


def test_who_fetches_for_others_may_go(patient: LocalConstellation, stopped: Stopped) -> None:
    name, data = key("goes"), os.urandom(BLOCK)

    async def work(store: AsyncStore) -> None:
        assert (await store.put([(name, data)]))[0].ok
        with stopped(patient, store.store.whereabouts.servers(0)[2]):
            gets = [asyncio.create_task(store.get([name])) for _ in range(3)]
            await asyncio.sleep(0.05)
            gets[0].cancel()
            await asyncio.wait([gets[0]])
            assert not gets[1].done()
        assert [data_of(one) for one in await asyncio.gather(*gets[1:])] == [data] * 2

    with_store(patient, work)


def test_who_waits_for_another_get_does_not_end_for_its_reasons(patient: LocalConstellation, stopped: Stopped) -> None:
    """The other one may have little time, or memory of another length for this block, while it waits for others of its own."""
    names, data = [key(("reasons", number)) for number in range(2)], os.urandom(BLOCK)

    async def work(store: AsyncStore) -> None:
        assert all(one.ok for one in await store.put([(name, data) for name in names]))
        with stopped(patient, store.store.whereabouts.servers(0)[2]):
            hurried = asyncio.create_task(store.get(names[:1], deadline_s=0.1))
            await asyncio.sleep(0)
            calm = asyncio.create_task(store.get(names[:1]))
            assert (await hurried)[0].status == Status.EXPIRED
            wrong = asyncio.create_task(store.get(names, into=[memoryview(bytearray(5)), memoryview(bytearray(BLOCK))]))
            await asyncio.sleep(0)
            right = asyncio.create_task(store.get(names))
            await asyncio.sleep(0)
        assert data_of(await calm) == data
        assert [one.status for one in await wrong] == ["bad_length", "done"]
        assert [bytes(one.data or b"") for one in await right] == [data] * 2

    with_store(patient, work)


def test_who_waits_for_another_get_keeps_its_deadline(patient: LocalConstellation, stopped: Stopped) -> None:
    name, data = key("keeps"), os.urandom(BLOCK)

    async def work(store: AsyncStore) -> None:
        assert (await store.put([(name, data)]))[0].ok
        with stopped(patient, store.store.whereabouts.servers(0)[2]):
            calm = asyncio.create_task(store.get([name]))
            await asyncio.sleep(0)
            assert (await store.get([name], deadline_s=0.01))[0].status == Status.EXPIRED
            assert not calm.done()
        assert data_of(await calm) == data

    with_store(patient, work)


def test_a_call_may_be_cancelled_while_its_memory_is_taken(full_sky: LocalConstellation) -> None:
    name, data = key("begins"), os.urandom(8_000_000)

    async def work(store: AsyncStore) -> None:
        assert (await store.put([(name, data)]))[0].ok
        for _ in range(3):
            call = asyncio.create_task(store.get([name]))
            await asyncio.sleep(0)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        assert data_of(await store.get([name])) == data

    with_store(full_sky, work)


def test_a_get_of_a_value_waits_for_no_other_one(patient: LocalConstellation, stopped: Stopped) -> None:
    """The other one may have begun before another host's put, whose end somebody has seen since."""

    async def work(store: AsyncStore) -> None:
        values = KeyValue(store.store)
        assert (await asyncio.to_thread(values.put, "name", b"first" * 10_000)).ok
        name = values.key_of("name")
        with stopped(patient, store.store.whereabouts.servers(0)[2]):
            gets = [asyncio.create_task(store.get([name])) for _ in range(2)]
            await asyncio.sleep(0.05)
        assert all(one[0].ok for one in await asyncio.gather(*gets))

    moved = with_store(patient, work)
    assert len([one for move in moved if not move.up for one in move.transfers]) == 2


def test_puts_of_one_block_go_one_after_the_other(full_sky: LocalConstellation) -> None:
    name, data = key("twice"), os.urandom(BLOCK)

    async def work(store: AsyncStore) -> None:
        results = await asyncio.gather(*(store.put([(name, data)]) for _ in range(5)))
        assert all(one.ok for [one] in results)

    moved = with_store(full_sky, work)
    ends = [(min(one.began_us for one in move.transfers), max(one.ended_us for one in move.transfers)) for move in moved]
    assert all(end <= begin for (_, end), (begin, _) in pairwise(ends))


def test_a_store_that_is_closed_ends_its_calls(patient: LocalConstellation, stopped: Stopped) -> None:
    name, data = key("closed"), os.urandom(BLOCK)

    async def work(store: AsyncStore) -> None:
        assert (await store.put([(name, data)]))[0].ok
        with stopped(patient):
            gets = [asyncio.create_task(store.get([name])) for _ in range(3)]
            await asyncio.sleep(0.05)
            await asyncio.to_thread(store.store.close)
            assert {one[0].status for one in await asyncio.gather(*gets)} == {Status.CANCELLED}
        with pytest.raises(ValueError, match="closed"):
            await store.get([name])

    with_store(patient, work)


def test_a_missed_block_is_told_before_its_rest_is_purged(patient: LocalConstellation, stopped: Stopped) -> None:
    """A put of the same block waits for that purge, which would take the new block as well."""
    name, data = key("rest"), os.urandom(BLOCK)

    async def work(store: AsyncStore) -> None:
        servers = store.store.whereabouts.servers(0)
        [put] = await store.put([(name, data)])
        assert put.entry is not None
        entry = put.entry
        await asyncio.to_thread(store.store.control.purge_at, [servers[0]], entry, 0)
        with stopped(patient, servers[3]):
            begun_s = time.monotonic()
            got = GetResult(name, None, Status.DONE, 0.0, entry=entry)
            store.store.forget([got])
            assert time.monotonic() - begun_s < SOON_S
            putting = asyncio.create_task(store.put([(name, data)]))
            await asyncio.sleep(0.05)
            assert not putting.done()
        assert (await putting)[0].ok
        assert data_of(await store.get([name])) == data

    with_store(patient, work)


def test_purges_of_many_blocks_hold_nobody_up(start_sky: StartSky, stopped: Stopped) -> None:
    """They ask a silent satellite, too, and only some run at a time: with patience it would take a quarter of a minute."""
    local, data = start_sky(), bytes(2000)
    names = [key(("many", number)) for number in range(2000)]

    async def work(store: AsyncStore) -> None:
        entries = [one.entry for one in await store.put([(name, data) for name in names])]
        with stopped(local, store.store.whereabouts.servers(0)[3]):
            begun_s = time.monotonic()
            store.store.steps.gets.give_up([(entry, Verdict.PURGE) for entry in entries if entry is not None])
            assert len(await store.put([(names[-1], data)])) == 1  # it waits for the purge of the block
            assert time.monotonic() - begun_s < 4 * SOON_S

    with_store(local, work)
