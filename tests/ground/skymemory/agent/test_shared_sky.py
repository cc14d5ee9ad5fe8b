"""The constellation as the agent's parts see it, over real satellites."""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from skymemory.agent.constellation_source import FixedSource, RunningSource
from skymemory.agent.shared_sky import LATELY_S, SharedSky
from skymemory.link.ask import Ask
from skymemory.sky.entry_satellites import Route
from skymemory.testbed.local import LocalConstellation
from skymemory.testbed.run_record import RunRecord
from skymemory.wire import icd
from support.agents import tell_up
from support.namespace import run_in_namespace
from support.spread import shares_of
from support.waiting import wait_until_async

StartSky = Callable[..., LocalConstellation]


def key(name: object) -> bytes:
    return sha256(f"{__name__} {name}".encode()).digest()


def with_sky(source: object, work: Callable[[SharedSky], Awaitable[None]], *, reachable: bool = True) -> None:
    async def run() -> None:
        sky = SharedSky(source, CollectorRegistry())  # type: ignore[arg-type]
        await sky.start()
        try:
            if reachable:
                await wait_until_async(lambda: sky.reachable)
            await work(sky)
        finally:
            await sky.close()

    asyncio.run(run())


def test_blocks_go_and_come_back(full_sky: LocalConstellation) -> None:
    async def work(sky: SharedSky) -> None:
        items = [(key(("round trip", number)), os.urandom(20_000)) for number in range(4)]
        keys = [one for one, _ in items]
        assert [one.status for one in await sky.put(items)] == ["done"] * 4
        assert [bytes(one.data or b"") for one in await sky.get(keys)] == [data for _, data in items]
        room = [memoryview(bytearray(20_000)) for _ in keys]
        results = await sky.get(keys, into=room)
        assert all(one.ok and one.data is None for one in results)
        assert room == [data for _, data in items]
        entries = [one.entry for one in await sky.find([*keys, key("nothing")])]
        assert [entry and entry.block_len for entry in entries] == [20_000] * 4 + [None]
        assert len(await sky.find_longest([*keys, key("nothing")], block_bytes=20_000)) == 4
        purged = await sky.purge(keys[:1])
        assert purged.confirmed
        assert purged.chunks == 4 + 2  # with parity
        assert (await sky.find(keys[:1]))[0].status == "miss"

    with_sky(FixedSource(full_sky.constellation), work)


def test_what_is_asked_together_is_answered_apart(full_sky: LocalConstellation) -> None:
    async def work(sky: SharedSky) -> None:
        keys = [[key(("together", who, number)) for number in range(3)] for who in range(20)]
        blocks = [[os.urandom(1000) for _ in one] for one in keys]
        puts = await asyncio.gather(*(sky.put(list(zip(*one, strict=True))) for one in zip(keys, blocks, strict=True)))
        assert [[one.key for one in results] for results in puts] == keys
        gets = await asyncio.gather(*map(sky.get, keys))
        assert [[one.data for one in results] for results in gets] == blocks

    with_sky(FixedSource(full_sky.constellation), work)


