"""A put at a stand-in names the satellite whose share it is, in what really goes to satellites."""

import os
import time
from collections.abc import Callable
from hashlib import sha256

import pytest

from skymemory.sky.placement.track import Track
from skymemory.sky.whereabouts import Playing, Whereabouts
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import NOWHERE
from support.recorded_sky import RecordedSky
from support.spread import shares_of
from support.waiting import wait_until

ROW_S = 10_000
"""Seconds of a row of the schedule, which no test outlasts."""


def items(name: str) -> dict[bytes, bytes]:
    """A small block, which lies on three servers, and a large one, of which each server has a share."""
    return {sha256(f"{name} {size}".encode()).digest(): os.urandom(size) for size in (100, 300_000)}


@pytest.mark.parametrize(
    ("cache", "turns"),
    [({}, False), ({}, True), ({"layout": "hop"}, False), ({"servers": 15}, True), ({"parity": 0}, False)],
    ids=str,
)
def test_puts_at_stand_ins_name_the_home(
    start_sky: Callable[..., LocalConstellation], cache: dict[str, object], turns: bool
) -> None:
    """With fifteen servers every satellite is one, and some have the shares of lost ones as well."""
    local = start_sky(cache={"deadline_ms": 2000} | cache)
    sky = local.constellation
    track = Track.of(sky.torus, [(0, Satellite(2, 3)), (1000 * ROW_S, Satellite(2, 2))])
    playing = Playing(track, time.time() - 1.1 * ROW_S) if turns else None
    servers = Whereabouts(sky, playing).servers(2 if turns else 0)
    lost = set(servers[4:6])
    with RecordedSky(sky) as recorded, SkyStore(recorded.constellation, playing=playing) as store:
        for satellite in lost:
            local.kill(satellite)
        store.put(list(items("before").items()))  # by this the host finds out
        wait_until(lambda: store.stats().satellites_lost == len(lost))
        blocks = {**items("after"), **items("and after")}
        assert all(one.ok for one in store.put(list(blocks.items())))
        assert [one.data for one in store.get(list(blocks))] == [*blocks.values()]
        sent = recorded.sent()
    named = set()
    for packet in sent:
        if packet.op != icd.OP_PUT:
            assert packet.home == NOWHERE
        else:
            shares = shares_of(sky, packet.key, packet.block_len, servers)
            home = shares[packet.chunk_id % len(servers)]
            assert packet.home == (NOWHERE if packet.dst == home else home)
            assert packet.dst == home or home in lost
            named |= {packet.home} - {NOWHERE}
    assert named == lost
