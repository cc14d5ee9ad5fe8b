"""`SkyStore.get_each`: blocks come in order, while others are on their way."""

import os
import threading
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

import pytest

from skymemory.link.timing import Timing
from skymemory.sky.entry_satellites import Route
from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.keyvalue import KeyValue
from skymemory.store.results import GetResult, Status
from skymemory.store.sky_store import SkyStore
from skymemory.store.versions import Versions
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.address import Satellite
from support.evictions import evict
from support.settled import wait_until_settled
from support.waiting import wait_until

StartSky = Callable[..., LocalConstellation]
Stopped = Callable[..., AbstractContextManager[None]]
LONG = {"parity": 0, "deadline_ms": 600_000}
"""A deadline that a test sees if it waits for it. Without parity a satellite that says nothing holds blocks up."""
PATIENT = Timing(silence_s=3600.0)
"""Nobody counts as lost."""
ALL, ONE = 120_000, 6_000
"""Bytes of a block with chunks on all servers, and of one with a chunk on the first."""


def new_items(*sizes: int) -> list[tuple[bytes, bytes]]:
    """Blocks whose keys begin with zeros: so chunk i of small ones, too, is at server i."""
    return [(bytes(4) + os.urandom(28), os.urandom(size)) for size in sizes]


def put(store: SkyStore, items: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
    assert all(one.ok for one in store.put(items))
    return [key for key, _ in items]


def places_of(local: LocalConstellation) -> list[Satellite]:
    return Whereabouts(local.constellation).servers(0)


def data_of(results: Iterator[GetResult]) -> list[bytes | None]:
    return [None if one.data is None else bytes(one.data) for one in results]


def given(store: SkyStore) -> int:
    """Return how many chunks satellites have given since they began."""
    places = [Route(one, one) for one in store.whereabouts.servers(0)]
    return sum(one["hits"] for one in store.control.store_stats(places, 1).values())


def test_early_blocks_come_before_late_ones(start_sky: StartSky, stopped: Stopped) -> None:
    local = start_sky(cache=LONG)
    items = new_items(ONE, ALL, ONE)
    with SkyStore(local.constellation, timing=PATIENT) as store:
        results = store.get_each(put(store, items))
        with stopped(local, places_of(local)[5]):
            assert bytes(next(results).data or b"") == items[0][1]  # the others cannot be there
        assert data_of(results) == [data for _, data in items[1:]]
        assert store.stats().hits == 3


def test_no_block_comes_before_an_earlier_one(start_sky: StartSky, stopped: Stopped) -> None:
    local = start_sky(cache=LONG)
    items = new_items(ALL, ONE)
    came: list[GetResult] = []
    with SkyStore(local.constellation, timing=PATIENT) as store:
        keys = put(store, items)
        with stopped(local, places_of(local)[5]):
            thread = threading.Thread(target=lambda: came.extend(store.get_each(keys)))
            thread.start()
            wait_until(lambda: given(store) >= 10, "blocks were asked for")
            assert came == []
        thread.join()
        assert data_of(iter(came)) == [data for _, data in items]


def test_blocks_come_while_the_caller_works(start_sky: StartSky) -> None:
    """As many as there is memory for. Nothing runs any more then, so the caller holds up nobody."""
    local = start_sky(cache={"servers": 9}, satellite={"store_mib": 32})
    items, size = new_items(*[6_000_000] * 7), 6_000_000
    with SkyStore(local.constellation) as store:
        keys = put(store, items)
        results, before = store.get_each(keys), given(store)
        got = [next(results)]
        wait_until(lambda: given(store) - before >= 3 * size // 6000, "one was taken, and two of 16 MiB are there")
        [other] = store.get(keys[-1:])
        assert other.data == items[-1][1]
        assert given(store) - before < 5 * size // 6000
        got += results
        assert [one.data == data for one, (_, data) in zip(got, items, strict=True)] == [True] * 7
        assert store.stats().bytes_down == 8 * size


def test_memory_is_taken_for_few_blocks_at_a_time(start_sky: StartSky) -> None:
    local = start_sky(satellite={"store_mib": 32})
    with SkyStore(local.constellation) as store:
        keys = put(store, new_items(*[2_000_000] * 24))
        tracemalloc.start()
        try:
            assert all(one.ok for one in store.get_each(keys))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 24_000_000  # 16 MiB that were asked for, one that the caller has


def test_all_is_asked_for_at_once_with_memory_of_the_caller(start_sky: StartSky) -> None:
    local = start_sky(satellite={"store_mib": 32})
    items = new_items(*[6_000_000] * 5)
    with SkyStore(local.constellation) as store:
        keys = put(store, items)
        memory = [bytearray(len(data)) for _, data in items]
        views = [memoryview(one) for one in memory]
        results = store.get_each(keys, into=views)
        first = next(results)
        assert (first.data, first.status) == (None, Status.DONE)
        assert memory[0] == items[0][1]
        views[0].release()  # nothing refers to it any more
        wait_until(lambda: given(store) >= 5 * 1000, "all were asked for")
        assert [one.status for one in results] == ["done"] * 4
        assert memory[1:] == [data for _, data in items[1:]]
        short = [memoryview(bytearray(5)), None, None, None, None]
        assert [one.status for one in store.get_each(keys, into=short)] == ["bad_length"] + ["done"] * 4
        with pytest.raises(ValueError, match="1 buffers for 5 blocks"):
            store.get_each(keys, into=short[:1])


@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "dropped"])
def test_who_wants_no_more_waits_for_nothing(start_sky: StartSky, stopped: Stopped, is_closed: bool) -> None:
    local = start_sky(cache=LONG)
    items = new_items(ONE, ALL, ALL)
    with SkyStore(local.constellation, timing=PATIENT) as store:
        keys = put(store, items)
        with stopped(local, places_of(local)[5]):
            results = store.get_each(keys)
            assert next(results).ok
            if is_closed:
                results.close()
            else:
                del results
        assert data_of(iter(store.get(keys))) == [data for _, data in items]
        store.get_each(keys)  # one that was never begun


