"""Somebody fills satellites with chunks, each of which takes a whole slot.

A few hundred kB of them make blocks of all servers unreadable.
"""

from collections.abc import Callable
from secrets import token_bytes
from typing import Final

import pytest

from skymemory.link.control import ControlPlane
from skymemory.sky.entry_satellites import Route
from skymemory.store.sky_store import SkyStore
from skymemory.wire.address import Satellite
from support.guarded_sky import ALICE, MALLORY, GuardedSky
from support.raw_host import RawHost
from support.waiting import PATIENT

SMALL = {"store_mib": 1}
QUOTAS = [
    {"number": ALICE, "reserved_percent": 50, "most_percent": 100},
    {"number": "others", "reserved_percent": 0, "most_percent": 50},
]
TARGET = Satellite(2, 3)
FILLING: Final = bytes(6000)
LARGE: Final = {"store_mib": 128}
PART: Final = 100
"""Bytes of a part of a chunk."""
TOO_MANY: Final = 15_000
"""Slots of more bytes than an address may take at once."""


def slots(sky: GuardedSky) -> int:
    with ControlPlane(sky.constellation_of("alice"), PATIENT) as control:
        return control.store_stats([Route(TARGET, TARGET)], 20)[TARGET]["store_bytes"] // sky.local.constellation.slot_bytes


def flood(host: RawHost, tenant: int, count: int) -> int:
    """Put this many chunks of a slot each, and return how many of them the satellite refused."""
    host.open(TARGET)
    return len(host.answers((host.made(host.put(TARGET, token_bytes(32), FILLING, tenant=tenant)) for _ in range(count)), TARGET))


@pytest.mark.parametrize("parity", [0, 2])
def test_without_keys_and_quotas_a_flood_evicts_everybody(start_guarded: Callable[..., GuardedSky], parity: int) -> None:
    """One satellite is flooded. Blocks with parity do without it."""
    sky = start_guarded(is_keyed=False, satellite=SMALL, cache={"parity": parity})
    items = {token_bytes(32): token_bytes(60_000) for _ in range(5)}
    with SkyStore(sky.constellation_of("alice"), timing=PATIENT) as store, sky.host("stranger", 66) as host:
        assert all(one.ok for one in store.put(list(items.items())))
        assert flood(host, MALLORY, slots(sky) * 3 // 2) == 0
    with SkyStore(sky.constellation_of("alice"), timing=PATIENT) as store:
        assert [one.ok for one in store.get(list(items))] == [parity > 0] * len(items)


def busy(sky: GuardedSky) -> int:
    """Return how many requests came from addresses that had asked for too much."""
    with ControlPlane(sky.constellation_of("alice"), PATIENT) as control:
        return control.link_stats([Route(TARGET, TARGET)], 20)[TARGET].counters["drop_unreachable"]


def are_some_too_many(sky: GuardedSky, host: RawHost, offset: int) -> bool:
    """Return True if a satellite refuses some of many PUTs, each of a part of another chunk, as fast as they can be sent."""
    part = {"tenant": MALLORY, "offset": offset, "chunk_len": len(FILLING), "block_len": len(FILLING)}
    packets = [host.made(host.put(TARGET, token_bytes(32), FILLING[:PART], **part)) for _ in range(TOO_MANY)]
    before = busy(sky)
    for _ in range(5):
        host.send_trains(packets * 3, TARGET)
        if busy(sky) > before:
            return True
    return False


def test_without_keys_a_later_part_costs_a_slot_as_well(start_guarded: Callable[..., GuardedSky]) -> None:
    """The store gives a slot to whichever part of a chunk comes, also if the first one never does."""
    sky = start_guarded(is_keyed=False, satellite=LARGE)
    with sky.host("stranger", 66) as host:
        host.open(TARGET)
        if not are_some_too_many(sky, host, 0):
            pytest.skip("no satellite here takes in as many PUTs as one address may send")
        assert are_some_too_many(sky, host, PART)


def test_with_quotas_a_flood_evicts_none_of_another_tenants(start_guarded: Callable[..., GuardedSky]) -> None:
    sky = start_guarded(is_keyed=True, satellite=SMALL, tenants=QUOTAS)
    items = {token_bytes(32): token_bytes(60_000) for _ in range(5)}
    with SkyStore(sky.constellation_of("alice"), timing=PATIENT) as store, sky.host("mallory", 66) as host:
        assert all(one.ok for one in store.put(list(items.items())))
        count = slots(sky) * 3 // 2
        flood(host, MALLORY, count)
        assert flood(host, ALICE, count) == count  # her tenant is not his to name
    with SkyStore(sky.constellation_of("alice"), timing=PATIENT) as store:
        assert all(
            one.ok and bytes(one.data or b"") == items[key] for key, one in zip(items, store.get(list(items)), strict=True)
        )
        more = {token_bytes(32): token_bytes(60_000) for _ in range(5)}  # and there is room for more of hers
        assert all(one.ok for one in store.put(list(more.items())))


def test_a_stranger_fills_nothing(start_guarded: Callable[..., GuardedSky]) -> None:
    sky = start_guarded(is_keyed=True, satellite=SMALL)
    with sky.host("stranger", 66) as host:
        packets = [host.put(TARGET, token_bytes(32), b"x", tenant=ALICE).encode() for _ in range(slots(sky))]
        host.answers(packets, TARGET)
    with ControlPlane(sky.constellation_of("alice"), PATIENT) as control:
        stats = control.store_stats([Route(TARGET, TARGET)], 20)[TARGET]
    assert (stats["chunks"], stats["puts"]) == (0, 0)
