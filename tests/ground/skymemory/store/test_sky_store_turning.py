"""`SkyStore` while the window moves, on real satellites; the tests play the schedule on board."""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from secrets import token_bytes

import pytest

from skymemory.common import defaults
from skymemory.link.control import ControlPlane
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.sky.placement.track import Track
from skymemory.sky.whereabouts import Playing, Whereabouts
from skymemory.store.keyvalue import KeyValue
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.address import Satellite
from support.evictions import evict
from support.satellites import forget, held, is_whole_at, migrate
from support.waiting import wait_until

StartSky = Callable[..., LocalConstellation]
Stopped = Callable[..., AbstractContextManager[None]]
CENTRES = [Satellite(2, 3), Satellite(2, 4), Satellite(2, 5), Satellite(2, 6)]
ROW_S = 10_000
AT_ONCE_S, HANDOVER_S, LATER_S = 0.2, 5.0, 1000.0  # since the time of a row


def turning(sky: Constellation, row: int, since_s: float = LATER_S) -> Playing:
    """A schedule whose row `row` holds since then."""
    track = Track.of(sky.torus, [(1000 * ROW_S * index, centre) for index, centre in enumerate(CENTRES)])
    return Playing(track, time.time() - (row - 1) * ROW_S - since_s)


def start_time(playing: Playing, row: int) -> float:
    return playing.started_unix_s + (row - 1) * ROW_S


def blocks(count: int = 6, size: int = 120_001) -> dict[bytes, bytes]:
    return {token_bytes(32): os.urandom(size) for _ in range(count)}


def moved_servers(sky: Constellation, before: int, after: int) -> list[tuple[Satellite, Satellite]]:
    where = Whereabouts(sky, turning(sky, 1))
    pairs = zip(where.servers(before), where.servers(after), strict=True)
    return [(source, target) for source, target in pairs if source != target]


def hand_over(sky: Constellation, keys: Sequence[bytes], before: int, after: int, servers: slice = slice(None)) -> None:
    """What satellites do at a row's time, for some of the servers that move."""
    moves = moved_servers(sky, before, after)[servers]
    with ControlPlane(sky) as control:
        for source, target in moves:
            assert all(migrate(control, Route(source, source), target, key).ok for key in keys)
        sources = [Route(source, source) for source in dict.fromkeys(source for source, _ in moves)]
        wait_until(lambda: not any(any(held(control, sources, key)) for key in keys), "all has gone")


def check_all_there(store: SkyStore, items: dict[bytes, bytes]) -> None:
    assert [result.status for result in store.get(list(items))] == ["done"] * len(items)
    assert [result.data for result in store.get(list(items))] == list(items.values())
    entries = store.find_longest(list(items)).entries
    for count in range(1, len(items) + 1):  # of each beginning the last block is asked for
        assert len(store.find_longest(list(items)[:count], fresh=True).entries) == count
    assert store.still_there([entries]) == [entries]
    assert store.stats().purges == 0


@pytest.fixture
def sky(start_sky: StartSky) -> Constellation:
    """Five planes, so that the window is smaller than the torus; a chunk moves in its plane."""
    return start_sky(constellation={"planes": 5, "slots": 9}, cache={"servers": 9}).constellation


@pytest.fixture
def plain_sky(sky: Constellation) -> Constellation:
    """The same without parity, so that one chunk that is gone is a miss."""
    return sky.replace(cache={"parity": 0})


def test_blocks_go_to_the_window_of_now(sky: Constellation) -> None:
    items = blocks()
    with SkyStore(sky, playing=turning(sky, 2)) as store:
        assert all(result.ok for result in store.put(list(items.items())))
        check_all_there(store, items)
        (entry, *_) = store.find_longest(list(items)).entries
        assert is_whole_at(store.control, entry, Whereabouts(sky, turning(sky, 2)).servers(2))
    with SkyStore(sky) as stays:
        assert [result.status for result in stays.get(list(items))] == ["miss"] * len(items)


