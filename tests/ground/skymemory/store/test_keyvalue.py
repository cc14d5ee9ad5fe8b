"""The general key-value store on real satellites."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.deletions import DELETION_BYTES
from skymemory.store.keyvalue import (
    HEAD_BYTES,
    KeyValue,
    ValueKeys,
    block_length,
    may_expire,
    now_unix_ms,
)
from skymemory.store.results import Status
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.envelope import Kind, seal
from skymemory.wire.key_derivation import root_key, seal_keys
from support.waiting import PATIENT

StartSky = Callable[..., LocalConstellation]
Stopped = Callable[..., AbstractContextManager[None]]
KEYS = ValueKeys(b"secret")
KEY = KEYS.key_of("name")


def patient_store(local: LocalConstellation) -> SkyStore:
    return SkyStore(local.constellation, timing=PATIENT)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(), value=st.binary(max_size=30_000))
def test_what_was_put_comes_back(full_sky: LocalConstellation, name: str, value: bytes) -> None:
    with patient_store(full_sky) as store, patient_store(full_sky) as other:
        assert KeyValue(store, "round trip").put(name, value).ok
        assert KeyValue(other, "round trip").get(name) == value


@pytest.mark.parametrize("value", [b"", b"x", os.urandom(5_000_000)])
def test_life_of_a_value(full_sky: LocalConstellation, value: bytes) -> None:
    with SkyStore(full_sky.constellation) as store:
        values = KeyValue(store, "life")
        assert values.get("name") is None
        assert values.put("name", value).ok
        assert values.get("name") == value
        assert values.put("name", value + b"!").ok  # shorter, longer, other: the newest counts
        assert values.get("name") == value + b"!"
        assert values.delete("name")
        assert not values.delete("name")
        assert values.get("name") is None


def test_namespaces_and_names_are_apart(full_sky: LocalConstellation) -> None:
    assert len({KEYS.key_of(*name) for name in (("ab",), ("b", "a"), ("", "ab"), ("a", "b"), ("bad \udcff",))}) == 5
    assert ValueKeys(b"another").key_of("ab") != KEYS.key_of("ab")
    with SkyStore(full_sky.constellation) as store:
        KeyValue(store, "one").put("name", b"1")
        KeyValue(store, "two").put("name", b"2")
        assert KeyValue(store, "one").get("name") == b"1"


def test_a_value_that_another_host_replaced(full_sky: LocalConstellation) -> None:
    with SkyStore(full_sky.constellation) as store, SkyStore(full_sky.constellation) as other:
        here, there = KeyValue(store, "replaced"), KeyValue(other, "replaced")
        for size in (50_000, 90_000, 90_000, 10, 0):
            value = os.urandom(size)
            assert here.put("name", value).ok
            assert there.get("name") == value
            assert here.get("name") == value


def test_values_are_bounded(full_sky: LocalConstellation) -> None:
    with SkyStore(full_sky.constellation) as store:
        values = KeyValue(store, "bounded")
        assert values.value_bytes_max == store.capacity_bytes - 57
        assert values.put("name", bytes(100)).ok
        stores = "12 servers of 16 MiB, 2 of them for parity"
        with pytest.raises(ValueError, match=rf"of 161,000,000 bytes; allowed are 0 to 160,079,943 \({stores}\)"):
            values.put("name", bytes(161_000_000))
        assert values.get("name") == bytes(100)  # refused before anything was put
        narrow = KeyValue(store, "bounded", value_bytes_max=98)
        assert narrow.value_bytes_max == 98
        assert narrow.get("name") is None


@given(value=st.binary(max_size=100), expires_unix_ms=st.integers(0, (1 << 63) - 1))
def test_a_block_tells_by_its_length_whether_it_expires(value: bytes, expires_unix_ms: int) -> None:
    block = KEYS.pack(KEY, value, expires_unix_ms, version=5)
    assert len(block) == block_length(len(value), expires_unix_ms)
    assert may_expire(len(block)) == (expires_unix_ms > 0)
    found = KEYS.unpack(KEY, block)
    assert found is not None
    assert (bytes(found.data), found.expires_unix_ms, found.version) == (value, expires_unix_ms, 5)


@given(value=st.binary(max_size=40), expires_unix_ms=st.sampled_from([0, 1, 1 << 62]), data=st.data())
def test_a_block_with_any_bit_changed_or_cut_is_none(value: bytes, expires_unix_ms: int, data: st.DataObject) -> None:
    block = KEYS.pack(KEY, value, expires_unix_ms, version=5)
    bit = data.draw(st.integers(0, 8 * len(block) - 1))
    changed = bytearray(block)
    changed[bit // 8] ^= 1 << bit % 8
    assert KEYS.unpack(KEY, changed) is None
    assert KEYS.unpack(KEY, block[: data.draw(st.integers(0, len(block) - 1))]) is None
    assert KEYS.unpack(KEY, block + b"\0") is None


@given(value=st.binary(max_size=40), name=st.binary(max_size=8), namespace=st.text(max_size=3))
def test_a_block_under_another_name_is_none(value: bytes, name: bytes, namespace: str) -> None:
    assert KEYS.unpack(KEYS.key_of(name, namespace), KEYS.pack(KEY, value, version=1)) is None
    assert ValueKeys(b"another").unpack(KEY, KEYS.pack(KEY, value, version=1)) is None


@given(value=st.binary(max_size=40), expires_unix_ms=st.sampled_from([0, 1, 1 << 62]))
def test_a_value_in_place_is_sealed_as_one_that_is_copied(value: bytes, expires_unix_ms: int) -> None:
    block = memoryview(bytearray(b"\xff" * block_length(len(value), expires_unix_ms)))
    block[HEAD_BYTES : HEAD_BYTES + len(value)] = value
    KEYS.pack_in_place(KEY, block, len(value), expires_unix_ms, version=5)
    assert block == KEYS.pack(KEY, value, expires_unix_ms, version=5)


@pytest.mark.parametrize(("header", "padding"), [(b"", 0), (bytes(7), 0), (bytes(16), 0), (bytes(8), 1), (bytes(7) + b"\1", 0)])
def test_a_sealed_block_that_is_no_value_is_none(header: bytes, padding: int) -> None:
    """Programs of the tenant can seal anything: the header's length must be right, and the parity must say whether it expires."""
    keys = seal_keys(root_key("values", b"secret"))
    assert KEYS.unpack(KEY, seal(Kind.VALUE, KEY, bytes(8), b"even", keys=keys)) is not None
    assert KEYS.unpack(KEY, seal(Kind.VALUE, KEY, header, b"even", keys=keys, padding=padding)) is None


