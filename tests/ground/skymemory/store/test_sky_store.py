"""`SkyStore` on real satellites: round trips, loss, lost satellites, evictions, uplinks."""

import os
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from hashlib import sha256
from itertools import count

import pytest

from skymemory.link.control import ControlPlane
from skymemory.link.timing import Timing
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import Packet
from support import flight_core as core
from support.evictions import evict
from support.openings import ask_cookie
from support.settled import wait_until_settled
from support.spread import shares_of
from support.waiting import PATIENCE_S, wait_until

StartSky = Callable[..., LocalConstellation]
SIZES = [1, 2, 5999, 6000, 6001, 54_000, 54_001, 1_000_003]


def key(name: object) -> bytes:
    return sha256(f"{__name__} {name}".encode()).digest()


def chain(length: int, name: str = "") -> list[bytes]:
    return [key(f"{name} {index}") for index in range(length)]


def blocks(sizes: list[int] = SIZES, name: str = "") -> dict[bytes, bytes]:
    return {key(f"{name} {index}"): os.urandom(size) for index, size in enumerate(sizes)}


def all_routes(sky: Constellation) -> list[Route]:
    return [Route(satellite, satellite) for satellite in sky.torus.satellites()]


def check_round_trip(sky: Constellation, items: dict[bytes, bytes]) -> None:
    """Put by one host; got by it and by another one that knows nothing."""
    with SkyStore(sky) as store, SkyStore(sky) as other:
        assert [result.status for result in store.put(list(items.items()))] == ["done"] * len(items)
        for host in (store, other):
            assert [result.data for result in host.get(list(items))] == list(items.values())


@pytest.mark.parametrize("layout", ["rotation", "hop", "rotation_hop"])
@pytest.mark.parametrize("uplink", ["window", "nearest"])
def test_round_trip(start_sky: StartSky, layout: str, uplink: str) -> None:
    local = start_sky(cache={"layout": layout, "uplink": uplink})
    check_round_trip(local.constellation, blocks())


def test_blocks_go_where_the_caller_wants_them(full_sky: LocalConstellation) -> None:
    items = blocks([1, 6001, 54_000, 300], name="into")
    with SkyStore(full_sky.constellation) as store:
        store.put(list(items.items()))
        room = [memoryview(bytearray(1)), None, memoryview(bytearray(53_999)), memoryview(bytearray(301))]
        results = store.get(list(items), into=room)
        assert [result.status for result in results] == ["done", "done", "bad_length", "bad_length"]
        assert [result.ok for result in results] == [True, True, False, False]
        first, second, *_ = items.values()
        assert (results[0].data, room[0]) == (None, first)
        assert results[1].data == second
        assert room[2] == bytes(53_999)  # nothing of it was written
        assert store.stats().hits == 2
        with pytest.raises(ValueError, match="1 buffers for 4 blocks"):
            store.get(list(items), into=room[:1])
        found = [one.entry for one in store.find([*items, key("into nothing")])]
        assert found == [*(store.find([one])[0].entry for one in items), None]


def test_a_put_that_waits_does_not_hold_up_a_get(
    start_sky: StartSky, stopped: Callable[..., AbstractContextManager[None]]
) -> None:
    """A put to satellites of which most say nothing takes until they count as lost, a get from another one does not."""
    grid, cache = {"planes": 3, "slots": 3}, {"centre": [2, 2], "parity": 0, "deadline_ms": 20_000, "chunk_bytes": 6000}
    local = start_sky(constellation=grid, cache=cache)
    with SkyStore(local.constellation) as store:
        small = {bytes(32): os.urandom(100)}  # one chunk, at the first server
        store.put(list(small.items()))
        with stopped(local, *store.whereabouts.servers(0)[1:]):
            begun = threading.Event()
            held_up = [(key("held up"), os.urandom(54_000))]
            putting = threading.Thread(target=store.put, args=(held_up, lambda *_: begun.set()))
            putting.start()
            assert begun.wait(PATIENCE_S)
            assert [result.data for result in store.get(list(small))] == list(small.values())
            assert putting.is_alive()
        putting.join()


