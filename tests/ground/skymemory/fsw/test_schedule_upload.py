"""A schedule uploaded by commands over RELAY, and satellites that follow it by themselves."""

import os
import time
from collections.abc import Callable
from ctypes import LittleEndianStructure
from itertools import count
from secrets import token_bytes

import crcmod

from skymemory.fsw.messages import Message
from skymemory.fsw.structures import (
    KVC_CMD_MID,
    KVC_COMMAND_ROWS,
    KvcFunctionCode,
    KvcScheduleBegin,
    KvcScheduleCommit,
    KvcScheduleRow,
    KvcScheduleRows,
)
from skymemory.link.control import ControlPlane
from skymemory.sky.entry_satellites import Route
from skymemory.sky.placement.track import Track
from skymemory.sky.whereabouts import Playing, Whereabouts
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.address import Satellite
from support.satellites import held
from support.spread import shares_of
from support.waiting import wait_until

SERVERS, ROW_S = 6, 1000
CENTRES = [Satellite(2, 3), Satellite(2, 4), Satellite(3, 5), Satellite(1, 1)]  # along the plane, to another one, over both seams
ROTATION = 1  # SKY_LAYOUT_ROTATION
crc32c = crcmod.mkCrcFun(0x11EDC6F41, initCrc=0, rev=True, xorOut=0xFFFFFFFF)
ids = count(1)


def routes_of(local: LocalConstellation) -> list[Route]:
    return [Route(satellite, satellite) for satellite in local.constellation.torus.satellites()]


def upload(local: LocalConstellation, control: ControlPlane, track: Track, age_s: float) -> None:
    """To every satellite; the order of the pieces does not matter."""
    torus, number = local.constellation.torus, next(ids)
    rows = (KvcScheduleRow * len(track.rows))(*(KvcScheduleRow(at_ms, *cell) for at_ms, cell in track.rows))
    pieces: list[tuple[int, LittleEndianStructure]] = [
        (
            KvcFunctionCode.SCHEDULE_BEGIN,
            KvcScheduleBegin(number, round(1000 * age_s), torus.planes, torus.slots, ROTATION, SERVERS, len(rows)),
        )
    ]
    for first in reversed(range(0, len(rows), KVC_COMMAND_ROWS)):
        some = rows[first : first + KVC_COMMAND_ROWS]
        piece = KvcScheduleRows(number, first + 1, len(some), (KvcScheduleRow * KVC_COMMAND_ROWS)(*some))
        pieces.append((KvcFunctionCode.SCHEDULE_ROWS, piece))
    pieces.append((KvcFunctionCode.SCHEDULE_COMMIT, KvcScheduleCommit(number, crc32c(bytes(rows)))))
    for code, payload in pieces:
        answers = control.relay(routes_of(local), Message(KVC_CMD_MID, bytes(payload), code).encode(), 10)
        assert all(answer is not None and answer.ok for answer in answers)


def test_blocks_follow_an_uploaded_schedule(start_sky: Callable[..., LocalConstellation]) -> None:
    local = start_sky(cache={"servers": SERVERS, "centre": list(CENTRES[0]), "layout": "rotation"})
    track = Track.of(local.constellation.torus, [(1000 * ROW_S * i, centre) for i, centre in enumerate(CENTRES)])
    data = {token_bytes(32): os.urandom(100_001) for _ in range(4)}
    with SkyStore(local.constellation) as store, ControlPlane(local.constellation) as control:
        store.put(list(data.items()))  # by the layout in the file, which is that of the first row
        chunks = sum(stats["chunks"] for stats in control.store_stats(routes_of(local), 10).values())
        for row in range(1, len(CENTRES) + 1):
            age_s = (row - 1) * ROW_S + ROW_S / 2
            upload(local, control, track, age_s)
            playing = Playing(track, time.time() - age_s)
            homes = set(Whereabouts(local.constellation, playing).servers(row))

            def is_at_home(row: int = row, homes: set[Satellite] = homes) -> bool:
                stats = control.store_stats(routes_of(local), 10)
                return (
                    all((one["row"], one["rows"]) == (row, len(CENTRES)) for one in stats.values())
                    and sum(one["chunks"] for one in stats.values()) == chunks
                    and {satellite for satellite, one in stats.items() if one["chunks"]} == homes
                )

            wait_until(is_at_home)
            with SkyStore(local.constellation, playing=playing) as reader:
                assert [result.data for result in reader.get(list(data))] == list(data.values())
        moved = sum(stats["migrated_out"] for stats in control.store_stats(routes_of(local), 10).values())
        assert moved >= 4  # some chunks of each block, at each step


