"""SET over a value that has a newer version than the agent chooses."""

import pytest

from skymemory.store.keyvalue import KeyValue
from skymemory.store.sky_store import SkyStore
from skymemory.store.versions import Versions
from skymemory.testbed.local import LocalConstellation

from .raw import RawClient, encoded


@pytest.mark.parametrize("size", [10, 3_000_000])
def test_a_value_of_a_host_whose_clock_is_ahead_is_replaced(full_sky: LocalConstellation, port: int, size: int) -> None:
    """The agent knows nothing of it, as after a restart; the long value is sealed where it lies."""
    name, value = f"ahead {size}", bytes(range(256)) * (size // 256 + 1)
    with SkyStore(full_sky.constellation) as store, RawClient(port) as client:
        ahead = KeyValue(store, versions=Versions(lambda: 10**18))
        assert ahead.put(name, b"ahead").ok
        assert client.ask("SET", name, value) == b"OK"
        assert client.ask("GET", name) == value
        assert KeyValue(store).get(name) == value
        assert client.ask("SET", name, b"more") == b"OK"  # above the version that it put before
        assert KeyValue(store).get(name) == b"more"


def test_two_commands_at_once_over_a_newer_value(full_sky: LocalConstellation, port: int) -> None:
    with SkyStore(full_sky.constellation) as store, RawClient(port) as one, RawClient(port) as two:
        assert KeyValue(store, versions=Versions(lambda: 10**18)).put("at once", b"5").ok
        for client in (one, two):
            client.send(encoded("INCR", "at once"))
        assert {one.answer(), two.answer()} == {6, 7}
        assert KeyValue(store).get("at once") == b"7"