def test_a_store_that_is_closed_in_the_middle(start_sky: StartSky, stopped: Stopped) -> None:
    local = start_sky(cache=LONG)
    items = new_items(ONE, ALL, *[10_000_000] * 3)
    store = SkyStore(local.constellation, timing=PATIENT)
    keys = put(store, items)
    with stopped(local, places_of(local)[5]):
        results = store.get_each(keys)
        assert next(results).ok
        store.close()
        assert [one.status for one in results] == ["cancelled"] * 4
    with pytest.raises(ValueError, match="the store was closed"):
        store.get_each(keys)


def test_a_store_that_is_closed_while_somebody_waits(start_sky: StartSky, stopped: Stopped) -> None:
    local = start_sky(cache=LONG)
    store = SkyStore(local.constellation, timing=PATIENT)
    keys = put(store, new_items(ALL, ALL))
    came: list[GetResult] = []
    with stopped(local, places_of(local)[5]):
        thread = threading.Thread(target=lambda: came.extend(store.get_each(keys)))
        thread.start()
        wait_until(lambda: given(store) >= 10, "blocks were asked for")
        store.close()
        thread.join()
    assert [one.status for one in came] == ["cancelled"] * 2


def test_a_store_that_is_closed_between_two_blocks(start_sky: StartSky) -> None:
    """Nothing runs at that time."""
    local = start_sky(satellite={"store_mib": 32})
    store = SkyStore(local.constellation)
    keys = put(store, new_items(*[6_000_000] * 6))
    results = store.get_each(keys)
    assert next(results).ok
    wait_until(lambda: given(store) >= 3 * 1000, "two more are there")
    store.close()
    assert [one.status for one in results] == ["done"] * 2 + ["cancelled"] * 3