def test_a_value_that_expires_is_gone_for_all_hosts(full_sky: LocalConstellation) -> None:
    with patient_store(full_sky) as store, patient_store(full_sky) as other:
        assert KeyValue(store, "terms").put("later", b"value", expires_unix_ms=now_unix_ms() + 600_000).ok
        assert KeyValue(other, "terms").get("later") == b"value"
        assert KeyValue(store, "terms").put("past", b"value", expires_unix_ms=now_unix_ms() - 1).ok
        assert KeyValue(other, "terms").get("past") is None
        [left] = store.find([KeyValue(store, "terms").key_of("past")], fresh=True)
        assert left.entry is not None
        assert left.entry.block_len == DELETION_BYTES  # who found it expired deleted it


@pytest.mark.parametrize("forge", ["short", "noise", "other secret", "longer", "other name"])
def test_what_is_not_a_value_is_a_miss_and_purged(full_sky: LocalConstellation, forge: str) -> None:
    with SkyStore(full_sky.constellation, tenant_secret=b"secret") as store:
        key = KEYS.key_of("no value")
        whole = KEYS.pack(key, b"value", version=1)
        blocks = {
            "short": b"SKYM",
            "noise": os.urandom(HEAD_BYTES + 5),
            "other secret": ValueKeys(b"").pack(key, b"value", version=1),
            "longer": whole + bytes(2),
            "other name": KEYS.pack(KEYS.key_of("another name"), b"value", version=1),
        }
        assert store.put([(key, blocks[forge])])[0].ok
        assert KeyValue(store).get("no value") is None
        assert store.find([key])[0].entry is None


