"""Estimates against what happens: real satellites, over links that are emulated or ideal."""

import asyncio
import random
import statistics
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import pytest
import redis
from prometheus_client import CollectorRegistry

from skymemory.agent.constellation_source import FixedSource
from skymemory.agent.shared_sky import SharedSky
from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess
from support.waiting import wait_until, wait_until_async

StartSky = Callable[..., LocalConstellation]
WARM_UP = 5
GETS = 45
ROUNDS = 8


@asynccontextmanager
async def sky_of(local: LocalConstellation) -> AsyncIterator[SharedSky]:
    sky = SharedSky(FixedSource(local.constellation), CollectorRegistry())
    await sky.start()
    try:
        await wait_until_async(lambda: sky.reachable)
        yield sky
    finally:
        await sky.close()


async def stored(sky: SharedSky, rng: random.Random, largest: float) -> list[bytes]:
    """Keys of some blocks of one size."""
    size = int(10 ** rng.uniform(4, largest))
    items = [(rng.randbytes(32), rng.randbytes(size)) for _ in range(rng.choice([1, 1, 2, 4, 8, 16]))]
    assert all(result.ok for result in await sky.put(items))
    return [key for key, _ in items]


async def get(sky: SharedSky, keys: list[bytes]) -> float:
    """Seconds that it took."""
    start_s = time.perf_counter()
    assert all(result.ok for result in await sky.get(keys))
    return time.perf_counter() - start_s


def expected_s(sky: SharedSky, keys: list[bytes]) -> float | None:
    assert sky.store is not None
    entries = [entry for key in keys if (entry := sky.store.index.get(key)) is not None]
    return sky.observer.estimator.worth("unknown", entries, 0, 16).fetch_s


async def median_errors(sky: SharedSky, rng: random.Random, largest: float, gets: int) -> tuple[float, float]:
    """How far estimates, made before the get, are off, and how far the same get is from itself when it is made again soon."""
    off, apart = [], []
    before: tuple[list[bytes], float] | None = None
    for _ in range(gets):
        keys = await stored(sky, rng, largest)
        estimate_s = expected_s(sky, keys)
        duration_s = await get(sky, keys)
        if estimate_s is not None:
            off.append(abs(estimate_s / duration_s - 1))
        if before is not None:
            apart.append(abs(await get(sky, before[0]) / before[1] - 1))
        before = keys, duration_s
    return statistics.median(off), statistics.median(apart)


@pytest.mark.parametrize(
    ("links", "uplink", "largest"),
    [
        pytest.param({}, "window", 6.4, id="ideal"),
        pytest.param({"model": "geometry"}, "window", 6.4, id="geometry"),
        pytest.param({"model": "geometry", "rate_kbps": 100_000}, "window", 6.2, id="100 Mbit/s each"),
        pytest.param({"model": "geometry", "rate_kbps": 200_000}, "nearest", 5.5, id="200 Mbit/s in all"),
        pytest.param({"model": "geometry", "rate_kbps": 100_000, "jitter_us": 500}, "window", 6.2, id="jitter"),
        pytest.param(
            {"model": "geometry", "rate_kbps": 100_000, "jitter_us": 300, "loss_ppm": 5000}, "window", 6.2, id="0.5 % lost"
        ),
    ],
)
def test_estimates_are_within_a_fifth_of_what_happens_in_the_median(
    start_sky: StartSky, links: dict[str, object], uplink: str, largest: float
) -> None:
    """Held on any machine: in one of a few rounds at the latest, a fifth, or a quarter more than a get is from itself.

    Over emulated links, and on a machine that does nothing else, it is a fifth in the first round. Over ideal links gets take
    0.5 ms, and nothing but the machine takes time: where other processes decide how long, the same get takes twice as long, or
    half, a moment later, and nobody can foresee more than that.
    """
    local = start_sky(
        constellation={"planes": 5, "slots": 19}, cache={"servers": 10, "centre": [3, 10], "uplink": uplink}, links=links
    )

    async def holds() -> bool:
        rng = random.Random(4)
        async with sky_of(local) as sky:
            await median_errors(sky, rng, largest, WARM_UP)
            for _ in range(ROUNDS):
                off, apart = await median_errors(sky, rng, largest, GETS)
                print(f"median of |estimate / actual - 1| is {off:.3f}, of a get and itself {apart:.3f}")
                if off <= max(0.2, 1.25 * apart):
                    return True
        return False

    assert asyncio.run(holds())


