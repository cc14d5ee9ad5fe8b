"""Satellites that are lost while several hosts get and put: with parity nobody misses a block."""

import os
import signal
import time
from collections.abc import Callable
from hashlib import sha256

import pytest

from skymemory.bench.traffic import Traffic
from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.address import Satellite
from support.waiting import wait_until

StartSky = Callable[..., LocalConstellation]
CODED = {"servers": 12, "parity": 2, "deadline_ms": 20_000}
"""A deadline so long that a get which waits for it is seen."""
ROOM = {"store_mib": 64}
"""Room in stores for all that is put here."""
LEAST = 20
"""Least calls before, and after satellites are lost."""


def places_of(local: LocalConstellation) -> list[Satellite]:
    return Whereabouts(local.constellation).servers(0)


def stop(local: LocalConstellation, place: Satellite) -> None:
    os.kill(local.processes[place].pid, signal.SIGSTOP)


def check_traffic_goes_on(traffic: Traffic, lose: Callable[[], None]) -> None:
    """Check that no block is missed, and that gets are not slower for long, when satellites are lost."""
    start_s = time.perf_counter()
    wait_until(lambda: traffic.errors or traffic.gets >= LEAST)
    lost_s = time.perf_counter()
    lose()
    finding = traffic.gets
    wait_until(lambda: traffic.errors or (traffic.gets >= finding + 2 * LEAST and time.perf_counter() > lost_s + 2))
    found_s, found = time.perf_counter(), traffic.gets
    wait_until(lambda: traffic.errors or traffic.gets >= found + LEAST)
    traffic.stop()
    before, after = traffic.phase(start_s, lost_s), traffic.phase(found_s)
    print(f"get of 4 blocks: {before.median_ms:.1f} ms, then {after.median_ms:.1f} ms; {traffic.puts} puts")
    assert traffic.errors == []
    assert traffic.puts > 0
    assert [(one.misses, one.purges, one.put_failures) for one in traffic.stats()] == [(0, 0, 0)] * 2
    assert after.median_ms < 20 * before.median_ms  # the deadline is hundreds of times longer


@pytest.mark.parametrize("lose", [LocalConstellation.kill, stop])
def test_two_servers_of_twelve_under_load(start_sky: StartSky, lose: Callable[[LocalConstellation, Satellite], None]) -> None:
    local = start_sky(cache=CODED, satellite=ROOM)
    places = places_of(local)
    with Traffic(local.constellation) as traffic:
        check_traffic_goes_on(traffic, lambda: [lose(local, places[server]) for server in (3, 7)] and None)


def test_every_satellite_is_a_server(start_sky: StartSky) -> None:
    """Servers that answer hold what is put for those that were lost."""
    local = start_sky(constellation={"planes": 3, "slots": 4}, cache=CODED, satellite=ROOM)
    places = places_of(local)
    assert {*places} == {*local.processes}
    with Traffic(local.constellation) as traffic:
        check_traffic_goes_on(traffic, lambda: [local.kill(places[server]) for server in (0, 11)] and None)


def test_a_satellite_that_comes_back_empty(start_sky: StartSky) -> None:
    local = start_sky(cache=CODED, satellite=ROOM)
    places = places_of(local)

    def restart() -> None:
        for server in (2, 5):
            local.kill(places[server])
        for server in (2, 5):
            local.restart(places[server])

    with Traffic(local.constellation) as traffic:
        check_traffic_goes_on(traffic, restart)


def test_two_satellites_that_die_in_the_middle_of_a_get(start_sky: StartSky) -> None:
    """The links are so slow that the get runs for a while; its deadline is far longer."""
    local = start_sky(cache=CODED | {"deadline_ms": 60_000}, links={"rate_kbps": 20_000}, satellite=ROOM)
    places = places_of(local)
    items = [(sha256(f"{__name__} {index}".encode()).digest(), os.urandom(1_000_000)) for index in range(8)]
    with SkyStore(local.constellation) as store:
        assert all(one.ok for one in store.put(items))
        seen: list[int] = []

        def progress(done: int, total: int) -> None:
            if not seen and 0 < done < total // 2:
                seen.append(done)
                for server in (1, 8):
                    local.kill(places[server])

        start_s = time.monotonic()
        results = store.get([key for key, _ in items], progress)
        assert seen, "the get was over before anything could be killed"
        assert [one.data == data for one, (_, data) in zip(results, items, strict=True)] == [True] * len(items)
        assert store.stats().decoded > 0
        assert store.stats().purges == 0
        assert time.monotonic() - start_s < 30