@pytest.mark.parametrize("uplink", ["window", "nearest"])
@pytest.mark.parametrize("since_s", [HANDOVER_S, LATER_S])
def test_whatever_has_moved_so_far_blocks_are_found(sky: Constellation, uplink: str, since_s: float) -> None:
    sky = sky.replace(cache={"uplink": uplink})
    items = blocks()
    with SkyStore(sky, playing=turning(sky, 1)) as store:
        assert all(result.ok for result in store.put(list(items.items())))
    moves = moved_servers(sky, 1, 2)
    assert 0 < len(moves) < sky.cache.servers
    for done in range(len(moves) + 1):
        if done:
            hand_over(sky, list(items), 1, 2, slice(done - 1, done))
        with SkyStore(sky, playing=turning(sky, 2, since_s)) as store:
            if since_s == HANDOVER_S:
                check_all_there(store, items)
                continue
            entries = SkyStore(sky, playing=turning(sky, 2, HANDOVER_S)).find_longest(list(items)).entries
            assert [result.data for result in store.get(entries)] == list(items.values())  # also what is late
            assert store.stats().purges == 0
            if done == len(moves):
                check_all_there(store, items)


@pytest.mark.parametrize("since_s", [AT_ONCE_S, HANDOVER_S, LATER_S])
@pytest.mark.parametrize("size", [10, 120_001])
@pytest.mark.parametrize("row", [2, 3])
def test_a_value_put_anew_while_its_old_version_still_has_to_move(
    sky: Constellation, row: int, size: int, since_s: float
) -> None:
    """In row 3 the first server moves, which a lookup asks."""
    with SkyStore(sky, playing=turning(sky, row - 1)) as store:
        assert KeyValue(store).put("name", b"o" * size).ok
        key = KeyValue(store).key_of("name")
    playing = turning(sky, row, since_s)
    moves = moved_servers(sky, row - 1, row)
    with SkyStore(sky, playing=playing) as store:
        assert KeyValue(store).put("name", b"n" * size).ok
        for _ in range(2):
            with SkyStore(sky, playing=playing) as other:
                assert KeyValue(other).get("name") == b"n" * size
            for source, target in moves:
                migrate(store.control, Route(source, source), target, key)  # what is left of the old version
    assert row == 2 or moves[0][0] == Whereabouts(sky, playing).servers(row - 1)[0]


def test_the_only_server_may_move(sky: Constellation) -> None:
    """Then the lookup has to find it as well."""
    sky = sky.replace(cache={"servers": 1, "parity": 0})
    items = blocks()
    with SkyStore(sky, playing=turning(sky, 1)) as store:
        store.put(list(items.items()))
    for has_moved in (False, True):
        if has_moved:
            hand_over(sky, list(items), 1, 2)
        with SkyStore(sky, playing=turning(sky, 2, HANDOVER_S)) as store:
            check_all_there(store, items)
    with SkyStore(sky, playing=turning(sky, 2)) as store:
        check_all_there(store, items)


def test_a_moment_before_its_time_a_window_may_be_there(sky: Constellation) -> None:
    items = blocks()
    with SkyStore(sky, playing=turning(sky, 1)) as store:
        store.put(list(items.items()))
        hand_over(sky, list(items), 1, 2)
        lost = store.get(list(items))
        assert [result.status for result in lost] == ["miss"] * len(items)  # nobody's clock is that fast
    items = blocks()
    with SkyStore(sky, playing=turning(sky, 1, ROW_S - defaults.HOST_SKEW_US / 1e6)) as store:
        store.put(list(items.items()))
        for done in range(len(moved_servers(sky, 1, 2))):
            hand_over(sky, list(items), 1, 2, slice(done, done + 1))
            check_all_there(store, items)


def test_a_share_that_is_gone_from_all_places_is_purged_from_all(plain_sky: Constellation) -> None:
    sky = plain_sky
    items = blocks(2)
    gone, whole = items
    with SkyStore(sky, playing=turning(sky, 1)) as store:
        store.put(list(items.items()))
    source, _ = moved_servers(sky, 1, 2)[0]
    with SkyStore(sky, playing=turning(sky, 2, HANDOVER_S)) as store:
        entries = store.find_longest([gone, whole]).entries
        assert evict(store.control, [Route(source, source)], [gone]).chunks > 0
        assert [result.status for result in store.get(entries)] == ["miss", "done"]
        assert store.stats().purges == 0  # what is still at the old places may be on its way
        every = [Route(one, one) for one in sky.torus.satellites()]
        hand_over(sky, [whole], 1, 2, slice(1, 2))
        assert store.purge([whole]) == (entries[1].chunk_total, True)  # half here, half there
        assert evict(store.control, every, [whole]) == (0, True)
        hand_over(sky, [gone], 1, 2, slice(1, None))

        def is_purged() -> bool:  # satellites' words that they have something to hand over count for a moment
            assert [result.status for result in store.get(entries[:1])] == ["miss"]
            return store.stats().purges >= 2

        wait_until(is_purged)
        assert evict(store.control, every, [gone]) == (0, True)