def test_an_engine_is_told_how_long_it_will_take(start_sky: StartSky, start_agent: Callable[..., AgentProcess]) -> None:
    """As above: in one of a few rounds at the latest, a fifth, or a quarter more than a get is from itself."""
    local = start_sky(links={"model": "geometry", "rate_kbps": 50_000})
    agent = start_agent(local)
    rng, size = random.Random(6), 200_000
    with agent.client(block_bytes=size) as client:
        assert client.wait_connected(60)

        def get_twice() -> tuple[float | None, float, float]:
            """Of a get: the seconds that the engine is told, those that it takes, and those that it takes once more."""
            keys = [rng.randbytes(32) for _ in range(rng.choice([1, 3, 8, 20]))]
            leases = [lease for _ in keys if (lease := client.lease(size)) is not None]
            blocks = list(zip(keys, leases, strict=True))
            assert all(outcome.ok for outcome in client.put(blocks).result(60))
            told_s, took_s = client.find(keys).result(60).fetch_s, []
            for _ in range(2):
                start_s = time.perf_counter()
                assert all(outcome.ok for outcome in client.get(blocks).result(60))
                took_s.append(time.perf_counter() - start_s)
            for lease in leases:
                lease.release()
            return told_s, took_s[0], took_s[1]

        def holds() -> bool:
            off, apart = [], []
            for _ in range(15):
                told_s, took_s, again_s = get_twice()
                assert told_s is not None
                off.append(abs(told_s / took_s - 1))
                apart.append(abs(again_s / took_s - 1))
            wrong, unsteady = statistics.median(off), statistics.median(apart)
            print(f"median of |estimate / actual - 1| is {wrong:.3f}, of a get and itself {unsteady:.3f}")
            return wrong <= max(0.2, 1.25 * unsteady)

        for _ in range(WARM_UP):
            get_twice()
        assert any(holds() for _ in range(ROUNDS))


def test_small_gets_of_redis_clients_leave_the_estimate_of_a_prompt_as_it_is(
    start_sky: StartSky, start_agent: Callable[..., AgentProcess]
) -> None:
    agent = start_agent(start_sky(), "--resp-port", "0")
    rng, size = random.Random(7), 2_900_000
    with agent.client(block_bytes=size, arena_bytes=17 * size) as client:
        assert client.wait_connected(60)
        keys = [rng.randbytes(32) for _ in range(16)]
        blocks = [(key, lease) for key in keys if (lease := client.lease(size)) is not None]
        assert all(outcome.ok for outcome in client.put(blocks).result(60))

        def told_s() -> float:
            told = client.find(keys).result(60)
            assert told.fetch_s is not None
            return told.fetch_s

        for _ in range(10):
            assert all(outcome.ok for outcome in client.get(blocks).result(60))
        wait_until(lambda: client.find(keys).result(60).fetch_s is not None)
        before_s = told_s()

        def small_gets(gets: int) -> None:
            with redis.Redis.from_url(agent.addresses["redis"]) as values:
                values.set("small", "value")
                for _ in range(gets):
                    assert values.get("small") == b"value"

        with ThreadPoolExecutor(4) as threads:
            running = [threads.submit(small_gets, 150) for _ in range(4)]
            while not all(one.done() for one in running):
                assert told_s() > before_s / 2
            for one in running:
                one.result()
        assert before_s / 2 < told_s() < 2 * before_s
