"""`SkyStore` while handovers take longer than their rows: chunks are at the places of many rows."""

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from secrets import token_bytes

import pytest

from skymemory.link.timing import Timing
from skymemory.sky.entry_satellites import Route
from skymemory.sky.placement.track import Track
from skymemory.sky.whereabouts import Playing, Whereabouts
from skymemory.store.sky_store import SkyStore
from skymemory.testbed import replay
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.address import Satellite
from support.evictions import evict
from support.spread import shares_of
from support.waiting import PATIENT, wait_until

StartSky = Callable[..., LocalConstellation]
GRID = {"planes": 5, "slots": 9}
CACHE = {"servers": 9, "parity": 0, "deadline_ms": 60_000, "handover_s": 1.0}
"""A deadline that is long for such links: no get shall end because they are slow."""
SLOW = {"rate_kbps": 1000, "delay_us": 10_000}
"""what one satellite holds here takes some seconds over such a link"""
SLOWLY = Timing(silence_s=20.0)
"""Answers wait behind what is handed over, on links that all satellites share."""
CENTRES = [Satellite(2, 2), Satellite(3, 5), *(Satellite(3 + index % 2, 6) for index in range(7))]
"""away from where the blocks are, and then to and fro: in the end their places are those of no row of the last seven"""
ROW_MS = 400
LEAD_S = 8.0
BLOCKS = 40


def late_play(local: LocalConstellation) -> Playing:
    """Eight rows in three seconds."""
    times = [0, *(round(1000 * LEAD_S) + ROW_MS * index for index in range(len(CENTRES) - 1))]
    return Playing(Track.of(local.constellation.torus, list(zip(times, CENTRES, strict=True))), time.time())


def left(store: SkyStore) -> int:
    """Chunks that satellites say are still to be handed over."""
    routes = [Route(one, one) for one in store.constellation.torus.satellites()]
    return sum(one["handover_left"] for one in store.control.store_stats(routes, 10).values())


def test_nothing_is_missed_however_late_it_is(start_sky: StartSky, caplog: pytest.LogCaptureFixture) -> None:
    local = start_sky(constellation=GRID, cache={**CACHE, "centre": list(CENTRES[0])}, links=SLOW)
    items = {token_bytes(32): os.urandom(40_000) for _ in range(BLOCKS)}
    gone = bytes(32)  # its other chunk is at no satellite that stood in first, which would keep it
    playing = late_play(local)
    where = Whereabouts(local.constellation, playing)
    with SkyStore(local.constellation, playing=playing, timing=SLOWLY) as store:
        replay.upload(store.control, playing)
        assert all(result.ok for result in store.put([*items.items(), (gone, os.urandom(9_000))]))
        assert where.row(time.time()) == 1
        last_s = playing.started_unix_s + playing.track.rows[-1][0] / 1000
        time.sleep(max(0.0, last_s + 0.2 - time.time()))
        assert left(store) > 0  # else this would test nothing
        with SkyStore(local.constellation, playing=playing, timing=SLOWLY) as other, caplog.at_level(logging.WARNING):
            for key, data in items.items():  # by one that knows of none, and by one that does
                assert other.find([key])[0].entry is not None
                (result,) = store.get([key])
                assert (result.status, result.data) == ("done", data)
            chains = [[entry] for key in items if (entry := store.find([key])[0].entry) is not None]
            assert store.still_there(chains) == chains
            assert store.stats().purges == other.stats().purges == 0
        assert any("handed over for" in record.message for record in caplog.records) or not left(store)

        # Once all has come a block that is gone is missed, and its rest is purged, as ever
        wait_until(lambda: not left(store), "all is handed over", patience_s=120, pause_s=0.2)
        assert [result.status for result in store.get(list(items))] == ["done"] * len(items)
        entry = store.find([gone])[0].entry
        assert entry is not None
        victim = shares_of(local.constellation, gone, 9_000, where.servers(where.row(time.time())))[0]
        evict(store.control, [Route(victim, victim)], [gone])

        def is_purged() -> bool:
            assert [result.status for result in store.get([entry])] == ["miss"]
            return store.stats().purges == 1

        wait_until(is_purged, "the store has asked again who is late, and purges")


def test_satellites_log_that_a_handover_is_late_and_when_it_is_done(start_sky: StartSky, tmp_path: Path) -> None:
    local = start_sky(tmp_path, constellation=GRID, cache={**CACHE, "centre": list(CENTRES[0])}, links=SLOW)
    playing = Playing(Track.of(local.constellation.torus, [(0, CENTRES[0]), (2000, CENTRES[1])]), time.time())
    with SkyStore(local.constellation, playing=playing, timing=PATIENT) as store:
        assert all(result.ok for result in store.put([(token_bytes(32), os.urandom(40_000)) for _ in range(BLOCKS)]))
        replay.upload(store.control, playing)
        wait_until(lambda: left(store) == 0 and lines(tmp_path, "late handover done after"), patience_s=120, pause_s=0.2)
    late, done = lines(tmp_path, "handover late:"), lines(tmp_path, "late handover done after")
    assert late
    assert 0 < len(done) <= len(late)
    assert len(late) == len({name for name, _ in late})  # once for each satellite: it is the same handover all the time


def lines(logs: Path, text: str) -> list[tuple[str, str]]:
    """Names of logs, and lines of them that have a text."""
    return [(path.name, line) for path in logs.glob("*.log") for line in path.read_text().splitlines() if text in line]