def test_an_old_place_that_is_lost_takes_no_others_with_it(start_sky: StartSky) -> None:
    cache = {"servers": 9, "parity": 0, "deadline_ms": 2000}
    local = start_sky(constellation={"planes": 5, "slots": 9}, cache=cache)
    sky = local.constellation
    items = blocks()
    with SkyStore(sky, playing=turning(sky, 1)) as store:
        assert all(result.ok for result in store.put(list(items.items())))
    source, _ = moved_servers(sky, 1, 2)[0]
    hand_over(sky, list(items)[:3], 1, 2)
    with SkyStore(sky, playing=turning(sky, 2, HANDOVER_S)) as store:
        entries = store.find_longest(list(items)).entries
        assert len(entries) == len(items)
        local.kill(source)
        statuses = [result.status for result in store.get(entries)]
        assert statuses[:3] == ["done"] * 3
        assert set(statuses[3:]) <= {"miss", "expired"}
        stats = store.stats()
        assert (stats.satellites_lost, stats.purges) == (1, 0)  # it is silent; others may reach it
        again = blocks()
        assert all(result.ok for result in store.put(list(again.items())))
        assert [result.data for result in store.get(list(again))] == list(again.values())


# ---- prefetched ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", [2, 3, 4])
def test_a_block_waits_where_it_will_be_needed(sky: Constellation, row: int) -> None:
    items = blocks()
    playing = turning(sky, 1)
    with SkyStore(sky, playing=playing) as store:
        store.put(list(items.items()))
        results = store.prefetch(list(items), start_time(playing, row) + 1)
        moved = len(moved_servers(sky, 1, row))
        assert [(one.ok, one.status, one.row, one.moved) for one in results] == [(True, "done", row, moved)] * len(items)
        assert {entry.epoch for entry in store.find_longest(list(items)).entries} == {row}
        check_all_there(store, items)  # meanwhile
        assert store.prefetch(list(items), start_time(playing, row) + 1)[0].ok  # once more: it is there already
    for since_s in (HANDOVER_S, LATER_S):
        with SkyStore(sky, playing=turning(sky, row, since_s)) as store:
            check_all_there(store, items)
            assert store.prefetch(list(items), time.time() + 1)[0].moved == 0
    with SkyStore(sky, playing=playing) as store:  # this host does not know
        found = store.find_longest(list(items)).entries
        assert all(entry.epoch == row for entry in found)  # shares that did not have to move too


@pytest.mark.parametrize("since_s", [HANDOVER_S, LATER_S])
def test_what_is_late_for_one_window_can_be_prefetched_for_the_next(sky: Constellation, since_s: float) -> None:
    items = blocks()
    with SkyStore(sky, playing=turning(sky, 1)) as store:
        store.put(list(items.items()))
        entries = store.find_longest(list(items)).entries
    hand_over(sky, list(items)[:3], 1, 2)
    with SkyStore(sky, playing=turning(sky, 2, since_s)) as store:
        store.index.add(entries)
        results = store.prefetch(list(items), time.time() + ROW_S)
        assert {(one.status, one.moved) for one in results} == {("done", len(moved_servers(sky, 2, 3)))}
        check_all_there(store, items)
    with SkyStore(sky, playing=turning(sky, 3)) as store:
        check_all_there(store, items)


