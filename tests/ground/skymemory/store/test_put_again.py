"""Blocks of which chunks are missing are put again by who has fetched and opened them."""

import os
from collections.abc import Callable
from functools import partial

import pytest

from skymemory.link.timing import Timing
from skymemory.sky.entry_satellites import Route
from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.keyvalue import KeyValue
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.address import Satellite
from support.evictions import evict
from support.waiting import wait_until

StartSky = Callable[..., LocalConstellation]
CODED = {"servers": 12, "parity": 2, "deadline_ms": 20_000}
SECRET = b"secret"
COUNT = 6


def values() -> dict[str, bytes]:
    return {f"value {index}": os.urandom(100_000 * index) for index in range(1, 1 + COUNT)}


def places_of(local: LocalConstellation) -> list[Satellite]:
    return Whereabouts(local.constellation).servers(0)


def check_read(store: SkyStore, items: dict[str, bytes]) -> int:
    """Check that all values come as they were put. Return of how many a chunk was missing."""
    before = store.stats().degraded
    kv = KeyValue(store)
    assert {name: kv.get(name) for name in items} == items
    return store.stats().degraded - before


def put(store: SkyStore, items: dict[str, bytes]) -> list[bytes]:
    kv = KeyValue(store)
    assert all(kv.put(name, value).ok for name, value in items.items())
    return [kv.key_of(name) for name in items]


def evict_at(store: SkyStore, place: Satellite, keys: list[bytes]) -> None:
    evict(store.control, [Route(place, place)], keys)


def test_after_two_lost_satellites_and_one_round_of_gets_nothing_is_missing(start_sky: StartSky) -> None:
    local = start_sky(cache=CODED)
    places, items = places_of(local), values()
    with SkyStore(local.constellation, tenant_secret=SECRET) as store:
        put(store, items)
        for server in (3, 7):
            local.kill(places[server])
        assert check_read(store, items) > 0
        wait_until(lambda: store.stats().puts_again == COUNT, store.stats)
        assert store.lost == {places[3], places[7]}
        wait_until(lambda: check_read(store, items) == 0, "nothing is missing, and no satellite slow")
        assert store.stats().puts_again == COUNT
    with SkyStore(local.constellation, tenant_secret=SECRET) as other:
        assert check_read(other, items) >= 0  # it has not found out who is lost
        wait_until(lambda: other.lost == {places[3], places[7]} or not other.stats().degraded, other.stats)
        wait_until(lambda: check_read(other, items) == 0, "nothing is missing, and no satellite slow")
        assert other.stats().puts_again == 0  # nothing was missing any more
        assert (other.stats().misses, other.stats().purges) == (0, 0)


def test_evicted_shares_come_back_to_their_homes(start_sky: StartSky) -> None:
    local = start_sky(cache=CODED)
    places, items = places_of(local), values()
    with SkyStore(local.constellation, tenant_secret=SECRET) as store:
        keys = put(store, items)
        evict_at(store, places[0], keys)
        assert check_read(store, items) > 0
        wait_until(lambda: store.stats().puts_again == COUNT, store.stats)
        wait_until(lambda: check_read(store, items) == 0, "nothing is missing, and no satellite slow")
        for server in (1, 2):  # so those that are there again suffice
            evict_at(store, places[server], keys)
        assert check_read(store, items) > 0


def test_only_missing_shares_go_up_again(start_sky: StartSky) -> None:
    local = start_sky(cache=CODED)
    places = places_of(local)
    with SkyStore(local.constellation, tenant_secret=SECRET) as store:
        [key] = put(store, item := {"large": os.urandom(1_000_000)})
        entry = store.find([key])[0].entry
        assert entry is not None
        for server in (4, 11):
            evict_at(store, places[server], [key])
        before = store.stats().chunks_up
        assert check_read(store, item) == 1
        wait_until(lambda: store.stats().puts_again == 1, store.stats)
        shares = [len(range(server, entry.chunk_total, 12)) for server in (4, 11)]
        assert store.stats().chunks_up - before == sum(shares) < entry.chunk_total
        wait_until(lambda: check_read(store, item) == 0, "nothing is missing, and no satellite slow")


@pytest.mark.parametrize("lost_s", [3600.0, 0.001])
def test_what_was_put_again_lately_is_not_put_again(start_sky: StartSky, lost_s: float) -> None:
    local = start_sky(cache=CODED)
    places, items = places_of(local), values()
    with SkyStore(local.constellation, tenant_secret=SECRET, timing=Timing(lost_s=lost_s)) as store:
        keys = put(store, items)
        evict_at(store, places[0], keys)
        assert check_read(store, items) > 0
        wait_until(lambda: store.stats().puts_again == COUNT, store.stats)
        evict_at(store, places[0], keys)
        assert check_read(store, items) > 0
        wait_until(lambda: store.is_mended, store.stats)
        assert store.stats().puts_again == COUNT * (1 if lost_s > 1 else 2)


def test_what_was_deleted_stays_deleted(start_sky: StartSky) -> None:
    local = start_sky(cache=CODED)
    places, items = places_of(local), values()
    with SkyStore(local.constellation, tenant_secret=SECRET) as store:
        kv = KeyValue(store)
        keys = put(store, items)
        evict_at(store, places[0], keys)
        check_read(store, items)
        for name in items:
            kv.delete(name)
        wait_until(lambda: store.is_mended, store.stats)
        with SkyStore(local.constellation, tenant_secret=SECRET) as other:
            assert [KeyValue(other).get(name) for name in items] == [None] * COUNT


def test_who_cannot_open_a_block_does_not_put_it(start_sky: StartSky) -> None:
    local = start_sky(cache=CODED)
    places, items = places_of(local), values()
    with SkyStore(local.constellation, tenant_secret=SECRET) as store:
        keys = put(store, items)
        evict_at(store, places[0], keys)
        for result in store.get(keys):
            assert result.is_degraded
            assert store.opened(result, lambda data: None) is None
        opened: list[bytes] = []
        for result in store.get(keys):  # right at first, and not when it is fetched once more

            def opens(data: bytearray, key: bytes) -> bytes | None:
                opened.append(key)
                return None if key in opened[:-1] else key

            assert store.opened(result, partial(opens, key=result.key)) == result.key
        wait_until(lambda: store.is_mended and len(opened) == 2 * COUNT, lambda: len(opened))
        assert store.stats().puts_again == 0
