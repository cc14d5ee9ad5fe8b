"""`SkyStore` with parity on real satellites: any two servers of twelve may be lost."""

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from hashlib import sha256
from statistics import median

import pytest

from skymemory.link.control import Purged
from skymemory.link.timing import Timing
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.sky.placement.spread import offset_of
from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.address import Satellite
from support.evictions import evict
from support.settled import wait_until_settled
from support.spread import shares_of
from support.waiting import wait_until

StartSky = Callable[..., LocalConstellation]
Stopped = Callable[..., AbstractContextManager[None]]
CODED = {"servers": 12, "parity": 2, "deadline_ms": 20_000}
"""A deadline so long that a get which waits for it is seen."""
SIZES = [1, 5999, 6000, 6001, 54_000, 60_001, 66_000, 1_000_003]


def blocks(name: str) -> dict[bytes, bytes]:
    return {sha256(f"{__name__} {name} {index}".encode()).digest(): os.urandom(size) for index, size in enumerate(SIZES)}


def servers(sky: Constellation) -> list[Satellite]:
    return Whereabouts(sky).servers(0)


def evict_at(store: SkyStore, key: bytes, data: bytes, *shares: int) -> None:
    """Let the servers of some shares of a block lose it."""
    places = shares_of(store.constellation, key, len(data))
    evict(store.control, [Route(places[share], places[share]) for share in shares], [key])


def check_got(store: SkyStore, items: dict[bytes, bytes]) -> None:
    assert [(one.status, one.data) for one in store.get(list(items))] == [("done", data) for data in items.values()]


@pytest.mark.parametrize("layout", ["rotation", "hop", "rotation_hop"])
def test_round_trip(start_sky: StartSky, layout: str) -> None:
    local = start_sky(cache=CODED | {"layout": layout})
    items = blocks(layout)
    with SkyStore(local.constellation) as store, SkyStore(local.constellation) as other:
        results = store.put(list(items.items()))
        assert all(one.ok for one in results)
        assert results[0].entry is not None
        assert results[0].entry.chunk_total == 3  # one chunk, and two copies of it
        for host in (store, other):
            check_got(host, items)
        assert (store.stats().lost, other.stats().lost, store.stats().misses) == (0, 0, 0)


@pytest.mark.parametrize("lost", [(0, 1), (0, 11), (4, 7), (10, 11)])
def test_two_killed_satellites_are_not_noticed(start_sky: StartSky, lost: tuple[int, int]) -> None:
    local = start_sky(cache=CODED)
    sky, items = local.constellation, blocks(f"killed {lost}")
    with SkyStore(sky) as store, SkyStore(sky) as other:
        assert all(one.ok for one in store.put(list(items.items())))
        before_s = [timed(store, items) for _ in range(9)]
        for server in lost:
            local.kill(servers(sky)[server])
        timed(store, items)  # finds out that they are slow
        after_s = [timed(store, items) for _ in range(9)]
        assert median(after_s) < 10 * median(before_s)  # the deadline is thousands of times longer
        assert store.stats().decoded > 0 or all(server >= 10 for server in lost)  # a busy machine makes others slow, too
        check_got(other, items)  # who knows nothing of the blocks has to find them, too
        assert (store.stats().misses, store.stats().purges, other.stats().misses, other.stats().purges) == (0, 0, 0, 0)

        more = blocks(f"put after {lost}")
        start_s = time.monotonic()
        assert all(one.ok for one in store.put(list(more.items())))
        assert time.monotonic() - start_s < 15
        wait_until(lambda: store.lost == {servers(sky)[server] for server in lost})  # so that the next are stored whole
        check_got(store, more)
        before = store.stats().lost
        rest = blocks(f"around {lost}")
        assert all(one.ok for one in store.put(list(rest.items())))
        assert store.stats().lost == before
        check_got(store, rest)
        check_got(store, items)


