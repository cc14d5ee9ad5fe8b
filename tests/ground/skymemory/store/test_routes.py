"""Silence: of one satellite, of all, of this host. Satellites are stopped and go on; nobody's blocks suffer for it."""

import logging
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path

import pytest

from skymemory.link.timing import Timing
from skymemory.sky.entry_satellites import server_routes
from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from support.spread import shares_of
from support.waiting import wait_until

StartSky = Callable[..., LocalConstellation]
Stopped = Callable[..., AbstractContextManager[None]]
KEYS = [sha256(f"{__name__} {index}".encode()).digest() for index in range(6)]
BLOCK = os.urandom(100_000)


@pytest.fixture
def start_sky(start_sky: StartSky) -> StartSky:
    """Start skies without parity: one lost chunk breaks a block, which is what the tests of this file are about."""

    def start(logs: Path | None = None, **sections: dict[str, object]) -> LocalConstellation:
        return start_sky(logs, **{**sections, "cache": {"parity": 0, **sections.get("cache", {})}})

    return start


def put_all(store: SkyStore) -> None:
    assert all(result.ok for result in store.put([(key, BLOCK) for key in KEYS]))


def statuses(store: SkyStore) -> set[str]:
    return {result.status for result in store.get(KEYS)}


def test_an_impatient_host_spoils_nothing(start_sky: StartSky) -> None:
    sky = start_sky(links={"delay_us": 20_000}).constellation
    hasty = sky.replace(cache={"deadline_ms": 5})
    with SkyStore(sky) as store, SkyStore(hasty) as impatient:
        put_all(store)
        entries = store.find_longest(KEYS).entries
        assert {result.status for result in impatient.get(entries)} == {"expired"}
        assert (impatient.stats().purges, impatient.stats().satellites_lost) == (0, 0)
        assert statuses(store) == {"done"}


def test_a_slow_satellite_is_not_lost(start_sky: StartSky) -> None:
    timing = Timing(first_s=0.5, max_s=4.0)  # shorter than the way, but three of them longer by far
    sky = start_sky(links={"delay_us": 350_000}, cache={"deadline_ms": 100}).constellation
    with SkyStore(sky, timing=timing) as store:
        for _ in range(2):
            assert store.find_longest(KEYS).entries == []
            assert (store.silent, store.stats().satellites_lost) == (False, 0)
        assert store.stats().unanswered == 2


def test_a_host_that_thinks_a_satellite_lost_leaves_the_blocks_of_others(start_sky: StartSky, stopped: Stopped) -> None:
    local = start_sky(cache={"deadline_ms": 2000})
    sky = local.constellation
    with SkyStore(sky) as store, SkyStore(sky) as other:
        put_all(store)
        entries = store.find_longest(KEYS).entries
        with stopped(local, Whereabouts(sky).servers(0)[4]):
            assert {result.status for result in other.get(entries)} == {"miss"}
        assert (other.stats().purges, other.stats().satellites_lost) == (0, 1)
        assert statuses(store) == {"done"}
        assert other.find_longest(KEYS).entries == []  # for this host they are not whole
        put_all(other)  # where others stand in, which hand over as the satellite is back
        wait_until(lambda: statuses(other) == {"done"})
        assert statuses(store) == {"done"}


def test_a_host_that_did_not_see_the_loss_looks_where_the_others_put(start_sky: StartSky) -> None:
    local = start_sky(cache={"deadline_ms": 2000})
    sky = local.constellation
    with SkyStore(sky) as store, SkyStore(sky) as other:
        local.kill(Whereabouts(sky).servers(0)[4])
        put_all(store)  # at the second try, by itself
        wait_until(lambda: store.stats().satellites_lost == 1, "it is found lost")
        assert statuses(other) == {"done"}


def test_who_stands_in_may_be_lost_too(start_sky: StartSky) -> None:
    """One look around is enough, and two hosts that look find the same places."""
    local = start_sky(cache={"deadline_ms": 2000})
    sky = local.constellation
    with SkyStore(sky) as store, SkyStore(sky) as other:
        lost = set(Whereabouts(sky).servers(0)[3:5])
        for satellite in lost:
            local.kill(satellite)
        for satellite in set(Whereabouts(sky).servers(0, lost)) - set(Whereabouts(sky).servers(0)):
            local.kill(satellite)
        put_all(store)
        assert statuses(other) == {"done"}
        assert (store.stats().satellites_lost, other.stats().satellites_lost) == (4, 4)


def test_with_nobody_free_servers_stand_in_for_others(start_sky: StartSky) -> None:
    local = start_sky(cache={"servers": 15, "deadline_ms": 2000})
    with SkyStore(local.constellation) as store, SkyStore(local.constellation) as other:
        for satellite in Whereabouts(local.constellation).servers(0)[4:6]:
            local.kill(satellite)
        assert [result.status for result in store.put([(KEYS[0], BLOCK)])] == ["done"]
        assert [result.data for result in other.get([KEYS[0]])] == [BLOCK]
        wait_until(lambda: store.stats().satellites_lost == 2, "they are found lost")
        assert not store.silent


def test_a_miss_where_another_stands_in_is_no_miss_if_the_satellite_is_back(start_sky: StartSky, stopped: Stopped) -> None:
    local = start_sky(cache={"deadline_ms": 2000})
    sky = local.constellation
    with SkyStore(sky) as store, SkyStore(sky, timing=Timing(doubt_s=0.0)) as other:
        asked = {shares_of(sky, key, len(BLOCK))[0] for key in KEYS}  # by a look-up
        with stopped(local, next(one for one in Whereabouts(sky).servers(0) if one not in asked)):
            assert other.put([(bytes(32), BLOCK)])[0].ok
        put_all(store)  # where they belong
        assert statuses(other) == {"done"}  # and not where the other one thinks that they are
        assert other.stats().purges == 0