def test_what_is_two_rows_late_can_be_prefetched_for_the_next(sky: Constellation) -> None:
    """Nobody has handed over anything: shares are at places that neither this row nor the one before has."""
    items = blocks()
    with SkyStore(sky, playing=turning(sky, 1)) as store:
        assert all(result.ok for result in store.put(list(items.items())))
        entries = store.find_longest(list(items)).entries
    with SkyStore(sky, playing=turning(sky, 3)) as store:
        store.index.add(entries)
        assert {one.status for one in store.prefetch(list(items), time.time() + ROW_S)} == {"done"}
        assert [result.data for result in store.get(list(items))] == list(items.values())
    with SkyStore(sky, playing=turning(sky, 4)) as store:
        check_all_there(store, items)


def test_a_value_waits_where_it_will_be_needed(sky: Constellation) -> None:
    playing, value = turning(sky, 1), os.urandom(100_000)
    with SkyStore(sky, playing=playing) as store:
        for name in ("name", "deleted"):
            assert KeyValue(store).put(name, value).ok
        assert KeyValue(store).delete("deleted")
        here, *nowhere = KeyValue(store).prefetch(["name", "no name", "deleted"], start_time(playing, 3))
        assert (here.status, here.row, [one.status for one in nowhere]) == ("done", 3, ["miss", "miss"])
        assert here.moved > 0
        assert KeyValue(store).get("name") == value
    with SkyStore(sky, playing=turning(sky, 3)) as store:
        assert KeyValue(store).get("name") == value


def test_a_block_can_be_prefetched_anew_for_another_time(sky: Constellation) -> None:
    items = blocks()
    playing = turning(sky, 1)
    with SkyStore(sky, playing=playing) as store:
        store.put(list(items.items()))
        for row in (3, 4, 2):
            assert {one.status for one in store.prefetch(list(items), start_time(playing, row) + 1)} == {"done"}
            check_all_there(store, items)


def test_who_was_told_of_a_block_before_it_was_prefetched_anew_finds_it(sky: Constellation) -> None:
    items = blocks()
    playing = turning(sky, 1)
    with SkyStore(sky, playing=playing) as store:
        entries = [result.entry for result in store.put(list(items.items())) if result.entry is not None]
        assert all(one.ok for one in store.prefetch(list(items), start_time(playing, 4) + 1))
        assert [result.status for result in store.get(entries)] == ["done"] * len(items)
        check_all_there(store, items)


def test_a_purge_spares_what_waits_for_a_row_to_come(sky: Constellation) -> None:
    items = blocks()
    playing = turning(sky, 1)
    with SkyStore(sky, playing=playing) as store, SkyStore(sky, playing=playing) as other:
        store.put(list(items.items()))
        entries = other.find_longest(list(items)).entries
        assert all(one.ok for one in store.prefetch(list(items), start_time(playing, 3) + 1))
        routes = [Route(one, one) for one in sky.torus.satellites()]
        for epoch, is_held in ((1, True), (2, True), (3, False)):
            for one in entries:
                limits = {"version": one.version, "content": one.content, "epoch": epoch}
                purged = forget(other.control, routes, [one.key], sky.cache.tenant, **limits)
                assert (purged.chunks == 0) == is_held
            if is_held:
                check_all_there(store, items)
        assert {result.status for result in store.get(list(items))} == {"miss"}


@pytest.mark.parametrize("row", [2, 3, 4])
def test_another_host_that_does_not_know_destroys_nothing(sky: Constellation, row: int) -> None:
    items = blocks()
    playing = turning(sky, 1)
    with SkyStore(sky, playing=playing) as store, SkyStore(sky, playing=playing) as other:
        store.put(list(items.items()))
        assert len(other.find_longest(list(items)).entries) == len(items)
        assert all(one.ok for one in store.prefetch(list(items), start_time(playing, row) + 1))
        if len(moved_servers(sky, 1, row)) < sky.cache.servers:  # those that are the same in both rows tell
            check_all_there(other, items)
            assert other.stats().purges == 0
        else:
            assert {result.status for result in other.get(list(items))} == {"miss"}
        check_all_there(store, items)


def test_blocks_in_advance_and_others_come_in_one_get(sky: Constellation) -> None:
    items = blocks()
    playing = turning(sky, 1)
    with SkyStore(sky, playing=playing) as store:
        store.put(list(items.items()))
        assert store.prefetch(list(items)[::2], start_time(playing, 4))[0].ok
        check_all_there(store, items)