def test_a_death_in_the_middle_of_a_get_costs_no_deadline_where_all_satellites_are_servers(start_sky: StartSky) -> None:
    local = start_sky(constellation={"planes": 3, "slots": 4}, cache=CODED | {"centre": [2, 2]})
    sky = local.constellation
    items = {sha256(f"all are servers {index}".encode()).digest(): os.urandom(2_000_003) for index in range(12)}
    dying = iter([servers(sky)[3], servers(sky)[7]])
    with SkyStore(sky) as store:
        assert all(one.ok for one in store.put(list(items.items())))
        for _ in range(2):

            def kill_one(done: int, total: int) -> None:
                nonlocal killed
                if not killed and done < total:
                    killed = True
                    local.kill(next(dying))

            killed = False
            start_s = time.monotonic()
            results = store.get(list(items), progress=kill_one)
            assert time.monotonic() - start_s < 10  # half the deadline
            assert [(one.status, one.data) for one in results] == [("done", data) for data in items.values()]
        start_s = time.monotonic()
        check_got(store, items)
        assert time.monotonic() - start_s < 10
        assert (store.stats().misses, store.stats().purges) == (0, 0)


def timed(store: SkyStore, items: dict[bytes, bytes]) -> float:
    start_s = time.perf_counter()
    check_got(store, items)
    return time.perf_counter() - start_s


def test_a_get_that_asks_all_does_not_wait_for_slow_satellites(start_sky: StartSky, stopped: Stopped) -> None:
    local = start_sky(cache=CODED | {"ask_all": True})
    sky, items = local.constellation, blocks("all are asked")
    with SkyStore(sky) as store:
        assert all(one.ok for one in store.put(list(items.items())))
        check_got(store, items)
        with stopped(local, servers(sky)[2], servers(sky)[5]):
            (result,) = store.get([list(items)[-1]])
            assert result.data == list(items.values())[-1]
        assert store.stats().decoded > 0


def test_another_host_has_cut_a_block_for_another_parity(start_sky: StartSky) -> None:
    """Its length is the same, its chunks are not."""
    local = start_sky(cache=CODED)
    sky, items = local.constellation, blocks("cut")
    with SkyStore(sky) as store, SkyStore(sky.replace(cache={"parity": 1})) as other:
        assert all(one.ok for one in store.put(list(items.items())))
        assert other.purge(list(items)).confirmed
        assert all(one.ok for one in other.put(list(items.items())))
        check_got(store, items)
        known = [entry for key in items if (entry := store.index.get(key)) is not None]
        assert {entry.code_m for entry in known} == {1}


def test_evictions_of_two_leave_a_block_and_that_of_a_third_takes_it(start_sky: StartSky) -> None:
    local = start_sky(cache=CODED)
    sky, items = local.constellation, blocks("evicted")
    (small, *_, large) = items
    with SkyStore(sky) as store:
        assert all(one.ok for one in store.put(list(items.items())))
        for key, data in items.items():
            evict_at(store, key, data, 0, 2)
        check_got(store, items)
        entries = [entry for one in store.find(list(items)) if (entry := one.entry) is not None]
        assert all(one.entry is not None for one in store.find(list(items), fresh=True))
        assert store.still_there([[entry] for entry in entries]) == [[entry] for entry in entries]
        wait_until_settled(store)
        for key in (small, large):
            evict_at(store, key, items[key], 1)
        assert [one.status for one in store.get([small, large])] == ["miss", "miss"]
        assert store.stats().purges == 2
        left = {key: data for key, data in items.items() if key not in (small, large)}
        check_got(store, left)