def test_an_answer_does_not_wait_for_what_is_learned_of_it(full_sky: LocalConstellation, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(sky: SharedSky) -> None:
        item = key("learned"), os.urandom(20_000)
        assert (await sky.put([item]))[0].ok
        learned: list[float] = []
        learn = sky.observer.estimator.learn

        def note(entries: object, served: object, duration_s: float) -> float | None:
            learned.append(duration_s)
            return learn(entries, served, duration_s)  # type: ignore[arg-type]

        monkeypatch.setattr(sky.observer.estimator, "learn", note)
        start_s = time.perf_counter()
        assert (await sky.get([item[0]]))[0].ok
        took_s = time.perf_counter() - start_s
        assert not learned
        await wait_until_async(lambda: learned)
        assert 0 < learned[0] <= took_s  # as who asked for it sees it

    with_sky(FixedSource(full_sky.constellation), work)


def test_what_nobody_has_learned_from_is_forgotten(full_sky: LocalConstellation, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(sky: SharedSky) -> None:
        item = key("lessons"), os.urandom(20_000)
        assert (await sky.put([item]))[0].ok
        learn = sky.observer.learn
        monkeypatch.setattr(sky.observer, "learn", lambda: False)  # there was no time
        for _ in range(20):
            assert (await sky.get([item[0]]))[0].ok
        left = 0
        while learn():
            left += 1
        assert 1 <= left <= 8

    with_sky(FixedSource(full_sky.constellation), work)


def test_a_block_that_several_store_at_once(full_sky: LocalConstellation) -> None:
    """Two engines with one prompt: both hear that it is there."""

    async def work(sky: SharedSky) -> None:
        same = key("same"), os.urandom(20_000)
        assert [one[0].status for one in await asyncio.gather(*(sky.put([same]) for _ in range(6)))] == ["done"] * 6
        assert (await sky.get([same[0]]))[0].data == same[1]

    with_sky(FixedSource(full_sky.constellation), work)


def test_what_does_not_fit_is_told_and_others_go_on(full_sky: LocalConstellation) -> None:
    async def work(sky: SharedSky) -> None:
        assert sky.store is not None
        huge = bytes(sky.store.capacity_bytes + 1)
        names = [key(("fit", number)) for number in range(3)]
        put = [sky.put([(names[0], huge)]), sky.put([(names[1], b"")]), sky.put([(names[2], b"good")])]
        assert [results[0].status for results in await asyncio.gather(*put)] == ["too_large", "bad_length", "done"]
        assert (await sky.get([names[2]], block_bytes_max=3))[0].status == "too_large"
        assert (await sky.get([names[2]], into=[memoryview(bytearray(5))]))[0].status == "bad_length"

    with_sky(FixedSource(full_sky.constellation), work)


@pytest.mark.parametrize(("method", "more"), [("get", {}), ("find", {}), ("find_longest", {"block_bytes": 1}), ("purge", {})])
def test_wrong_arguments_are_the_callers_alone(full_sky: LocalConstellation, method: str, more: dict[str, int]) -> None:
    async def work(sky: SharedSky) -> None:
        with pytest.raises(ValueError, match="key of 5 bytes; 32 are allowed"):
            await getattr(sky, method)([b"short"], **more)
        with pytest.raises(ValueError, match="key of 5 bytes"):
            await sky.put([(b"short", b"x")])
        with pytest.raises(ValueError, match="writable"):
            await sky.get([key(1)], into=[memoryview(b"read only")])
        assert await getattr(sky, method)([], **more) is not None

    with_sky(FixedSource(full_sky.constellation), work)


def test_without_a_constellation_all_is_a_miss(tmp_path: Path) -> None:
    async def work(sky: SharedSky) -> None:
        assert sky.store is None
        assert not sky.reachable
        assert "`skymem up` starts one" in (sky.unready or "")
        assert (await sky.get([key(1)]))[0].status == "unanswered"
        assert (await sky.put([(key(1), b"x")]))[0].status == "unanswered"
        assert (await sky.find([key(1)]))[0].status == "unanswered"
        assert await sky.find_longest([key(1)], block_bytes=1) == []
        assert not (await sky.purge([key(1)])).confirmed

    with_sky(RunningSource(RunRecord(tmp_path)), work, reachable=False)


def test_it_follows_the_record(tmp_path: Path, start_sky: StartSky) -> None:
    async def work(sky: SharedSky) -> None:
        for planes in (3, 4):
            local = start_sky(constellation={"planes": planes})
            tell_up(tmp_path, local)
            await wait_until_async(lambda planes=planes: sky.reachable and sky.store and sky.store.constellation.planes == planes)
            assert (await sky.put([(key("followed"), b"x")]))[0].ok
        (tmp_path / "constellation.json").write_text("{")
        await wait_until_async(lambda: "is damaged" in (sky.unready or ""))
        assert (await sky.get([key("followed")]))[0].status == "unanswered"

    with_sky(RunningSource(RunRecord(tmp_path)), work, reachable=False)


def test_a_put_does_not_hold_up_a_get(start_sky: StartSky, stopped: Callable[..., object]) -> None:
    """While a put waits for a satellite gets from another one come and go."""
    local = start_sky(cache={"deadline_ms": 60_000})

    async def work(sky: SharedSky) -> None:
        assert sky.store is not None
        small, large = key("small"), key("large")
        assert (await sky.put([(small, b"x" * 1000)]))[0].ok  # one chunk, on another server
        with stopped(local, sky.store.whereabouts.servers(0)[5]):  # type: ignore[attr-defined]
            putting = asyncio.create_task(sky.put([(large, os.urandom(100_000))]))
            await asyncio.sleep(0)
            assert (await sky.get([small]))[0].ok
            assert not putting.done()
        assert (await putting)[0].ok

    with_sky(FixedSource(local.constellation), work)


def test_each_of_several_gets_is_answered_as_soon_as_its_blocks_are_there(
    start_sky: StartSky, stopped: Callable[..., AbstractContextManager[None]]
) -> None:
    """Two gets wait for a third one, and go into one call. One of the two needs a satellite that says nothing."""
    local = start_sky(cache={"deadline_ms": 60_000, "parity": 0})

    async def work(sky: SharedSky) -> None:
        assert sky.store is not None
        chunks = [6, 1, 9]
        items = [(key(("as soon", number)), os.urandom(6000 * number)) for number in chunks]
        first, second, third = (
            shares_of(local.constellation, name, len(data))[:number] for number, (name, data) in zip(chunks, items, strict=True)
        )
        one_of_first = next(place for place in first if place not in second)
        one_of_third = next(place for place in third if place not in (*first, *second))
        assert all(one.ok for one in await sky.put(items))
        memory = [bytearray(len(data)) for _, data in items]
        views = [memoryview(one) for one in memory]
        with stopped(local, one_of_third):
            with stopped(local, one_of_first):
                gets = [asyncio.create_task(sky.get([name], into=[view])) for (name, _), view in zip(items, views, strict=True)]
                await asyncio.sleep(0)
            assert [one.status for one in [*await gets[0], *await gets[1]]] == ["done"] * 2
            assert memory[1] == items[1][1]
            views[1].release()  # nobody uses it any more
            assert not gets[2].done()
        assert [one.status for one in await gets[2]] == ["done"]
        assert memory == [data for _, data in items]

    with_sky(FixedSource(local.constellation), work)


def test_gets_whose_store_is_closed(start_sky: StartSky, stopped: Callable[..., AbstractContextManager[None]]) -> None:
    local = start_sky(cache={"deadline_ms": 600_000, "parity": 0})

    async def work(sky: SharedSky) -> None:
        assert sky.store is not None
        places = sky.store.whereabouts.servers(0)
        items = [(key(("closed", number)), os.urandom(60_000)) for number in range(4)]
        assert all(one.ok for one in await sky.put(items))
        with stopped(local, places[5]):
            gets = [asyncio.create_task(sky.get([name])) for name, _ in items]
            await asyncio.sleep(0)
            sky.store.close()
            statuses = [one.status for answer in [await get for get in gets] for one in answer]
        assert {*statuses} <= {"cancelled", "unanswered"}

    with_sky(FixedSource(local.constellation), work)


def test_a_very_long_block_does_not_hold_up_gets(start_sky: StartSky) -> None:
    """Gets come and go while a very long block is under way."""
    local = start_sky(satellite={"store_mib": 48}, cache={"deadline_ms": 60_000})

    async def work(sky: SharedSky) -> None:
        small, large = key("beside"), key("very long")
        assert (await sky.put([(small, os.urandom(100_000))]))[0].ok
        assert (await sky.put([(large, bytes(272 << 20))]))[0].ok
        order = []

        async def fetch_large() -> None:
            result = (await sky.get([large], block_bytes_max=512 << 20))[0]
            order.append("large")
            assert result.ok

        fetching = asyncio.create_task(fetch_large())
        while not fetching.done():
            assert (await sky.get([small]))[0].ok
            order.append("small")
        await fetching
        assert order.count("small") >= 10
        assert order.index("large") >= 10

    with_sky(FixedSource(local.constellation), work)


def test_silence_ends_as_soon_as_somebody_answers(
    start_sky: StartSky, stopped: Callable[..., object], caplog: pytest.LogCaptureFixture
) -> None:
    """The store alone would not ask for a while; the agent asks on."""
    local = start_sky(cache={"deadline_ms": 1500})

    async def work(sky: SharedSky) -> None:
        assert (await sky.put([(key("silence"), b"x")]))[0].ok
        with stopped(local):  # type: ignore[attr-defined]
            for _ in range(4):
                assert not (await sky.get([key("silence")]))[0].ok
            assert sky.store is not None
            await wait_until_async(lambda: not sky.reachable)
            assert sky.unready == "no satellite of the constellation answers"
        await wait_until_async(lambda: sky.reachable)
        assert not sky.store.silent
        assert (await sky.get([key("silence")]))[0].ok

    with caplog.at_level(logging.CRITICAL):
        with_sky(FixedSource(local.constellation), work)


def test_closing_cancels_what_takes_too_long(start_sky: StartSky, stopped: Callable[..., object]) -> None:
    local = start_sky(cache={"deadline_ms": 3_600_000})

    async def run() -> None:
        sky = SharedSky(FixedSource(local.constellation), CollectorRegistry())
        await sky.start()
        await wait_until_async(lambda: sky.reachable)
        with stopped(local):  # type: ignore[attr-defined]
            putting = asyncio.create_task(sky.put([(key("long"), bytes(100_000))]))
            await asyncio.sleep(0.1)
            await sky.close(grace_s=0.1)
            assert (await putting)[0].status in ("cancelled", "unanswered")
        assert (await sky.get([key("long")]))[0].status == "unanswered"

    asyncio.run(run())


NETWORK_GOES = """
import asyncio, os
from ipaddress import IPv4Address
from prometheus_client import CollectorRegistry
from skymemory.agent.constellation_source import FixedSource
from skymemory.agent.shared_sky import LATELY_S, SharedSky
from skymemory.link.ask import Ask
from skymemory.sky.entry_satellites import Route
from skymemory.sky.constellation import Constellation

sky = Constellation.model_validate({"network": {"network": "10.77.0.0/16"}})
here = int(IPv4Address("10.1.0.1"))

class Source(FixedSource):
    looks = 0

    def changed(self):
        self.looks += 1
        return super().changed()

async def until(holds):
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.05)

async def main():
    source = Source(sky, secret=lambda _: bytes(32))
    shared = SharedSky(source, CollectorRegistry())

    async def some_looks():
        end = source.looks + 3
        await until(lambda: source.looks >= end)

    await shared.start()
    await until(lambda: shared.store is not None)
    assert shared.store.control.local == 0
    os.system("ip addr add 10.1.0.1/32 dev lo; ip route add local 10.77.0.0/16 dev lo src 10.1.0.1")
    await until(lambda: shared.store.control.local == here)
    store = shared.store
    os.system("ip route del local 10.77.0.0/16 dev lo")
    await some_looks()
    assert shared.store is store
    os.system("ip route add local 10.77.0.0/16 dev lo src 10.1.0.1")
    await some_looks()
    assert shared.store is store
    await shared.close()
    print("done")

asyncio.run(main())
"""


def test_what_is_known_stays_while_no_way_leads_to_the_sky(tmp_path: Path) -> None:
    assert run_in_namespace(NETWORK_GOES, tmp_path) == "done\n"


def test_what_is_not_asked_for_lack_of_room_is_no_silence(
    start_sky: StartSky, stopped: Callable[..., AbstractContextManager[None]], caplog: pytest.LogCaptureFixture
) -> None:
    """The probe has no turn while this host asks too much; blocks go all the same."""
    local = start_sky()

    async def work(sky: SharedSky) -> None:
        store = sky.store
        assert store is not None
        silent = store.whereabouts.servers(0)[-1]
        asks = [Ask(Route(silent, silent), icd.OP_PING)] * 4096
        with stopped(local, silent):
            crowd = [asyncio.create_task(asyncio.to_thread(store.control.exchange, asks, 2 * LATELY_S)) for _ in range(3)]
            end_s = time.monotonic() + 1.5 * LATELY_S
            while time.monotonic() < end_s:
                assert sky.unready is None
                await asyncio.sleep(0.1)
        await asyncio.gather(*crowd, return_exceptions=True)

    with_sky(FixedSource(local.constellation), work)
    assert not [one.message for one in caplog.records if one.levelno >= logging.ERROR]
