"""Making way for other blocks, and what is purged for being absent; on real satellites."""

import hashlib
import logging
import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from secrets import token_bytes

import pytest

from skymemory.link.control import Purged
from skymemory.link.timing import Timing
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.sky.placement.layouts import nearest
from skymemory.sky.placement.track import Track
from skymemory.sky.whereabouts import Playing, Whereabouts
from skymemory.store.sky_store import SkyStore
from skymemory.testbed import replay
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.address import Satellite
from support.evictions import evict
from support.satellites import held, requests
from support.settled import are_settled, wait_until_settled
from support.spread import shares_of
from support.waiting import PATIENT, wait_until

StartSky = Callable[..., LocalConstellation]
Stopped = Callable[..., AbstractContextManager[None]]


def key(name: str) -> bytes:
    return hashlib.sha256(f"clearing {name}".encode()).digest()


def servers(sky: Constellation) -> list[Route]:
    return [Route(one, one) for one in Whereabouts(sky).servers(0)]


@pytest.mark.parametrize("length", [1, 6000, 6001, 60_001])
def test_nothing_is_left_of_a_block(full_sky: LocalConstellation, length: int) -> None:
    sky, name = full_sky.constellation, key(f"length {length}")
    with SkyStore(sky) as store, SkyStore(sky) as other:
        store.put([(name, bytes(length))])
        (purged,) = other.make_way([name])  # which has never heard of it
        assert purged.confirmed
        assert purged.chunks > 0
        assert set(held(other.control, servers(sky), name)) == {None}
        assert other.make_way([name]) == [Purged(0, True)]
        assert other.put([(name, b"another")])[0].ok
        assert store.get([name])[0].data == b"another"


def test_only_who_is_asked_in_lookups_is_asked_about_a_new_or_a_small_block(full_sky: LocalConstellation) -> None:
    sky = full_sky.constellation.replace(cache={"servers": 10, "parity": 0})
    with SkyStore(sky) as store:
        store.put([(key("small"), b"small"), (key("large"), bytes(60_001))])
        before = requests(store.control, servers(sky))
        assert all(one.confirmed for one in store.make_way([key("new"), key("small")]))
        small = requests(store.control, servers(sky))
        assert store.make_way([key("large"), key("new")])[0].confirmed
        large = requests(store.control, servers(sky))
        stats = len(servers(sky))  # a question for each of these counts
        assert (small - before - stats, large - small - stats) == (2, 2 + 10)


def test_what_is_left_without_its_first_share_is_found_by_the_put(full_sky: LocalConstellation) -> None:
    sky, name = full_sky.constellation.replace(cache={"servers": 10, "parity": 0}), key("left")
    with SkyStore(sky) as store:
        store.put([(name, bytes(60_001))])
        first = shares_of(sky, name)[0]
        evict(store.control, [Route(first, first)], [name])
        assert store.make_way([name]) == [Purged(0, True)]
        assert store.put([(name, b"x" * 60_001)])[0].status == "bad_key"
        assert store.purge([name]).confirmed
        assert store.put([(name, b"x" * 60_001)])[0].ok


def test_who_is_asked_in_lookups_knows_nothing_of_the_old_block(start_sky: StartSky) -> None:
    sky = start_sky(cache={"layout": "rotation"}).constellation  # the first server is the window's corner
    with SkyStore(sky) as store, SkyStore(sky) as other:
        store.put([(key("corner"), bytes(60_001))])
        first = shares_of(sky, key("corner"))[0]
        evict(store.control, [Route(first, first)], [key("corner")])
        assert store.make_way([key("corner")])[0].confirmed
        assert store.put([(key("corner"), b"another")])[0].ok
        assert other.get([key("corner")])[0].data == b"another"


def test_a_first_server_that_is_silent_has_a_stand_in(start_sky: StartSky, stopped: Stopped) -> None:
    local = start_sky(cache={"deadline_ms": 2000})
    sky = local.constellation
    with SkyStore(sky) as store:
        assert store.put([(key("stopped"), bytes(60_001))])[0].ok
        with stopped(local, shares_of(sky, key("stopped"))[0]):
            assert store.make_way([key("stopped")])[0].confirmed
            assert store.put([(key("stopped"), b"another")])[0].ok
            assert store.get([key("stopped")])[0].data == b"another"
        with stopped(local):
            assert not store.put([(key("stopped"), b"a third")])[0].ok
            assert store.make_way([key("stopped")]) == [Purged(0, False)]  # nobody is asked
            assert store.purge([key("stopped")]) == Purged(0, False)


def test_a_satellite_that_is_not_settled_denies_nothing_for_sure(start_sky: StartSky) -> None:
    """One that starts anew does not know what others have for it, until all who stand in first have told."""
    local = start_sky(cache={"parity": 0})
    sky = local.constellation
    around = nearest(sky.cache.centre, sky.planes * sky.slots, sky.torus)
    spare = next(one for one in around if Route(one, one) not in servers(sky))
    with SkyStore(local.constellation, timing=Timing(lost_s=0.1)) as store:  # who was asked in vain is asked again soon
        name, data = key("on its way"), os.urandom(100_000)
        (put,) = store.put([(name, data)])
        assert put.entry is not None
        anew = shares_of(local.constellation, name, len(data))[-1]  # a look-up asks for the first one
        local.kill(spare)
        local.kill(anew)
        local.restart(anew)
        assert not are_settled(store, [Route(anew, anew)])
        wait_until(lambda: store.still_there([[put.entry]]) == [[]])  # a check does not wait for the spare, a search goes on
        assert store.get([put.entry])[0].status == "miss"
        assert store.stats().purges == 0
        local.restart(spare)
        wait_until_settled(store)
        wait_until(lambda: store.get([put.entry])[0].status == "miss" and store.stats().purges > 0, store.stats)
        assert evict(store.control, servers(local.constellation), [name]) == Purged(0, True)


def test_a_host_that_was_not_told_of_the_schedule_purges_nothing(start_sky: StartSky, caplog: pytest.LogCaptureFixture) -> None:
    local = start_sky(cache={"servers": 4, "handover_s": 0.5})
    everybody = [Route(one, one) for one in local.constellation.torus.satellites()]
    items = {token_bytes(32): os.urandom(40_000) for _ in range(8)}
    track = Track.of(local.constellation.torus, [(0, Satellite(2, 3)), (1500, Satellite(2, 5)), (10**7, Satellite(2, 1))])
    playing = Playing(track, time.time())
    with (
        SkyStore(local.constellation, playing=playing, timing=PATIENT) as store,
        SkyStore(local.constellation, timing=PATIENT) as stranger,
    ):
        assert all(result.ok for result in store.put(list(items.items())))
        replay.upload(store.control, playing)

        def is_handed_over() -> bool:
            stats = store.control.store_stats(everybody, 10)
            return len(stats) == len(everybody) and all(one["row"] == 2 and not one["handover_left"] for one in stats.values())

        wait_until(is_handed_over, pause_s=0.1)
        time.sleep(0.5)  # `handover_s`: nobody asks at the old places any more
        with caplog.at_level(logging.WARNING):
            missed = [result for result in stranger.get(list(items)) if not result.ok]
            entries = [entry for key in items if (entry := store.find([key])[0].entry) is not None]
            missed += [result for result in stranger.get(entries) if not result.ok]
        assert missed  # else this would test nothing
        assert stranger.stats().purges == 0
        assert [record.message for record in caplog.records if "schedule that this host does not know" in record.message]
        assert [result.data for result in store.get(list(items))] == list(items.values())