def test_what_is_not_there(start_sky: StartSky) -> None:
    """Blocks that nobody knows, that are too long, and that have lost a share."""
    local = start_sky(cache={"parity": 0})
    items = new_items(ALL, ALL, ONE, ALL, 2 * ALL, ALL)
    with SkyStore(local.constellation) as store:
        keys = put(store, items)
        wait_until_settled(store)
        place = places_of(local)[3]
        assert evict(store.control, [Route(place, place)], keys[1:2]).chunks > 0
        asked = [bytes(32), *keys[:3], os.urandom(32), *keys[3:], keys[0], os.urandom(32)]
        results = list(store.get_each(asked, block_bytes_max=ALL))
        words = ["miss", "done", "miss", "done", "miss", "done", "too_large", "done", "done", "miss"]
        assert [(one.key, one.status) for one in results] == list(zip(asked, words, strict=True))
        assert [one.known for one in results] == [False, True, True, True, False, True, True, True, True, False]
        stored = dict(items)
        assert all(one.data == stored[one.key] for one in results if one.ok)
        stats = store.stats()
        assert (stats.hits, stats.misses, stats.purges) == (5, 5, 1)
        assert store.find(keys[1:2])[0].status is Status.MISS
        assert list(store.get_each([])) == []
        with pytest.raises(ValueError, match="key of 5 bytes; 32 are allowed"):
            store.get_each([b"short"])  # at once


def test_a_satellite_that_another_host_found_lost(start_sky: StartSky) -> None:
    """This host asks it in vain, and finds what the other one put at its stand-in."""
    local = start_sky(cache={"parity": 0, "deadline_ms": 2000})
    items = new_items(*[ALL] * 5)
    with SkyStore(local.constellation) as store, SkyStore(local.constellation) as other:
        before = new_items(ALL)
        put(store, before)
        local.kill(places_of(local)[4])
        wait_until(lambda: all(one.ok for one in store.put(items)))
        keys = [key for key, _ in items]
        assert data_of(other.get_each(keys)) == [data for _, data in items]
        wait_until(lambda: other.stats().satellites_lost == 1, "it finds the loss, too")
        assert [one.status for one in other.get_each([before[0][0], keys[0]])] == ["miss", "done"]


def test_satellites_that_die_in_the_middle(start_sky: StartSky) -> None:
    local = start_sky(cache={"servers": 12, "parity": 2, "deadline_ms": 60_000}, satellite={"store_mib": 32})
    places = places_of(local)
    items = new_items(*[2_000_000] * 20)
    with SkyStore(local.constellation) as store:
        results = store.get_each(put(store, items))
        got = [next(results)]
        for server in (1, 8):
            local.kill(places[server])
        got += results
        assert [one.data == data for one, (_, data) in zip(got, items, strict=True)] == [True] * len(items)
        assert store.stats().degraded > 0
        assert store.stats().purges == 0
        opened = [store.opened(one, bytes) for one in got if one.is_degraded]
        assert None not in opened
        wait_until(lambda: store.is_mended)
        assert store.stats().puts_again > 0


def test_nobody_answers_any_more(start_sky: StartSky) -> None:
    local = start_sky(cache={"deadline_ms": 1000})
    items = new_items(*[10_000_000] * 4)
    with SkyStore(local.constellation) as store:
        results = store.get_each([*put(store, items), bytes(32)])
        assert next(results).ok
        for place in list(local.processes):
            local.kill(place)
        rest = [one.status for one in results]
        assert len(rest) == 4
        assert rest[2] in ("unanswered", "expired")  # what came before is there
        assert rest[3] == "miss"  # that was asked when satellites answered
        assert store.silent


def test_a_block_that_another_host_has_replaced(full_sky: LocalConstellation) -> None:
    def host(store: SkyStore, number: int) -> KeyValue:
        return KeyValue(store, "streamed", versions=Versions(lambda: 1_800_000_000_000_000 + number))

    with SkyStore(full_sky.constellation) as store, SkyStore(full_sky.constellation) as other:
        values = host(store, 0)
        assert values.put("name", b"old" * 10_000).ok
        [beside] = put(store, new_items(ALL))
        assert host(other, 1).put("name", b"new" * 20_000).ok
        key = values.key_of("name")
        [expected] = other.get([key])
        assert [one.data for one in store.get_each([beside, key, key])][1:] == [expected.data] * 2