def test_blocks_of_a_host_on_board_stay(start_sky: Callable[..., LocalConstellation]) -> None:
    local = start_sky(cache={"servers": SERVERS, "centre": list(CENTRES[0]), "layout": "rotation"})
    on_board = local.constellation.replace(cache={"host": "satellite", "layout": "hop"})
    track = Track.of(local.constellation.torus, [(1000 * ROW_S * i, centre) for i, centre in enumerate(CENTRES)])
    ours, theirs = token_bytes(32), token_bytes(32)
    with SkyStore(local.constellation) as store, SkyStore(on_board) as host, ControlPlane(local.constellation) as control:
        store.put([(ours, os.urandom(100_001))])
        host.put([(theirs, data := os.urandom(100_001))])
        upload(local, control, track, 2.5 * ROW_S)
        homes = set(Whereabouts(local.constellation, Playing(track, time.time() - 2.5 * ROW_S)).servers(3))
        wait_until(
            lambda: (
                {at.satellite for at, one in zip(routes_of(local), held(control, routes_of(local), ours), strict=True) if one}
                == homes
            )
        )
        assert [result.data for result in host.get([theirs])] == [data]


def test_a_share_lost_by_a_restart_takes_its_blocks(start_sky: Callable[..., LocalConstellation]) -> None:
    """Nobody asks for them: satellites find out by themselves."""
    cache = {"servers": SERVERS, "parity": 0, "centre": list(CENTRES[0]), "layout": "rotation", "deadline_ms": 2000}
    local = start_sky(satellite={"scrub_s": 1, "gossip": True}, cache=cache)
    track = Track.of(local.constellation.torus, [(0, CENTRES[0])])
    servers = Whereabouts(local.constellation, Playing(track, time.time())).servers(1)
    broken = token_bytes(32)
    victim = shares_of(local.constellation, broken, 100_001, servers)[-1]  # it has two of the 17 chunks
    keys = (token_bytes(32) for _ in count())
    whole = next(key for key in keys if shares_of(local.constellation, key, 9, servers)[0] != victim)
    with SkyStore(local.constellation) as store, ControlPlane(local.constellation) as control:
        assert all(result.ok for result in store.put([(broken, bytes(100_001)), (whole, b"one chunk")]))
        local.kill(victim)
        local.restart(victim)
        upload(local, control, track, 1.0)
        wait_until(lambda: sum(stats["chunks"] for stats in control.store_stats(routes_of(local), 10).values()) == 1)
        stats = control.store_stats(routes_of(local), 10).values()
        assert sum(one["scrubbed"] + one["gossip_purged"] for one in stats) == 17 - 2  # all but the chunks that were lost
        assert not any(one["purges"] for one in stats)
        assert store.get([whole])[0].data == b"one chunk"


def test_lost_shares_of_blocks_with_parity_come_back(start_sky: Callable[..., LocalConstellation]) -> None:
    """Two satellites come back empty and without a schedule. They are filled again, so that two others may be lost."""
    cache = {"servers": SERVERS, "parity": 2, "centre": list(CENTRES[0]), "layout": "rotation", "deadline_ms": 20_000}
    local = start_sky(satellite={"scrub_s": 1, "gossip": True}, cache=cache)
    track = Track.of(local.constellation.torus, [(0, CENTRES[0])])
    data = {token_bytes(32): os.urandom(100_001 - 17 * i) for i in range(4)} | {bytes(32): b"small"}  # at the first three servers
    with SkyStore(local.constellation) as store, ControlPlane(local.constellation) as control:

        def counted(name: str) -> int:
            return sum(stats[name] for stats in control.store_stats(routes_of(local), 10).values())

        assert all(result.ok for result in store.put(list(data.items())))
        upload(local, control, track, 1.0)
        chunks = counted("chunks")
        victims = Whereabouts(local.constellation, Playing(track, time.time())).servers(1)
        for victim in victims[1:3]:
            local.kill(victim)
            local.restart(victim)
        lost = chunks - counted("chunks")
        wait_until(lambda: counted("chunks") == chunks and counted("repaired") >= lost)
        assert counted("degraded") >= len(data)
        assert not any(counted(name) for name in ("scrubbed", "gossip_purged", "purges", "evictions"))
        for victim in (victims[0], victims[4]):
            local.kill(victim)
        assert [result.data for result in store.get(list(data))] == list(data.values())


def test_a_schedule_of_many_rows(start_sky: Callable[..., LocalConstellation]) -> None:
    """Three segments, some of whose pieces go twice."""
    local = start_sky()
    track = Track.of(local.constellation.torus, [(100 * i, CENTRES[i % 2]) for i in range(2800)])
    with ControlPlane(local.constellation) as control:
        upload(local, control, track, 250.0)
        wait_until(lambda: all(stats["rows"] == 2800 for stats in control.store_stats(routes_of(local), 10).values()))
        rows = {stats["row"] for stats in control.store_stats(routes_of(local), 10).values()}
        assert min(rows) > 2500
        upload(local, control, track, 0.0)
        wait_until(lambda: all(0 < stats["row"] < 2500 for stats in control.store_stats(routes_of(local), 10).values()))
