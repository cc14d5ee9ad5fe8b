"""What the gateway seals: in memory of its own, under names that only the tenant finds, and never an older value."""

from collections.abc import Callable
from typing import Any

import pytest

from skymemory.sky.tenant_secret import secret_of
from skymemory.store.keyvalue import KeyValue
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from support.waiting import wait_until

from .inside import InsideGateway
from .raw import RawClient, encoded

Connect = Callable[..., Any]
LARGE = bytes(range(256)) * 1200
LARGER = LARGE[::-1] * 2


@pytest.mark.parametrize("value", [LARGE, LARGER, LARGE[:10]])
def test_a_value_that_is_read_while_it_is_stored_is_plain(value: bytes) -> None:
    """A large argument is sealed where it lies, unless somebody has to be answered with it."""
    with InsideGateway() as inside, RawClient(inside.port) as first, RawClient(inside.port) as client:
        inside.run(inside.sky.held.clear)
        first.send(encoded("SET", "k", "first"))
        wait_until(lambda: inside.sky.puts == 1, "the first put has begun, so that others wait")
        assert [client.ask(*words) for words in (("MULTI",), ("SET", "k", value), ("GET", "k"))] == [b"OK", b"QUEUED", b"QUEUED"]
        client.send(encoded("EXEC"))
        with RawClient(inside.port) as other:
            for _ in range(10):  # by then EXEC has been read
                other.ask("PING")
        inside.run(inside.sky.held.set)
        assert client.answer() == [b"OK", value]
        assert first.answer() == b"OK"
        assert client.ask("GET", "k") == value


def test_a_large_value_goes_to_the_sky_sealed() -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:
        assert client.ask("SET", "k", LARGE) == b"OK"
        [block] = inside.sky.blocks.values()
        assert LARGE[:64] not in block
        assert b"k" not in inside.sky.blocks
        assert client.ask("GET", "k") == LARGE


def test_an_older_value_that_was_put_back_is_missed_and_left_alone() -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:
        assert client.ask("SET", "k", "old") == b"OK"
        old = dict(inside.sky.blocks)
        assert client.ask("SET", "k", "new") == b"OK"
        inside.sky.blocks |= old
        assert client.ask("GET", "k") is None
        assert inside.sky.blocks == old
        assert client.ask("SET", "k", "newest") == b"OK"
        assert client.ask("GET", "k") == b"newest"


def test_a_deleted_value_that_was_put_back_is_missed() -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:
        assert client.ask("SET", "k", "value") == b"OK"
        old = dict(inside.sky.blocks)
        assert client.ask("DEL", "k") == 1
        inside.sky.blocks |= old
        assert client.ask("GET", "k") is None


def test_swapped_values_are_missed() -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:
        assert client.ask("MSET", "one", "1", "two", "2") == b"OK"
        (one, first), (two, second) = inside.sky.blocks.items()
        inside.sky.blocks |= {one: second, two: first}
        assert client.ask("MGET", "one", "two") == [None, None]


def test_another_tenant_neither_finds_nor_replaces_a_value(full_sky: LocalConstellation, connect: Connect) -> None:
    client = connect()
    assert client.set("of a tenant", "mine")
    with SkyStore(full_sky.constellation, tenant_secret=b"another") as store:
        values = KeyValue(store)
        assert values.get("of a tenant") is None
        assert values.put("of a tenant", b"theirs").ok
    assert client.get("of a tenant") == b"mine"
    with SkyStore(full_sky.constellation, tenant_secret=secret_of(full_sky.constellation)) as store:
        assert KeyValue(store).get("of a tenant") == b"mine"
