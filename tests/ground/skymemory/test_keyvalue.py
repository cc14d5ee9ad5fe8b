"""The general key-value store on real satellites."""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skymemory.keyvalue import KeyValue, key_of
from skymemory.store import SkyStore
from skymemory.testbed.local import LocalConstellation


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(), value=st.binary(max_size=30_000))
def test_what_was_put_comes_back(full_sky: LocalConstellation, name: str, value: bytes) -> None:
    with SkyStore(full_sky.constellation) as store, SkyStore(full_sky.constellation) as other:
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
    assert len({key_of("ab"), key_of("b", "a"), key_of("", "ab"), key_of("a", "b")}) == 4
    with SkyStore(full_sky.constellation) as store:
        KeyValue(store, "one").put("name", b"1")
        KeyValue(store, "two").put("name", b"2")
        assert KeyValue(store, "one").get("name") == b"1"


@pytest.mark.parametrize("block", [b"SKYV", b"something else", b"SKYV" + bytes(32) + b"value"])
def test_what_is_not_a_value_is_a_miss_and_purged(full_sky: LocalConstellation, block: bytes) -> None:
    with SkyStore(full_sky.constellation) as store:
        store.put([(key_of("forged"), block)])
        assert KeyValue(store).get("forged") is None
        assert store.find(key_of("forged")) is None
