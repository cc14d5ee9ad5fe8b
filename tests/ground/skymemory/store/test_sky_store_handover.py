"""`SkyStore` while satellites hand over by the schedule on board."""

import os
import time
from collections.abc import Callable
from secrets import token_bytes

import pytest

from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.sky.placement.track import Track
from skymemory.sky.whereabouts import Playing, Whereabouts
from skymemory.store.sky_store import SkyStore
from skymemory.testbed import replay
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.address import Satellite
from support.satellites import is_whole_at
from support.waiting import PATIENT

StartSky = Callable[..., LocalConstellation]
CENTRES = [Satellite(2, 3), Satellite(2, 4), Satellite(3, 4), Satellite(3, 5), Satellite(4, 6), Satellite(4, 7)]
ROW_S = 4.0
LEAD_S = 8.0
"""from when a schedule is made to its second row: by then satellites have it"""
BLOCKS_MAX = 40
"""what has to move within a row's time does not depend on how fast this machine puts"""
GRID = {"planes": 5, "slots": 9}
CACHE = {"servers": 9, "deadline_ms": 20_000}


def playing_on(sky: Constellation) -> Playing:
    """A schedule whose second row comes in a moment."""
    track = Track.of(sky.torus, [(round(1000 * ROW_S * index), centre) for index, centre in enumerate(CENTRES)])
    return Playing(track, time.time() + LEAD_S - ROW_S)


def blocks(count: int) -> dict[bytes, bytes]:
    return {token_bytes(32): os.urandom(100_001) for _ in range(count)}


@pytest.mark.parametrize("layout", ["rotation_hop", "rotation", "all_planes"])
def test_gets_and_puts_go_on_and_nothing_is_missed(start_sky: StartSky, layout: str) -> None:
    sky = start_sky(constellation=GRID, cache={**CACHE, "layout": layout}).constellation
    playing = playing_on(sky)
    where = Whereabouts(sky, playing)
    end_s = playing.started_unix_s + ROW_S * (len(CENTRES) + 1)
    with SkyStore(sky, playing=playing, timing=PATIENT) as store, SkyStore(sky, playing=playing, timing=PATIENT) as other:
        items = blocks(20)
        assert all(result.ok for result in store.put(list(items.items())))
        replay.upload(store.control, playing)
        assert where.row(time.time()) == 1
        seen: set[int] = set()
        while time.time() < end_s:
            seen.add(where.row(time.time()))
            for host in (store, other):
                assert [result.status for result in host.get(list(items))] == ["done"] * len(items)
            more = blocks(1) if len(items) < BLOCKS_MAX else dict([next(iter(items.items()))])
            assert all(result.ok for result in store.put(list(more.items())))
            items |= more
        assert seen == set(range(1, len(CENTRES) + 1))
        with SkyStore(sky, playing=playing, timing=PATIENT) as new:
            assert [result.data for result in new.get(list(items))] == list(items.values())
        assert store.stats().purges == other.stats().purges == 0
        every = [Route(one, one) for one in sky.torus.satellites()]
        assert sum(counters["handovers"] for counters in store.control.store_stats(every, 10).values()) > 0


def test_what_was_prefetched_does_not_move_again(start_sky: StartSky) -> None:
    sky = start_sky(constellation=GRID, cache=CACHE).constellation
    playing = playing_on(sky)
    where = Whereabouts(sky, playing)
    row = 5
    with SkyStore(sky, playing=playing, timing=PATIENT) as store:
        items = blocks(10)
        assert all(result.ok for result in store.put(list(items.items())))
        replay.upload(store.control, playing)
        results = store.prefetch(list(items), playing.started_unix_s + ROW_S * (row - 1) + 0.1)
        assert {(result.status, result.row) for result in results} == {("done", row)}
        entries = [entry for key in items if (entry := store.find([key])[0].entry) is not None]
        then = where.servers(row)
        while where.row(time.time()) <= row:
            are_there = all(is_whole_at(store.control, entry, then) for entry in entries)
            assert are_there or where.row(time.time()) > row
            assert [result.data for result in store.get(list(items))] == list(items.values())
        assert [result.data for result in store.get(list(items))] == list(items.values())
        assert store.stats().purges == 0
    with SkyStore(sky, playing=playing, timing=PATIENT) as other:
        assert [result.data for result in other.get(list(items))] == list(items.values())
