"""Satellites that give wrong chunks with right checksums: the seal tells, and the others suffice."""

import os
from collections.abc import Callable

import pytest

from skymemory.sky.entry_satellites import Route
from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.keyvalue import KeyValue
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.address import Satellite
from support.evictions import evict
from support.raw_host import RawHost
from support.satellites import put_share
from support.waiting import wait_until

StartSky = Callable[..., LocalConstellation]
CODED = {"servers": 12, "parity": 2, "deadline_ms": 20_000}
SECRET = b"secret"


def lie(local: LocalConstellation, store: SkyStore, key: bytes, share: int) -> Satellite:
    """Let the server of a share hold wrong chunks of a block, whose checksums are right. Return its satellite."""
    sky = local.constellation
    places = Whereabouts(sky).servers(0)
    [result] = store.get([key])
    assert result.data is not None
    assert result.entry is not None
    wrong = bytes(byte ^ 1 for byte in result.data)
    place = result.entry.by_share(places)[share]
    evict(store.control, [Route(place, place)], [key])
    with RawHost(sky) as host:
        put_share(host, place, result.entry, share, wrong, sky.cache.tenant)
    return place


@pytest.mark.parametrize(("length", "share"), [(10, 0), (50_000, 5), (400_000, 0), (400_000, 9)])
def test_a_satellite_that_lies_costs_no_value(
    start_sky: StartSky, caplog: pytest.LogCaptureFixture, length: int, share: int
) -> None:
    local = start_sky(cache=CODED)
    value = os.urandom(length)
    with SkyStore(local.constellation, tenant_secret=SECRET) as store:
        kv = KeyValue(store)
        assert kv.put("name", value).ok
        liar = lie(local, store, kv.key_of("name"), share)
        assert kv.get("name") == value
        assert store.stats().wrong == 1
        assert store.stats().purges == 0
        wait_until(lambda: store.is_mended)
        if "gave wrong chunks" in caplog.text:  # it cannot be told on a machine so busy that satellites are slow
            assert f"{liar} gave wrong chunks" in caplog.text
            assert kv.get("name") == value
            assert store.stats().wrong == 1  # right chunks have taken the place of wrong ones


def test_a_satellite_that_lies_beside_one_that_is_lost(start_sky: StartSky) -> None:
    local = start_sky(cache=CODED)
    places = Whereabouts(local.constellation).servers(0)
    value = os.urandom(400_000)
    with SkyStore(local.constellation, tenant_secret=SECRET) as store:
        kv = KeyValue(store)
        assert kv.put("name", value).ok
        liar = lie(local, store, kv.key_of("name"), 4)
        local.kill(places[8 if places[8] != liar else 7])
        assert kv.get("name") == value
        assert store.stats().wrong == 1


def test_a_value_that_is_nowhere_right_is_a_miss(start_sky: StartSky) -> None:
    """With three satellites that lie no one can be left out."""
    local = start_sky(cache=CODED)
    with SkyStore(local.constellation, tenant_secret=SECRET) as store:
        kv = KeyValue(store)
        assert kv.put("name", os.urandom(400_000)).ok
        for share in (1, 2, 3):
            lie(local, store, kv.key_of("name"), share)
        assert kv.get("name") is None
        assert store.stats().wrong == 0
        assert store.stats().purges == 1