def test_a_block_that_is_not_there_is_not_waited_for(plain_sky: Constellation) -> None:
    sky = plain_sky
    items = blocks(2)
    playing = turning(sky, 1)
    broken, whole = items
    with SkyStore(sky, playing=playing) as store:
        store.put(list(items.items()))
        source, _ = moved_servers(sky, 1, 3)[0]
        evict(store.control, [Route(source, source)], [broken])
        results = store.prefetch([broken, whole, token_bytes(32)], start_time(playing, 3), deadline_s=600)
        assert [(one.ok, one.status) for one in results] == [(False, "miss"), (True, "done"), (False, "miss")]
        assert store.get([whole])[0].data == items[whole]


def test_a_time_that_is_past_is_refused(sky: Constellation) -> None:
    with SkyStore(sky) as store:
        for at_s in (time.time() - 1, float("nan")):
            with pytest.raises(ValueError, match="is past"):
                store.prefetch([bytes(32)], at_s)
        with pytest.raises(ValueError, match="key of 3 bytes"):
            store.prefetch([b"key"], time.time() + 10)


def test_without_a_schedule_all_is_in_its_place(sky: Constellation) -> None:
    items = blocks(1)
    with SkyStore(sky) as store:
        store.put(list(items.items()))
        (result,) = store.prefetch(list(items), time.time() + 1000)
        assert (result.ok, result.row, result.moved) == (True, 0, 0)
        assert store.stats().prefetches == 1


def test_a_silent_sky_prefetches_nothing(start_sky: StartSky, stopped: Stopped) -> None:
    local = start_sky(cache={"deadline_ms": 2000})
    playing = turning(local.constellation.replace(constellation={"slots": 9}), 1)
    playing = replace(playing, track=Track.of(local.constellation.torus, [(0, Satellite(2, 3)), (1000 * ROW_S, Satellite(2, 4))]))
    items = blocks(1)
    with SkyStore(local.constellation, playing=playing) as store:
        assert store.put(list(items.items()))[0].ok
        with stopped(local):
            statuses = {store.prefetch(list(items), start_time(playing, 2), deadline_s=5.0)[0].status for _ in range(2)}
            assert statuses <= {"expired", "unanswered"}
            assert store.silent
        assert store.stats().purges == 0


# ---- a host on board ------------------------------------------------------------------------------------------------


def test_on_board_all_goes_through_one_satellite_and_nothing_moves(start_sky: StartSky) -> None:
    local = start_sky(
        constellation={"planes": 5, "slots": 9}, cache={"servers": 9, "host": "satellite", "layout": "hop", "centre": [4, 6]}
    )
    sky = local.constellation
    items = blocks()
    placed: dict[Satellite, int] = {}
    for row in (1, 2, 4):
        with SkyStore(sky, playing=turning(sky, row, HANDOVER_S)) as store:
            if row == 1:
                assert all(result.ok for result in store.put(list(items.items())))
            check_all_there(store, items)
            assert store.prefetch(list(items), time.time() + 5 * ROW_S)[0].moved == 0
    with ControlPlane(sky) as control:
        ways = [Route(one, sky.cache.centre) for one in sky.torus.satellites()]
        for satellite, counters in control.store_stats(ways, 10).items():
            placed |= {satellite: counters["chunks"]} if counters["chunks"] else {}
            assert counters["migrated_in"] == counters["migrated_out"] == 0
        assert list(placed) == sorted(Whereabouts(sky).servers(0))
        for satellite, stats in control.link_stats(ways, 10).items():
            assert (stats.links["ground"]["rx_packets"] > 0) == (satellite == sky.cache.centre)


def test_on_board_a_lost_server_is_replaced_and_the_own_satellite_is_not(start_sky: StartSky) -> None:
    local = start_sky(cache={"host": "satellite", "layout": "hop", "deadline_ms": 2000})
    sky = local.constellation
    items = blocks(2)
    with SkyStore(sky) as store:
        local.kill(Whereabouts(sky).servers(0)[5])
        assert all(result.ok for result in store.put(list(items.items())))
        check_all_there(store, items)
        local.kill(sky.cache.centre)
        assert {result.status for result in store.get(list(items))} <= {"expired", "unanswered"}
        assert store.silent