def test_swapped_values_are_misses(full_sky: LocalConstellation) -> None:
    with SkyStore(full_sky.constellation, tenant_secret=b"secret") as store:
        values = KeyValue(store, "swapped")
        assert values.put("one", b"1" * 20_000).ok
        assert values.put("two", b"2" * 20_000).ok
        names = [values.key_of("one"), values.key_of("two")]
        blocks = [result.data for result in store.get(names)]
        assert store.purge(names).confirmed
        assert all(result.ok for result in store.put(list(zip(names, blocks[::-1], strict=True))))
        assert values.get("one") is None
        assert values.get("two") is None


def test_two_mixed_up_chunks_are_a_miss(full_sky: LocalConstellation) -> None:
    with SkyStore(full_sky.constellation) as store:
        values = KeyValue(store, "mixed up")
        assert values.put("name", os.urandom(20_000)).ok
        key, length = values.key_of("name"), full_sky.constellation.cache.chunk_bytes
        [block] = [result.data for result in store.get([key])]
        assert block is not None
        block[:length], block[length : 2 * length] = block[length : 2 * length], block[:length]
        assert store.purge([key]).confirmed
        assert store.put([(key, block)])[0].ok
        assert values.get("name") is None


@pytest.mark.parametrize("saw", ["put", "got"])
def test_an_older_value_that_was_put_back_is_a_miss(full_sky: LocalConstellation, saw: str) -> None:
    with SkyStore(full_sky.constellation) as store, SkyStore(full_sky.constellation) as other:
        here, there = KeyValue(store, f"rollback {saw}"), KeyValue(other, f"rollback {saw}")
        key = here.key_of("name")
        assert here.put("name", b"old" * 10_000).ok
        [old] = [result.data for result in store.get([key])]
        assert old is not None
        assert here.put("name", b"new" * 10_000).ok
        knows = here if saw == "put" else there
        assert knows.get("name") == b"new" * 10_000
        assert store.purge([key]).confirmed
        assert store.put([(key, old)])[0].ok
        assert knows.get("name") is None
        assert KeyValue(other, f"rollback {saw}").get("name") == b"old" * 10_000  # who knows nothing newer takes it
        assert knows.put("name", b"newest").ok
        assert knows.get("name") == b"newest"


def test_a_deleted_value_does_not_come_back(full_sky: LocalConstellation) -> None:
    with SkyStore(full_sky.constellation) as store:
        values = KeyValue(store, "deleted")
        key = values.key_of("name")
        assert values.put("name", b"value").ok
        [block] = [result.data for result in store.get([key])]
        assert block is not None
        assert values.delete("name")
        assert store.put([(key, block)])[0].status is Status.OLD_VERSION
        assert values.get("name") is None
        assert store.purge([key]).confirmed  # somebody purges the deletion
        assert store.put([(key, block)])[0].ok
        assert values.get("name") is None


def test_who_slept_through_a_replacement_brings_no_old_value_back(start_sky: StartSky, stopped: Stopped) -> None:
    local = start_sky(cache={"deadline_ms": 2000})
    sky = local.constellation
    with SkyStore(sky) as store, SkyStore(sky) as other:
        assert KeyValue(store).put("name", b"old" * 30_000).ok
        with stopped(local, Whereabouts(sky).servers(0)[4]):
            assert KeyValue(store).put("name", b"new" * 30_000).ok  # another stands in for it
        assert KeyValue(store).get("name") == b"new" * 30_000
        assert KeyValue(other).get("name") in (None, b"new" * 30_000)


def test_tenants_with_one_secret_have_other_keys() -> None:
    tenants = [KEYS, *(ValueKeys(b"secret", tenant) for tenant in (0, 7, 8)), ValueKeys(b"another", 7)]
    assert len({keys.key_of("name") for keys in tenants}) == len(tenants)
    for at, keys in enumerate(tenants):
        found = [other.unpack(KEY, keys.pack(KEY, b"value", version=1)) for other in tenants]
        assert [index for index, value in enumerate(found) if value is not None] == [at]
