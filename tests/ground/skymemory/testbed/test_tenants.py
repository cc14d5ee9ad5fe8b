"""Quotas of tenants on real satellites: one tenant's puts evict nobody else's blocks."""

import os
import socket
import time
from collections.abc import Callable
from hashlib import sha256

import pytest

from skymemory.cli.status_report import collect
from skymemory.link.control import ControlPlane
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.sky.file_sections import OTHERS
from skymemory.sky.placement.core_library import crc32c
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import GROUND_PLANE, Packet
from support.openings import ask_cookie
from support.waiting import PATIENCE_S, wait_until

StartSky = Callable[..., LocalConstellation]
VICTIM = 7
ATTACKER = 8
FILLING = bytes(6000)
"""A chunk that takes a slot."""
BLOCK_BYTES = 54_000
"""Bytes of a block of nine chunks, one for each server."""


def key(name: object) -> bytes:
    return sha256(f"{__name__} {name}".encode()).digest()


def flood(sky: Constellation, at: Satellite, tenant: int, count: int) -> None:
    """Put blocks of one chunk at a satellite, packet by packet, as a stranger would."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.connect((sky.address(*at), sky.network.port))
        stranger.settimeout(PATIENCE_S)
        itself = Satellite(GROUND_PLANE, 666)
        cookie = ask_cookie(stranger, (sky.address(*at), sky.network.port), itself, at)
        for index in range(count):
            packet = Packet(
                is_request=True,
                apid=icd.APID_KVC,
                op=icd.OP_PUT,
                request_id=index,
                src=itself,
                dst=at,
                cookie=cookie,
                tenant=tenant,
                key=key(f"flood {index}"),
                chunk_total=1,
                block_len=len(FILLING),
                chunk_len=len(FILLING),
                chunk_crc=crc32c(FILLING),
                payload=FILLING,
            )
            stranger.send(packet.encode())
            if index % 8 == 7:
                time.sleep(0.001)  # so that the socket of the satellite takes all


def used_bytes(sky: Constellation, at: Satellite, number: int) -> int:
    with ControlPlane(sky) as control:
        return next(one.used_bytes for one in control.tenant_stats([Route(at, at)], PATIENCE_S)[at] if one.number == number)


@pytest.mark.parametrize("has_quotas", [True, False])
def test_a_flood_evicts_its_own_blocks_only(start_sky: StartSky, has_quotas: bool) -> None:
    quotas = [{"number": VICTIM, "reserved_percent": 50}, {"number": ATTACKER, "most_percent": 20}]
    cache = {"tenant": VICTIM, "parity": 0}  # with parity, evicted chunks are made of others
    local = start_sky(satellite={"store_mib": 1}, cache=cache, tenants=quotas if has_quotas else [])
    sky = local.constellation
    items = {key(index): os.urandom(BLOCK_BYTES) for index in range(20)}
    with SkyStore(sky) as store:
        assert all(result.ok for result in store.put(list(items.items())))
        target = store.whereabouts.servers(0)[0]
        flood(sky, target, ATTACKER, 1000)
        with ControlPlane(sky) as control:
            wait_until(lambda: control.store_stats([Route(target, target)], 5)[target]["puts"] > 900, "the flood is in")
        whole = [result.data for result in store.get(list(items))]
    if not has_quotas:  # what quotas are good for
        assert whole == [None] * len(items)
        return
    assert whole == list(items.values())
    assert 0 < used_bytes(sky, target, ATTACKER) <= 34 * sky.slot_bytes  # 20 % of about 164 slots
    report = collect(sky)
    assert [one["tenant"] for one in report["tenants"]] == [VICTIM, ATTACKER, OTHERS]
    victim, attacker, others = report["tenants"]
    assert victim["used_bytes"] == 9 * (len(items) + 1) * sky.slot_bytes  # with a slot of entries each
    assert (victim["evictions"], victim["refused"]) == (0, 0)
    assert attacker["evictions"] > 800
    assert (others["used_bytes"], others["reserved_bytes"]) == (0, 0)
