"""Deletions: sealed, told by their length, kept for a day, and as lasting as any put."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skymemory.link.block_entry import BlockEntry
from skymemory.sky.entry_satellites import server_routes
from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.deletions import DELETION_BYTES, KEPT_US, is_deletion, is_old, without_deletions
from skymemory.store.keyvalue import FRAME_BYTES_MAX, VALUE_BYTES_MAX, KeyValue, ValueKeys, block_length, now_unix_ms
from skymemory.store.results import FindResult, Status
from skymemory.store.sky_store import SkyStore
from skymemory.store.versions import Versions, now_unix_us
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.envelope import VALUE_VERSION_MAX, instance_of
from support.spread import shares_of
from support.waiting import PATIENCE_S, wait_until

StartSky = Callable[..., LocalConstellation]
Stopped = Callable[..., AbstractContextManager[None]]
KEYS = ValueKeys(b"secret")
KEY = KEYS.key_of("name")


def store_of(local: LocalConstellation) -> SkyStore:
    """A host that has just been started."""
    return SkyStore(local.constellation, tenant_secret=b"secret")


def length_held(store: SkyStore, key: bytes) -> int | None:
    """Bytes of what the satellites have under a key."""
    [found] = store.find([key], fresh=True)
    return None if found.entry is None else found.entry.block_len


# ---- the block -----------------------------------------------------------------------------------------------------------


@given(length=st.integers(0, VALUE_BYTES_MAX), expires_unix_ms=st.integers(0, (1 << 63) - 1))
def test_no_value_is_as_short_as_a_deletion(length: int, expires_unix_ms: int) -> None:
    assert DELETION_BYTES < block_length(length, expires_unix_ms) <= length + FRAME_BYTES_MAX
    assert not is_deletion(block_length(length, expires_unix_ms))


@given(version=st.integers(0, VALUE_VERSION_MAX), data=st.data())
def test_a_deletion_is_proved_by_its_seal(version: int, data: st.DataObject) -> None:
    block = KEYS.pack_deletion(KEY, version=version)
    assert is_deletion(len(block))
    assert instance_of(block).version == version
    damaged = bytearray(block)
    damaged[data.draw(st.integers(0, len(block) - 1))] ^= data.draw(st.integers(1, 255))
    assert KEYS.unpack(KEY, damaged) is None
    value = KEYS.pack(KEY, b"value", version=version)
    for other in (block[:-1], block + b"\0", value[:DELETION_BYTES], os.urandom(DELETION_BYTES)):
        assert KEYS.unpack(KEY, bytearray(other)) is None
    assert KEYS.unpack(KEYS.key_of("other"), bytearray(block)) is None
    assert ValueKeys(b"another").unpack(KEY, bytearray(block)) is None
    found = KEYS.unpack(KEY, block)
    assert found is not None
    assert (found.is_deleted, bytes(found.data), found.expires_unix_ms, found.version) == (True, b"", 0, version)


def test_an_empty_value_is_not_deleted() -> None:
    found = KEYS.unpack(KEY, KEYS.pack(KEY, b"", version=1))
    assert found is not None
    assert not found.is_deleted
    assert not found.is_old_deletion(10 * KEPT_US)


def test_nothing_is_above_the_largest_version() -> None:
    assert KEYS.pack_deletion(KEY, version=VALUE_VERSION_MAX + 1) == KEYS.pack_deletion(KEY, version=VALUE_VERSION_MAX)


@pytest.mark.parametrize(("age_us", "old"), [(-KEPT_US, False), (0, False), (KEPT_US, False), (KEPT_US + 1, True)])
def test_a_deletion_is_old_after_a_day(age_us: int, old: bool) -> None:
    now_us = 1_800_000_000_000_000
    assert is_old(now_us - age_us, now_us) is old
    found = KEYS.unpack(KEY, KEYS.pack_deletion(KEY, version=now_us - age_us))
    assert found is not None
    assert found.is_old_deletion(now_us) is old


def test_what_was_deleted_is_a_miss_of_a_look_up() -> None:
    found = [
        FindResult(KEY, BlockEntry(KEY, length, length, 1, 0, 0.0), Status.DONE)
        for length in (DELETION_BYTES, DELETION_BYTES + 8)
    ]
    silent = FindResult(KEY, None, Status.UNANSWERED)
    assert without_deletions([*found, silent]) == [FindResult(KEY, None, Status.MISS), found[1], silent]


# ---- in the sky ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 10, 300_000])
def test_a_deleted_value_is_absent_for_all_hosts_until_it_is_put_again(full_sky: LocalConstellation, size: int) -> None:
    with store_of(full_sky) as store, store_of(full_sky) as second:
        here, there = KeyValue(store, f"deleted {size}"), KeyValue(second, f"deleted {size}")
        value = os.urandom(size)
        for _ in range(2):
            assert here.put("name", value).ok
            assert there.get("name") == value
            assert here.delete("name")
            for values in (there, here):
                assert values.get("name") is None
                assert [one.status for one in values.find(["name"])] == [Status.MISS]
                assert values.erase("name").status is Status.MISS
            assert length_held(store, here.key_of("name")) == DELETION_BYTES
        assert there.put("name", value).ok
        assert here.get("name") == value
        assert [one.status for one in here.find(["name"])] == [Status.DONE]


def test_to_delete_what_is_not_there_puts_nothing(full_sky: LocalConstellation) -> None:
    with store_of(full_sky) as store:
        values = KeyValue(store, "absent")
        assert values.erase("name").status is Status.MISS
        assert not values.delete("name")
        assert length_held(store, values.key_of("name")) is None
        assert store.stats().puts == 0


def test_a_deletion_frees_the_memory_of_a_large_value(start_sky: StartSky) -> None:
    local = start_sky(cache={"servers": 12, "parity": 2})
    routes = server_routes(Whereabouts(local.constellation), 0.0)
    with store_of(local) as store:
        assert KeyValue(store).put("name", bytes(300_000)).ok
        assert KeyValue(store).delete("name")
        chunks = [one["chunks"] for one in store.control.store_stats(routes, PATIENCE_S).values()]
        assert sorted(chunks) == [0] * 9 + [1] * 3  # the copies of the deletion


@pytest.mark.parametrize("how", ["killed", "stopped"])
@pytest.mark.parametrize("share", [0, 1, 2])
def test_a_value_is_deleted_while_a_satellite_is_gone(start_sky: StartSky, stopped: Stopped, how: str, share: int) -> None:
    """It returns empty, or with what it held."""
    local = start_sky(cache={"servers": 12, "parity": 2, "deadline_ms": 2000})
    victim = shares_of(local.constellation, KEY)[share]

    def erase() -> None:
        with store_of(local) as other:
            assert KeyValue(other).delete("name")
            assert KeyValue(other).get("name") is None

    def is_absent() -> bool:
        with store_of(local) as other:
            return KeyValue(other).fetch("name") == (None, Status.MISS)

    with store_of(local) as store:
        assert KeyValue(store).put("name", b"value").ok
    if how == "stopped":
        with stopped(local, victim):
            erase()
    else:
        local.kill(victim)
        erase()
        local.restart(victim)
    wait_until(is_absent)
    with store_of(local) as store:  # has known nothing before
        for _ in range(3):
            assert KeyValue(store).get("name") is None
        assert KeyValue(store).put("name", b"again").ok
    with store_of(local) as store:
        assert KeyValue(store).get("name") == b"again"


def test_who_reads_an_old_deletion_purges_it(full_sky: LocalConstellation) -> None:
    with store_of(full_sky) as store, store_of(full_sky) as other:
        for name, age_us, held in (("young", KEPT_US - 3_600_000_000, DELETION_BYTES), ("old", KEPT_US + 1, None)):
            key = KeyValue(store).key_of(name)
            assert store.put([(key, KEYS.pack_deletion(key, version=now_unix_us() - age_us))])[0].ok
            assert KeyValue(other).fetch(name) == (None, Status.MISS)
            assert length_held(other, key) == held


def test_a_purge_of_an_old_deletion_spares_a_newer_value(full_sky: LocalConstellation) -> None:
    with store_of(full_sky) as store, store_of(full_sky) as other:
        key = KeyValue(store).key_of("newer")
        assert store.put([(key, KEYS.pack_deletion(key, version=5))])[0].ok
        [read] = store.get([key])
        assert KeyValue(other).put("newer", b"value").ok
        store.forget([read])
        assert KeyValue(store).get("newer") == b"value"


@pytest.mark.parametrize("version", [5, VALUE_VERSION_MAX])
def test_a_forged_deletion_is_damage(full_sky: LocalConstellation, version: int) -> None:
    with store_of(full_sky) as store, store_of(full_sky) as other:
        key = KeyValue(store).key_of("forged")
        assert store.purge([key]).confirmed
        assert store.put([(key, ValueKeys(b"another").pack_deletion(key, version=version))])[0].ok
        assert KeyValue(other).get("forged") is None
        assert length_held(other, key) is None  # purged, young as it may be
        assert KeyValue(other).put("forged", b"value").ok
        assert KeyValue(store).get("forged") == b"value"


def test_who_finds_a_value_expired_deletes_no_newer_one(full_sky: LocalConstellation) -> None:
    with store_of(full_sky) as store:
        values = KeyValue(store, "expired")
        key, version = values.key_of("name"), now_unix_us()
        assert store.put([(key, KEYS.pack(key, b"value", now_unix_ms() - 1, version=version))])[0].ok
        assert values.get("name") is None
        [left] = store.get([key])
        assert left.data is not None
        assert instance_of(left.data).version == version + 1
        assert KeyValue(store, "expired", versions=Versions(lambda: version + 2)).put("name", b"newer").ok
        assert values.get("name") == b"newer"


def test_deletions_of_hosts_whose_clocks_differ(full_sky: LocalConstellation) -> None:
    """A host with a slow clock deletes what one with a fast clock put, and the other way round."""
    with store_of(full_sky) as store, store_of(full_sky) as other:
        fast, slow = KeyValue(store, "clocks"), KeyValue(other, "clocks", versions=Versions(lambda: 1))
        for deletes, puts in ((slow, fast), (fast, slow)):
            assert puts.put("name", b"value").ok
            assert deletes.delete("name")
            assert puts.get("name") is None
