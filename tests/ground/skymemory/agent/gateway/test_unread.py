"""What lies under a name and cannot be read: it is missed, but it is there, and can be deleted or replaced."""

import pytest

from skymemory.sky.entry_satellites import server_routes
from skymemory.sky.tenant_secret import secret_of
from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.keyvalue import ValueKeys
from skymemory.store.results import Status
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from support.evictions import evict

from .inside import InsideGateway
from .raw import RawClient, encoded

FAR_UNIX_MS = 4_000_000_000_000
STATUSES = pytest.mark.parametrize("status", [Status.TOO_LARGE, Status.BAD_KEY])


def told(status: Status) -> str:
    return f"ERR the value cannot be read: {status.replace('_', ' ')}; DEL deletes it"


def put_unreadable(inside: InsideGateway, status: Status) -> None:
    """Under the name k; it may have expired, so that nobody knows whether it is there who has not read it."""
    keys = ValueKeys(inside.sky.tenant_secret)
    key = keys.key_of("k")
    inside.sky.blocks[key] = bytes(keys.pack(key, b"v", FAR_UNIX_MS, version=1))
    inside.sky.get_status = status


@STATUSES
def test_it_can_be_deleted(status: Status) -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:
        inside.run(lambda: put_unreadable(inside, status))
        assert client.ask("GET", "k") is None
        assert client.ask("DEL", "k") == 1
        assert inside.sky.left == set()
        assert client.ask("DEL", "k") == 0


@STATUSES
def test_nothing_is_done_that_depends_on_it(status: Status) -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:
        inside.run(lambda: put_unreadable(inside, status))
        for change in (("SET", "k", "new", "NX"), ("SET", "k", "new", "KEEPTTL"), ("EXPIRE", "k", "10"), ("PERSIST", "k")):
            assert client.ask(*change) == told(status)
        assert len(inside.sky.blocks) == 1


@STATUSES
def test_what_waits_with_it_is_done_in_order(status: Status) -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:
        inside.run(lambda: put_unreadable(inside, status))
        client.send(encoded("TTL", "k") * 2 + encoded("DEL", "k") + encoded("SET", "k", "new", "NX") + encoded("GET", "k"))
        assert [client.answer() for _ in range(5)] == [-2, -2, 1, b"OK", b"new"]
        inside.run(lambda: setattr(inside.sky, "get_status", None))
        assert client.ask("GET", "k") == b"new"
        assert client.ask("TTL", "k") == -1


def test_shares_of_two_values_are_deleted(full_sky: LocalConstellation, port: int) -> None:
    """A host stored half of a value where another was.

    A put ends when the first satellite refuses it. The others have their shares by then if the host had cookies of all before.
    """
    keys = ValueKeys(secret_of(full_sky.constellation))
    key, before = keys.key_of("two values"), keys.key_of("before two values")
    old, new = (keys.pack(key, bytes(length), FAR_UNIX_MS, version=1) for length in (60_000, 70_000))
    with SkyStore(full_sky.constellation) as store, SkyStore(full_sky.constellation) as other, RawClient(port) as client:
        routes = server_routes(Whereabouts(full_sky.constellation), 0.0)
        assert store.put([(key, old)])[0].ok
        assert evict(store.control, routes[1:3], [key], full_sky.constellation.cache.tenant).chunks > 0
        assert other.put([(before, keys.pack(before, bytes(60_000), FAR_UNIX_MS, version=1))])[0].ok
        assert other.put([(key, new)])[0].status is Status.BAD_KEY
        assert store.get([key])[0].status is Status.BAD_KEY
        assert client.ask("GET", "two values") is None
        assert client.ask("SET", "two values", "v", "KEEPTTL") == told("bad_key")
        assert client.ask("DEL", "two values") == 1
        assert client.ask("DEL", "two values") == 0
        assert client.ask("SET", "two values", "v", "NX") == b"OK"
        assert client.ask("GET", "two values") == b"v"