@pytest.mark.parametrize("size", [500_000, 1_500_000])
def test_a_block_of_a_long_stream_that_another_host_has_replaced_by_one_of_another_length(start_sky: StartSky, size: int) -> None:
    """The bytes that are ahead are all taken when it is asked for again."""
    local = start_sky(satellite={"store_mib": 32})
    items = new_items(*[1_000_000] * 20)
    with SkyStore(local.constellation) as store, SkyStore(local.constellation) as other:
        keys = put(store, items)
        replaced = os.urandom(size)
        assert other.purge(keys[:1]).confirmed
        put(other, [(keys[0], replaced)])
        assert data_of(store.get_each(keys)) == [replaced, *(data for _, data in items[1:])]


def test_nothing_is_written_into_memory_of_a_caller_that_has_raised(start_sky: StartSky, stopped: Stopped) -> None:
    """Whoever keeps the exception keeps all that the call had."""
    local = start_sky(cache=LONG)
    items = new_items(ALL)
    memory = bytearray(ALL)

    def gives_up(done: int, total: int) -> None:
        raise OSError("enough")

    with SkyStore(local.constellation, timing=PATIENT) as store:
        keys = put(store, items)
        with stopped(local, places_of(local)[5]):
            with pytest.raises(OSError, match="enough") as kept:
                store.get(keys, gives_up, into=[memoryview(memory)])
            before = bytes(memory)
        assert store.get(keys)[0].ok
        assert memory == before
        assert kept.tb is not None


def test_other_gets_have_their_turn(start_sky: StartSky) -> None:
    """The links are slow. Four blocks of the stream may be under way: it is far from its end when another get is done."""
    cache = {"deadline_ms": 60_000, "uplink": "nearest"}
    local = start_sky(links={"rate_kbps": 100_000}, cache=cache, satellite={"store_mib": 32})
    items = new_items(*[4_000_000] * 14)
    with SkyStore(local.constellation) as store:
        keys = put(store, [*items, *new_items(ALL)])
        came: list[bool] = []

        def take_all() -> None:
            for one, (_, data) in zip(store.get_each(keys[:-1]), items, strict=True):
                came.append(one.data == data)

        thread = threading.Thread(target=take_all)
        thread.start()
        wait_until(lambda: came)
        assert store.get(keys[-1:])[0].ok
        assert len(came) < len(items)
        assert thread.is_alive()
        thread.join()
        assert came == [True] * len(items)


def test_several_threads_take_streams(start_sky: StartSky) -> None:
    local = start_sky(satellite={"store_mib": 32})
    items = new_items(*[1_000_000] * 12)
    wrong: list[object] = []
    with SkyStore(local.constellation) as store:
        keys = put(store, items)

        def work(number: int) -> None:
            mine = items[number:] + items[:number]
            for end in (len(mine), 3):
                results = store.get_each([key for key, _ in mine])
                for (_, data), one in zip(mine[:end], results, strict=False):
                    if one.data != data:
                        wrong.append(one)
                    if store.get([mine[0][0]])[0].data != mine[0][1]:  # in the middle of the stream
                        wrong.append(mine[0][0])
                results.close()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert keys == [key for key, _ in items]


def test_a_watch_sees_each_call_of_a_stream(start_sky: StartSky) -> None:
    local = start_sky()
    items = new_items(ALL, ALL)
    moved: list[tuple[bool, list[Status], int]] = []
    with SkyStore(
        local.constellation,
        watch=lambda one: moved.append((one.up, [each.status for each in one.transfers], sum(s.chunks for s in one.call.served))),
    ) as store:
        keys = put(store, items)
        assert all(one.ok for one in store.get_each(keys))
    down = [(statuses, chunks) for up, statuses, chunks in moved if not up]
    assert [status for statuses, _ in down for status in statuses] == ["done"] * 2
    assert sum(chunks for _, chunks in down) == 40


def test_an_error_of_the_watch_is_the_callers(start_sky: StartSky) -> None:
    def watch(moved: object) -> None:
        if failing:
            raise OSError("the watch")

    local, failing = start_sky(), False
    with SkyStore(local.constellation, watch=watch) as store:
        keys = put(store, new_items(ALL, ALL))
        failing = True
        with pytest.raises(OSError, match="the watch"):
            list(store.get_each(keys))
        failing = False
        assert all(one.ok for one in store.get_each(keys))
