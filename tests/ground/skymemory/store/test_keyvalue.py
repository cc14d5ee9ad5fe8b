"""The general key-value store on real satellites."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skymemory.link.structures import PurgeAnswers
from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.keyvalue import (
    HEAD_BYTES,
    KeyValue,
    block_length,
    key_of,
    may_expire,
    now_unix_ms,
    pack,
    pack_in_place,
    unpack,
)
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.envelope import Kind, seal
from skymemory.wire.key_derivation import digest_key, root_key
from support.waiting import PATIENT

StartSky = Callable[..., LocalConstellation]
Stopped = Callable[..., AbstractContextManager[None]]
KEY = key_of("name")


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
    assert len({key_of("ab"), key_of("b", "a"), key_of("", "ab"), key_of("a", "b"), key_of("bad \udcff")}) == 5
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
        with pytest.raises(ValueError, match=r"of 159,000,000 bytes; allowed are 0 to 158,039,943 \(10 servers of 16 MiB\)"):
            values.put("name", bytes(159_000_000))
        assert values.get("name") == bytes(100)  # refused before the old one was purged
        narrow = KeyValue(store, "bounded", value_bytes_max=98)
        assert narrow.value_bytes_max == 98
        assert narrow.get("name") is None


@given(value=st.binary(max_size=100), expires_unix_ms=st.integers(0, (1 << 63) - 1))
def test_a_block_tells_by_its_length_whether_it_expires(value: bytes, expires_unix_ms: int) -> None:
    block = pack(KEY, value, expires_unix_ms)
    assert len(block) == block_length(len(value), expires_unix_ms)
    assert may_expire(len(block)) == (expires_unix_ms > 0)
    found = unpack(KEY, block)
    assert found is not None
    assert (bytes(found.data), found.expires_unix_ms) == (value, expires_unix_ms)


@given(value=st.binary(max_size=40), expires_unix_ms=st.sampled_from([0, 1, 1 << 62]), data=st.data())
def test_a_block_with_any_bit_changed_or_cut_is_none(value: bytes, expires_unix_ms: int, data: st.DataObject) -> None:
    block = pack(KEY, value, expires_unix_ms)
    bit = data.draw(st.integers(0, 8 * len(block) - 1))
    changed = bytearray(block)
    changed[bit // 8] ^= 1 << bit % 8
    assert unpack(KEY, changed) is None
    assert unpack(KEY, block[: data.draw(st.integers(0, len(block) - 1))]) is None
    assert unpack(KEY, block + b"\0") is None


@given(value=st.binary(max_size=40), name=st.binary(max_size=8), namespace=st.text(max_size=3))
def test_a_block_under_another_name_is_none(value: bytes, name: bytes, namespace: str) -> None:
    assert unpack(key_of(name, namespace), pack(KEY, value)) is None


@given(value=st.binary(max_size=40), expires_unix_ms=st.sampled_from([0, 1, 1 << 62]))
def test_a_value_in_place_is_sealed_as_one_that_is_copied(value: bytes, expires_unix_ms: int) -> None:
    block = memoryview(bytearray(b"\xff" * block_length(len(value), expires_unix_ms)))
    block[HEAD_BYTES : HEAD_BYTES + len(value)] = value
    pack_in_place(KEY, block, len(value), expires_unix_ms)
    assert block == pack(KEY, value, expires_unix_ms)


@pytest.mark.parametrize(("header", "padding"), [(b"", 0), (bytes(7), 0), (bytes(16), 0), (bytes(8), 1), (bytes(7) + b"\1", 0)])
def test_a_sealed_block_that_is_no_value_is_none(header: bytes, padding: int) -> None:
    """Anybody can seal values: the header's length must be right, and the parity must say whether the value expires."""
    secret = digest_key(root_key("values", b""))
    assert unpack(KEY, seal(Kind.VALUE, KEY, bytes(8), b"even", digest_key=secret)) is not None
    assert unpack(KEY, seal(Kind.VALUE, KEY, header, b"even", digest_key=secret, padding=padding)) is None


def test_a_value_that_expires_is_gone_for_all_hosts(full_sky: LocalConstellation) -> None:
    with patient_store(full_sky) as store, patient_store(full_sky) as other:
        assert KeyValue(store, "terms").put("later", b"value", expires_unix_ms=now_unix_ms() + 600_000).ok
        assert KeyValue(other, "terms").get("later") == b"value"
        assert KeyValue(store, "terms").put("past", b"value", expires_unix_ms=now_unix_ms() - 1).ok
        assert KeyValue(other, "terms").get("past") is None
        assert other.find([key_of("past", "terms")])[0].entry is None


@pytest.mark.parametrize(
    "block",
    [
        b"SKYM",
        b"something else",
        bytes(32) + b"SKYM" + bytes(HEAD_BYTES) + b"value",
        bytes(pack(key_of("forged"), b"value")) + bytes(2),
        bytes(pack(key_of("another name"), b"value")),
    ],
)
def test_what_is_not_a_value_is_a_miss_and_purged(full_sky: LocalConstellation, block: bytes) -> None:
    with SkyStore(full_sky.constellation) as store:
        store.put([(key_of("forged"), block)])
        assert KeyValue(store).get("forged") is None
        assert store.find([key_of("forged")])[0].entry is None


def test_who_slept_through_a_replacement_brings_no_old_value_back(start_sky: StartSky, stopped: Stopped) -> None:
    local = start_sky(cache={"deadline_ms": 2000})
    sky = local.constellation
    with SkyStore(sky) as store, SkyStore(sky) as other:
        assert KeyValue(store).put("name", b"old" * 30_000).ok
        with stopped(local, Whereabouts(sky).servers(0)[4]):
            assert KeyValue(store).put("name", b"new" * 30_000).ok  # another stands in for it
        assert KeyValue(store).get("name") == b"new" * 30_000
        assert KeyValue(other).get("name") in (None, b"new" * 30_000)


def test_a_purge_that_is_not_confirmed_lets_nothing_be_put(start_sky: StartSky, monkeypatch: pytest.MonkeyPatch) -> None:
    local = start_sky(cache={"deadline_ms": 2000})
    with SkyStore(local.constellation) as store:
        values = KeyValue(store)
        assert values.put("name", b"old" * 30_000).ok
        # A purge that nobody answers although all answer pings: no process can be made to do that from outside
        monkeypatch.setattr(store.control, "purge", lambda blocks, *_: [PurgeAnswers() for _ in blocks])
        assert values.put("name", b"new" * 30_000).status == "unanswered"
        monkeypatch.undo()
        assert values.get("name") == b"old" * 30_000