def test_satellites_come_back_though_the_way_to_them_does_not(start_sky: StartSky) -> None:
    """What lies behind the way is silent until its neighbours have noticed."""
    local = start_sky(satellite={"hello_s": 1}, cache={"servers": 5, "uplink": "nearest", "deadline_ms": 2000})
    sky = local.constellation
    with SkyStore(sky, timing=Timing(lost_s=0.1)) as store:
        local.kill(sky.cache.centre)

        def only_the_centre_is_lost() -> bool:
            [put] = store.put([(KEYS[0], BLOCK)])
            return put.ok and store.lost == {sky.cache.centre}

        wait_until(only_the_centre_is_lost)


def test_closing_in_the_middle_spoils_nothing(start_sky: StartSky, stopped: Stopped) -> None:
    local = start_sky(cache={"deadline_ms": 60_000})
    sky = local.constellation
    with SkyStore(sky) as store, SkyStore(sky) as other:
        put_all(store)
        entries = store.find_longest(KEYS).entries
        seen: list[str] = []
        begun = threading.Event()
        with stopped(local, Whereabouts(sky).servers(0)[4]):
            get = threading.Thread(
                target=lambda: seen.extend(result.status for result in other.get(entries, lambda *_: begun.set()))
            )
            get.start()
            assert begun.wait(60)
            other.close()
            get.join()
        assert set(seen) == {"cancelled"}
        assert other.stats().purges == 0
        assert statuses(store) == {"done"}


def test_an_outage_of_the_ground_loses_no_satellite(
    start_sky: StartSky, caplog: pytest.LogCaptureFixture, stopped: Stopped
) -> None:
    timing = Timing(pause_first_s=3600.0)  # nobody is asked again by itself
    local = start_sky(cache={"deadline_ms": 2000})
    with SkyStore(local.constellation, timing=timing) as store, caplog.at_level(logging.INFO, "skymemory"):
        put_all(store)
        with stopped(local):
            assert statuses(store) <= {"expired", "unanswered"}
            assert store.silent
            before = store.stats()
            for _ in range(50):
                assert statuses(store) == {"unanswered"}
                assert store.put([(bytes(32), b"x")])[0].status == "unanswered"
                assert store.find([bytes(32)])[0].entry is None
                assert len(store.find_longest([*KEYS, bytes(32)]).entries) == len(KEYS)
            after = store.stats()
        assert (after.questions, after.retries, after.purges) == (before.questions, before.retries, 0)
        assert after.unanswered - before.unanswered == 100
        assert (after.satellites_lost, after.misses) == (0, 51 * len(KEYS))
        assert [record.message.partition(":")[0] for record in caplog.records] == ["no satellite answers"]


def test_after_an_outage_all_is_as_before(start_sky: StartSky, caplog: pytest.LogCaptureFixture, stopped: Stopped) -> None:
    timing = Timing(pause_first_s=0.05, pause_max_s=0.1)
    local = start_sky(cache={"deadline_ms": 2000})
    with SkyStore(local.constellation, timing=timing) as store, caplog.at_level(logging.INFO, "skymemory"):
        put_all(store)
        number = store.control.host
        with stopped(local):
            assert statuses(store) <= {"expired", "unanswered"}
            assert store.control.host != number  # another host may have had it
            assert statuses(store) == {"unanswered"}

        def answers() -> bool:
            found = statuses(store)
            assert found <= {"done", "unanswered"}  # one block asks whether somebody answers, for all
            return found == {"done"}

        wait_until(answers)
        assert not store.silent
        assert store.stats().satellites_lost == 0
        assert [record.message for record in caplog.records][1:] == ["satellites answer again"]


def test_nobody_asks_a_silent_sky(start_sky: StartSky, stopped: Stopped) -> None:
    local = start_sky(cache={"deadline_ms": 300})
    with SkyStore(local.constellation, timing=Timing(pause_first_s=3600.0)) as store, stopped(local):
        store.find_longest(KEYS)
        threads = [threading.Thread(target=store.find_longest, args=(KEYS,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert store.stats().questions == 1
        assert store.stats().unanswered == 9


def test_one_server_alone_can_be_lost(start_sky: StartSky) -> None:
    """Other satellites tell that it is the server and not this host."""
    local = start_sky(cache={"servers": 1, "parity": 0, "deadline_ms": 2000})
    sky = local.constellation
    with SkyStore(sky) as store:
        local.kill(sky.cache.centre)
        put_all(store)
        wait_until(lambda: store.stats().satellites_lost == 1, "it is found lost")
        assert not store.silent
        assert statuses(store) == {"done"}


def test_two_hosts_with_one_number_find_their_own(full_sky: LocalConstellation) -> None:
    sky = full_sky.constellation.replace(cache={"uplink": "nearest"})  # answers that cross links are sent on by number
    routes = server_routes(Whereabouts(sky), 0)
    with SkyStore(sky) as store, SkyStore(sky) as other:
        assert len(store.control.ping(routes, 10)) == len(routes)
        other.control.host = store.control.host
        assert len(other.control.ping(routes, 10)) == len(routes)
        assert other.control.host != store.control.host
        assert len(store.control.ping(routes, 10)) == len(routes)