def test_a_value_is_gone_once_what_is_left_cannot_give_it(start_sky: StartSky) -> None:
    local = start_sky(cache=CODED)
    sky, items = local.constellation, blocks("deleted")
    with SkyStore(sky) as store:
        assert all(one.ok for one in store.put(list(items.items())))
        (small, *_, large, last) = items
        (cleared,) = store.make_way([small])
        assert (cleared.chunks, cleared.confirmed) == (3, True)
        assert store.make_way([small]) == [Purged(0, True)]
        single = next(key for key, data in items.items() if len(data) == 5999)
        copy = shares_of(sky, single, 5999)[1]
        local.kill(copy)
        assert all(one.ok for one in store.put([(sha256(b"finds the loss of a copy").digest(), os.urandom(100_000))]))
        wait_until(lambda: store.lost == {copy})
        assert store.purge([last]).confirmed  # of each row eleven chunks are gone
        assert store.purge([single]) == Purged(2, False)  # the lost satellite has all of it
        local.kill(next(one for one in reversed(servers(sky)) if one != copy))
        assert store.get([large])[0].ok
        assert store.purge([large]).confirmed
        assert store.get([large])[0].status == "miss"


def test_what_satellites_lost_is_purged_while_others_stand_in_and_what_stand_ins_lack_is_not(start_sky: StartSky) -> None:
    local = start_sky(cache=CODED)
    sky, items = local.constellation, blocks("stood in")
    *_, first, second = items
    with SkyStore(sky) as store:
        assert all(one.ok for one in store.put(list(items.items())))
        local.kill(servers(sky)[11])
        assert all(one.ok for one in store.put([(sha256(b"finds the loss").digest(), os.urandom(100_000))]))
        wait_until(lambda: store.lost == {servers(sky)[11]})

        def evict_at_servers(some: list[int], key: bytes) -> None:
            evict(store.control, [Route(servers(sky)[server], servers(sky)[server]) for server in some], [key])

        evict_at_servers([0, 1], first)  # the stand-in of server 11 lacks its share, too
        assert [one.status for one in store.get([first])] == ["miss"]
        assert store.stats().purges == 0
        known = {offset_of(second, 1, 12) + at for at in range(3)}  # these servers know the block, so each look-up finds it
        evict_at_servers([server for server in range(10) if {server, server + 12}.isdisjoint(known)][:4], second)

        def is_purged() -> bool:
            assert [one.status for one in store.get([second])] == ["miss"]
            return store.stats().purges == 1

        wait_until(is_purged)  # if the stand-in's word was among the first three, the get did not wait for a fourth


@pytest.mark.parametrize("layout", ["hop", "rotation_hop"])
@pytest.mark.parametrize("asks_first", [False, True])
def test_what_stand_ins_hold_is_not_purged_once_those_they_stood_in_for_are_back(
    start_sky: StartSky, layout: str, asks_first: bool
) -> None:
    local = start_sky(cache=CODED | {"layout": layout, "deadline_ms": 3000})
    sky = local.constellation
    lost = [servers(sky)[server] for server in (0, 4, 9)]
    name, data = list(blocks("aside").items())[-1]
    with SkyStore(sky) as store, SkyStore(sky) as other:
        for one in lost:
            local.kill(one)
        wait_until(lambda: store.put([(name, data)])[0].ok)
        for one in lost:
            local.restart(one)
        entry = other.find([name])[0].entry
        assert entry is not None

        def is_there() -> bool:
            if asks_first:
                other.still_there([[entry]])
            return other.get([entry])[0].data == data

        wait_until(is_there, "the stand-ins have handed over what they hold")
        assert other.stats().purges == 0


def test_hosts_without_parity_and_with_other_rows_do_not_take_these_blocks(start_sky: StartSky) -> None:
    local = start_sky(cache=CODED)
    items = blocks("others")
    with SkyStore(local.constellation) as store:
        assert all(one.ok for one in store.put(list(items.items())))
        for cache in ({"servers": 10, "parity": 0}, {"servers": 10, "parity": 2}):
            with SkyStore(local.constellation.replace(cache=cache), timing=Timing()) as other:
                assert {one.status for one in other.get(list(items))} == {"miss"}
                assert other.stats().purges == 0
        check_got(store, items)