def test_a_probe_ends_the_silence(start_sky: StartSky, stopped: Callable[..., AbstractContextManager[None]]) -> None:
    local = start_sky(cache={"deadline_ms": 300})
    with SkyStore(local.constellation) as store, ControlPlane(local.constellation) as control:
        assert len(store.probe(control)) >= 9
        with stopped(local):
            for _ in range(3):
                store.get([key("silence")])
            assert store.silent
            assert store.probe(control) == {}
        wait_until(lambda: store.probe(control))
        assert not store.silent


def test_round_trip_on_the_papers_constellation(full_sky: LocalConstellation) -> None:
    check_round_trip(full_sky.constellation, blocks(name="paper"))


def test_round_trip_in_small_packets_over_links(start_sky: StartSky) -> None:
    local = start_sky(network={"mtu": 1472}, cache={"uplink": "nearest"})
    check_round_trip(local.constellation, blocks())
    with ControlPlane(local.constellation) as control:
        stats = control.link_stats(all_routes(local.constellation), 5)
    assert stats[local.constellation.cache.centre].counters["forwarded"] > 0
    assert sum(found.links["ground"]["rx_packets"] > 5 for found in stats.values()) == 1  # the rest came over ISLs


@pytest.mark.parametrize("uplink", ["window", "nearest"])
def test_disorder_is_not_taken_for_loss(start_sky: StartSky, uplink: str) -> None:
    """Delay and jitter without loss: next to nothing is sent twice, by who knows the links and by who does not."""
    sky = start_sky(links={"delay_us": 4_000, "jitter_us": 500}, cache={"uplink": uplink}).constellation

    def is_little_sent_twice(attempt: int) -> bool:
        items = blocks([600_000] * 12, f"disorder {attempt}")
        with SkyStore(sky) as store, SkyStore(sky) as other:
            assert {result.status for result in store.put(list(items.items()))} == {"done"}
            for host in (other, store):
                assert [result.data for result in host.get(list(items))] == list(items.values())
            return all(stats.retries < stats.chunks_down // 20 for stats in (store.stats(), other.stats()))

    # A satellite that a busy machine does not let run is as silent as one whose packets are lost, but not each time.
    assert any(is_little_sent_twice(attempt) for attempt in range(5))


def test_loss_delay_and_reordering_are_repaired(start_sky: StartSky) -> None:
    local = start_sky(
        links={"loss_ppm": 30_000, "delay_us": 2_000, "jitter_us": 2_000}, cache={"uplink": "nearest", "deadline_ms": 30_000}
    )
    with SkyStore(local.constellation) as store:
        items = blocks([300_000, 200_000, 100])
        assert all(result.ok for result in store.put(list(items.items())))
        assert [result.data for result in store.get(list(items))] == list(items.values())
        assert store.stats().retries > 0


def test_a_killed_satellite_is_a_miss_without_parity_and_blocks_can_be_put_again(start_sky: StartSky) -> None:
    local = start_sky(cache={"parity": 0, "deadline_ms": 2000})
    sky = local.constellation
    victim = Whereabouts(sky).servers(0)[4]
    with SkyStore(sky) as store:
        items = blocks([100_000, 100, 200_000])  # the small one is on the first server only
        assert all(result.ok for result in store.put(list(items.items())))
        local.kill(victim)
        start_s = time.monotonic()
        results = store.get(list(items))
        assert time.monotonic() - start_s < 2 + 20  # deadline, a look around, another try; generous for a busy machine
        assert [result.status for result in results] == ["miss", "done", "miss"]  # what stands in never had its share
        assert results[1].data == items[key(" 1")]
        stats = store.stats()
        assert (stats.misses, stats.purges, stats.satellites_lost) == (2, 0, 1)

        assert [store.find([one])[0].entry is not None for one in items] == [False, True, False]
        assert all(result.ok for result in store.put(list(items.items())))  # on a substitute
        assert [result.data for result in store.get(list(items))] == list(items.values())


def test_where_all_satellites_are_servers_one_that_is_killed_costs_its_shares_once(start_sky: StartSky) -> None:
    local = start_sky(constellation={"planes": 3, "slots": 3}, cache={"servers": 9, "centre": [2, 2], "deadline_ms": 2000})
    sky = local.constellation
    local.kill(Whereabouts(sky).servers(0)[4])
    with SkyStore(sky) as store, SkyStore(sky) as other:
        store.put(list(blocks([100_000], "first").items()))  # finds the loss
        wait_until(lambda: store.lost, "the loss is found")
        items = blocks(name="then")
        assert {result.status for result in store.put(list(items.items()))} == {"done"}
        assert [result.data for result in store.get(list(items))] == list(items.values())
        assert {result.status for result in other.get(list(items))} <= {"done", "miss"}  # finds the loss, too
        wait_until(lambda: other.get(list(items)) and other.lost, "the loss is found")
        assert [result.data for result in other.get(list(items))] == list(items.values())
        assert store.stats().expired <= 1  # of "first"; nothing waits for the lost satellite any more
        assert (store.stats().satellites_lost, store.stats().purges) == (1, 0)
    assert store.stats().satellites_lost == 1  # also when it is closed


def test_a_satellite_that_returns_is_used_again(start_sky: StartSky) -> None:
    local = start_sky(cache={"deadline_ms": 2000})
    victim = Whereabouts(local.constellation).servers(0)[4]
    timing = Timing(lost_s=0.2)
    with SkyStore(local.constellation, timing=timing) as store:
        local.kill(victim)
        assert store.put([(key("first"), bytes(100_000))])[0].ok  # on a substitute
        wait_until(lambda: store.lost, "it is lost")
        time.sleep(timing.lost_s)  # it is asked again
        assert store.put([(key("second"), bytes(100_000))])[0].ok
        local.restart(victim)
        wait_until(lambda: store.put([(key("third"), bytes(100_000))])[0].ok and not store.lost, "it is used again")
        before = store.control.store_stats([Route(victim, victim)], 5)[victim]["chunks"]
        assert store.put([(key("fourth"), bytes(100_000))])[0].ok
        assert store.control.store_stats([Route(victim, victim)], 5)[victim]["chunks"] == before + 3


def test_a_satellite_behind_a_long_way_is_used_again(start_sky: StartSky) -> None:
    local = start_sky(cache={"deadline_ms": 8000}, links={"delay_us": 150_000})
    victim = Whereabouts(local.constellation).servers(0)[4]
    with SkyStore(local.constellation, timing=Timing(lost_s=0.2)) as store:
        assert store.put([(key("first"), bytes(100_000))])[0].ok
        local.kill(victim)
        wait_until(lambda: store.put([(key("second"), bytes(100_000))])[0].ok and victim in store.lost, "it is lost")
        local.restart(victim)

        wait_until(lambda: store.put([(key("third"), bytes(100_000))])[0].ok and victim not in store.lost, "it is used again")


def test_a_killed_nearest_satellite(start_sky: StartSky) -> None:
    local = start_sky(cache={"deadline_ms": 2000, "uplink": "nearest"})
    with SkyStore(local.constellation) as store, SkyStore(local.constellation) as other:
        assert store.put([(key("block"), bytes(50_000))])[0].ok
        local.kill(local.constellation.cache.centre)
        assert other.find_longest(chain(4)).entries == []
        assert not other.silent  # others answer: it is the satellite that is lost
        assert other.stats().satellites_lost > 0
        # Until its neighbours notice, ways lead through it: servers behind it are found lost too, and replaced
        assert other.put([(key("again"), bytes(50_000))])[0].ok
        assert other.get([key("again")])[0].data == bytes(50_000)


def test_broken_blocks_are_purged_everywhere(start_sky: StartSky) -> None:
    sky = start_sky(cache={"parity": 0}).constellation
    with SkyStore(sky) as store, SkyStore(sky) as other:
        store.put([(key("block"), bytes(100_000)), (key("whole"), bytes(100_000))])
        wait_until_settled(store)
        gone = shares_of(sky, key("block"), 100_000)[3]
        assert evict(store.control, [Route(gone, gone)], [key("block")]) == (2, True)
        results = store.get([key("block"), key("whole")])
        assert [result.status for result in results] == ["miss", "done"]
        assert store.index.get(key("block")) is None
        assert other.find([key("block")])[0].entry is None
        stats = store.control.store_stats(all_routes(sky), 5)
        assert sum(counters["chunks"] for counters in stats.values()) == 17  # of the whole one


def test_broken_blocks_are_left_to_the_satellites_if_so_configured(start_sky: StartSky) -> None:
    sky = start_sky(cache={"parity": 0, "lazy_purge": False}).constellation
    with SkyStore(sky) as store:
        store.put([(key("block"), bytes(100_000))])
        gone = shares_of(sky, key("block"), 100_000)[3]
        assert evict(store.control, [Route(gone, gone)], [key("block")]) == (2, True)
        assert [result.status for result in store.get([key("block")])] == ["miss"]
        assert store.find([key("block")])[0].entry is None  # though satellites hold the rest
        assert store.stats().purges == 0
        stats = store.control.store_stats(all_routes(sky), 5)
        assert sum(counters["chunks"] for counters in stats.values()) == 15
        assert store.put([(key("block"), bytes(100_000))])[0].ok
        assert store.get([key("block")])[0].data == bytes(100_000)


def test_an_eviction_takes_all_shares_by_gossip(start_sky: StartSky) -> None:
    """One satellite is pressed until it evicts; the others hear of it from their neighbours, and the ground does nothing."""
    cache = {"parity": 0, "deadline_ms": 2000, "lazy_purge": False}
    sky = start_sky(satellite={"store_mib": 1, "gossip": True}, cache=cache).constellation
    first = shares_of(sky, key("old"), 100_000)[0]
    with SkyStore(sky) as store, SkyStore(sky) as other:
        assert all(result.ok for result in store.put([(key("old"), bytes(100_000)), (key("whole"), bytes(100_000))]))
        assert store.get([key("whole")])[0].ok
        time.sleep(3.5)  # as long after a PUT as satellites take no word about its block: its deadline and a second
        pressing = 0
        there = (one for number in count() if shares_of(sky, one := key(f"press {number}"))[0] == first)
        while not (stats := store.control.store_stats(all_routes(sky), 5))[first]["evictions"]:
            assert store.put([(next(there), bytes(6000))])[0].ok  # of one chunk
            pressing += 1
        assert stats[first]["evictions"] == 2

        def after() -> dict[Satellite, dict[str, int]] | None:
            stats = store.control.store_stats(all_routes(sky), 5)
            return stats if sum(counters["gossip_purged"] for counters in stats.values()) >= 15 else None

        stats = wait_until(after, "15 shares are purged")
        assert sum(counters["chunks"] for counters in stats.values()) == pressing + 17
        assert sum(counters["gossip_purged"] for counters in stats.values()) == 15
        # Each satellite tells its neighbours of each block once
        assert 0 < sum(counters["gossip_tx"] for counters in stats.values()) <= 4 * len(stats) * stats[first]["evictions"]
        assert not any(counters["purges"] for counters in stats.values())
        assert other.find([key("old")])[0].entry is None
        assert other.get([key("whole")])[0].data == bytes(100_000)


def test_evicted_blocks_are_misses(start_sky: StartSky) -> None:
    sky = start_sky(satellite={"store_mib": 1}).constellation
    with SkyStore(sky) as store:
        items = blocks([3_000_000] * 5)
        for item in items.items():
            assert store.put([item])[0].ok
        results = store.get(list(items))
        assert results[0].status == "miss"
        assert results[-1].data == items[list(items)[-1]]


@pytest.mark.parametrize(("store_mib", "chunk_bytes"), [(1, 6000), (2, 61440), (3, 1000), (1, 300)])
def test_a_block_that_no_sky_can_hold_is_refused_before_it_evicts_all(
    start_sky: StartSky, store_mib: int, chunk_bytes: int
) -> None:
    sky = start_sky(satellite={"store_mib": store_mib}, cache={"chunk_bytes": chunk_bytes}).constellation
    with SkyStore(sky) as store:
        largest = os.urandom(store.capacity_bytes)
        slots = min(one["store_bytes"] for one in store.control.store_stats(all_routes(sky), 5).values()) // sky.slot_bytes
        room = (sky.cache.servers - sky.cache.parity) * slots * chunk_bytes
        assert 0.9 * room <= len(largest) <= room
        assert store.put([(key("largest"), largest)])[0].ok
        sent = store.stats()
        stores = f"9 servers of {store_mib} MiB, 2 of them for parity"
        with pytest.raises(ValueError, match=rf"bytes; allowed are 1 to {len(largest):,} \({stores}\)"):
            store.put([(key("small"), b"x"), (key("too large"), largest + b"x")])
        assert store.stats() == sent
        assert store.get([key("largest")])[0].data == largest


def test_blocks_that_are_larger_together_are_put(start_sky: StartSky) -> None:
    sky = start_sky(satellite={"store_mib": 1}).constellation
    with SkyStore(sky) as store:
        items = blocks([3_000_000] * 5, "batch")
        assert all(result.ok for result in store.put(list(items.items())))
        assert all(result.data in (None, items[result.key]) for result in store.get(list(items)))


def test_binary_search_asks_few_questions(full_sky: LocalConstellation) -> None:
    keys = chain(40, "search")
    with SkyStore(full_sky.constellation) as store:
        store.put([(one, b"x") for one in keys[:25]])
        store.purge([keys[3]])
    for cached, expected in ((keys, 3), (keys[4:], 21), (keys[25:], 0), ([], 0)):
        with SkyStore(full_sky.constellation) as other:
            found = other.find_longest(cached).entries
            assert [entry.key for entry in found] == list(cached[:expected])
            assert other.stats().questions <= expected + len(keys).bit_length() + 21
            before = other.stats().questions
            assert other.find_longest(cached).entries == found
            more = other.stats().questions - before  # the index knows; only about the block behind it there is a question
            assert more == (1 if len(found) < len(cached) else 0)


def test_no_question_about_what_was_put(full_sky: LocalConstellation) -> None:
    keys = chain(5, "known")
    with SkyStore(full_sky.constellation) as store:
        results = store.put([(one, b"y" * 10_000) for one in keys])
        assert [entry.key for entry in store.find_longest(keys).entries] == keys
        assert store.find([keys[2]])[0].entry == results[2].entry
        assert store.get(store.find_longest(keys).entries)[4].data == b"y" * 10_000
        assert store.stats().questions == 0


def test_tenants_do_not_see_each_other(full_sky: LocalConstellation) -> None:
    with SkyStore(full_sky.constellation, tenant=1) as store, SkyStore(full_sky.constellation, tenant=2) as other:
        store.put([(key("tenant"), b"mine")])
        assert other.find([key("tenant")])[0].entry is None
        assert other.get([key("tenant")])[0].status == "miss"
        assert store.get([key("tenant")])[0].data == b"mine"


def test_purge(full_sky: LocalConstellation) -> None:
    with SkyStore(full_sky.constellation) as store:
        store.put([(key("purge"), bytes(60_001))])
        assert store.purge([key("purge")]) == (11 + 2 * 2, True)  # two rows with parity
        assert store.purge([key("purge")]) == (0, True)
        assert store.get([key("purge")])[0].data is None


def test_physical_window(full_sky: LocalConstellation) -> None:
    sky = full_sky.constellation.replace(
        cache={"window": "physical"}, site={"latitude_deg": 85.0, "min_elevation_deg": 5.0}
    )  # near the pole somebody is always in sight
    check_round_trip(sky, blocks(name="physical"))


def test_nobody_in_sight(full_sky: LocalConstellation) -> None:
    sky = full_sky.constellation.replace(cache={"window": "physical"}, site={"min_elevation_deg": 90.0})
    with SkyStore(sky) as store:
        assert [result.status for result in store.put([(key("dark"), b"x")])] == ["no_satellite"]
        assert [(result.key, result.status) for result in store.get([key("dark")])] == [(key("dark"), "no_satellite")]
        assert store.find([key("dark")])[0].entry is None
        assert store.find_longest(chain(9)).entries == []
        assert store.purge([key("dark")]).chunks == 0


def test_nobody_there() -> None:
    sky = Constellation().replace(network={"network": "127.19.0.0/16"}, cache={"deadline_ms": 200})
    with SkyStore(sky) as store:
        assert store.find_longest(chain(9)).entries == []
        assert not store.put([(key("void"), b"x")])[0].ok
        assert store.get([key("void")])[0].data is None


def test_threads_share_a_store(full_sky: LocalConstellation) -> None:
    wrong: list[object] = []
    with SkyStore(full_sky.constellation) as store:

        def work(number: int) -> None:
            for turn in range(5):
                one, data = key(f"thread {number} {turn}"), os.urandom(50_000)
                if not store.put([(one, data)])[0].ok or store.get([one])[0].data != data or store.purge([one]).chunks != 11:
                    wrong.append((number, turn))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        assert store.stats().puts == 20


def test_progress_and_statistics(full_sky: LocalConstellation) -> None:
    told: list[tuple[int, int]] = []
    with SkyStore(full_sky.constellation) as store:
        store.put([(key("progress"), bytes(600_000))], lambda done, total: told.append((done, total)))
        assert told[-1] == (120, 120)
        store.get([key("progress"), key("no such block")], lambda done, total: told.append((done, total)))
        assert told[-1] == (100, 100)
        stats = store.stats()
        assert (stats.puts, stats.hits, stats.misses, stats.questions) == (1, 1, 1, 1)
        assert (stats.bytes_up, stats.bytes_down) == (720_000, 600_000)
        assert (stats.chunks_up, stats.chunks_down) == (120, 100)
        assert stats.put_s > 0
        assert stats.get_s > 0


def test_memory_is_taken_as_it_is(full_sky: LocalConstellation) -> None:
    data = bytearray(os.urandom(20_000))
    with SkyStore(full_sky.constellation) as store:
        store.put([(key("a"), data), (key("b"), memoryview(data)[5:1005]), (key("c"), memoryview(data).cast("I"))])
        data.append(1)  # nobody holds on to it
        got = store.get([key("a"), key("b"), key("c")])
        assert [result.data for result in got] == [data[:-1], data[5:1005], data[:-1]]


def test_wrong_arguments() -> None:
    with SkyStore(Constellation()) as store:
        for call in (lambda one: store.find([one]), lambda one: store.put([(one, b"x")]), lambda one: store.get([one])):
            with pytest.raises(ValueError, match="key of 5 bytes; 32 are allowed"):
                call(b"short")
        with pytest.raises(ValueError, match="block of 0 bytes; allowed are 1 to 160,080,000"):
            store.put([(key("empty"), b"")])
        assert store.put([]) == []
        assert store.get([]) == []
    store.close()  # twice


def test_a_closed_store_says_so(full_sky: LocalConstellation) -> None:
    with SkyStore(full_sky.constellation) as store:
        store.put([(key("closed"), b"x")])
    calls: list[Callable[[], object]] = [
        lambda: store.put([(key("closed"), b"x")]),
        lambda: store.get([key("closed")]),
        lambda: store.find([key("closed")]),
        lambda: store.find_longest([key("closed")]),
        lambda: store.find_longest([key("closed")], fresh=True),
        lambda: store.purge([key("closed")]),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="the store was closed"):
            call()


def test_a_known_beginning_does_not_hide_the_rest(full_sky: LocalConstellation) -> None:
    keys = chain(9, "rest")
    with SkyStore(full_sky.constellation) as store, SkyStore(full_sky.constellation) as other:
        store.put([(one, b"x") for one in keys[:7]])
        assert len(other.find_longest(keys[:2]).entries) == 2
        assert [entry.key for entry in other.find_longest(keys).entries] == keys[:7]
        asked = other.stats().questions
        assert [entry.key for entry in other.find_longest(keys[:7]).entries] == keys[:7]
        assert other.stats().questions == asked


def test_a_block_of_another_host_is_asked_for_anew_when_it_was_replaced(full_sky: LocalConstellation) -> None:
    with SkyStore(full_sky.constellation) as store, SkyStore(full_sky.constellation) as other:
        store.put([(key("old"), bytes(50_000))])
        assert other.get([key("old")])[0].data == bytes(50_000)
        store.purge([key("old")])
        store.put([(key("old"), bytes(90_000))])
        assert other.get([key("old")])[0].data == bytes(90_000)
        assert other.stats().purges == 0
        assert store.get([key("old")])[0].data == bytes(90_000)


def test_blocks_longer_than_allowed_are_misses(full_sky: LocalConstellation) -> None:
    keys = chain(3, "long")
    with SkyStore(full_sky.constellation) as store, SkyStore(full_sky.constellation) as other:
        store.put([(keys[0], bytes(100)), (keys[1], bytes(90_000)), (keys[2], bytes(100))])
        assert [entry.key for entry in other.find_longest(keys, block_bytes_max=50_000).entries] == keys[:1]
        assert [result.status for result in other.get(keys, block_bytes_max=50_000)] == ["done", "too_large", "done"]
        assert [result.status for result in other.get(keys)] == ["done"] * 3


def test_a_forged_length_takes_no_memory(full_sky: LocalConstellation) -> None:
    """One chunk says that its block has 2 GB. Whoever wants the block must not believe it."""
    sky, one, chunk = full_sky.constellation, key("forged"), bytes(6000)
    nearest = shares_of(sky, one)[0]  # one of those that a look-up asks
    total = 333_334
    with SkyStore(sky) as store, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as forger:
        forger.settimeout(10)
        address = (sky.address(*nearest), sky.network.port)
        packet = Packet(
            cookie=ask_cookie(forger, address, Satellite(0, 4242), nearest),
            is_request=True,
            apid=icd.APID_KVC,
            op=icd.OP_PUT,
            src=Satellite(0, 4242),
            dst=nearest,
            request_id=1,
            key=one,
            chunk_total=total,
            chunk_len=len(chunk),
            block_len=total * len(chunk),
            chunk_crc=core.crc32c(chunk),
            payload=chunk,
        )

        def is_stored() -> bool:  # a PUT is not answered
            forger.sendto(packet.encode(), address)
            return bool(store.find_longest([one], block_bytes_max=1 << 32).entries)

        wait_until(is_stored)
        tracemalloc.start()
        assert store.get([one])[0].status == "too_large"
        assert store.find_longest([one]).entries == []
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
        tracemalloc.stop()
        store.purge([one])


def test_a_fresh_look_up_tells_whole_blocks(full_sky: LocalConstellation) -> None:
    sky = full_sky.constellation.replace(cache={"servers": 10, "parity": 0})
    with SkyStore(sky) as store:
        items = blocks([90_000, 10, 90_000, 1_000_003], "confirm")
        keys = list(items)
        entries = [result.entry for result in store.put(list(items.items())) if result.entry is not None]
        asked = store.stats().questions
        assert store.find_longest(keys, fresh=True).entries == entries
        assert store.find_longest([], fresh=True).entries == []
        assert store.stats().questions == asked + 1  # the last block tells for all
        gone = Whereabouts(sky).servers(0)[7]
        evict(store.control, [Route(gone, gone)], [keys[3]])
        assert store.find_longest(keys, fresh=True).entries == entries[:3]
        assert store.stats().questions == asked + 1 + 1 + 4
        assert store.index.get(keys[3]) is None
        evict(store.control, [Route(gone, gone)], [keys[2]])
        assert [one.status for one in store.find(keys, fresh=True)] == ["done", "done", "miss", "miss"]
        assert store.index.get(keys[2]) is None
        store.index.add([replace(entries[0], block_len=89_999)])  # another block under the key
        assert store.find_longest(keys[:1], fresh=True).entries == []
        assert store.index.get(keys[0]) is None


def test_lookups_go_to_the_nearest_server_first(start_sky: StartSky) -> None:
    local = start_sky(cache={"layout": "rotation"})
    sky = local.constellation
    with SkyStore(sky) as store, SkyStore(sky) as other:
        store.put([(key("large"), bytes(90_000))])
        local.kill(Whereabouts(sky).servers(0)[0])  # the window's corner
        assert other.find([key("large")])[0].entry is not None
        assert (other.stats().questions, other.stats().satellites_lost) == (1, 0)
        assert other.find([key("unknown")])[0].entry is None  # the corner is asked in vain, then what stands in for it
        assert other.stats().satellites_lost == 1


def test_the_first_server_is_the_nearest_satellite() -> None:
    """Where all lookups go (paper, section 3.8, Get step 8)."""
    assert Whereabouts(Constellation()).servers(0)[0] == Satellite(3, 10)
