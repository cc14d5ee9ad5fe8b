"""Commands on values that were deleted, by this agent or by another host."""

from collections.abc import Iterator
from typing import Any

import pytest

from skymemory.sky.tenant_secret import secret_of
from skymemory.store.deletions import DELETION_BYTES, KEPT_US
from skymemory.store.keyvalue import KeyValue, ValueKeys, now_unix_ms
from skymemory.store.results import Status
from skymemory.store.sky_store import SkyStore
from skymemory.store.versions import Versions, now_unix_us
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.envelope import VALUE_VERSION_MAX

from .inside import InsideGateway
from .raw import RawClient, encoded

LATER_MS = "4000000000000"


@pytest.fixture
def inside() -> Iterator[InsideGateway]:
    with InsideGateway() as one:
        yield one


@pytest.fixture
def client(inside: InsideGateway) -> Iterator[RawClient]:
    with RawClient(inside.port) as one:
        yield one


def put(inside: InsideGateway, *, value: bytes | None, version: int, terms_ms: int = 0, known: bool = False) -> bytes:
    """Let another host put a value, or delete it (None), under the name k.

    Args:
        known: The agent's index takes it for what satellites hold, whatever they get later.
    """
    keys = ValueKeys(inside.sky.tenant_secret)
    key = keys.key_of("k")
    block = keys.pack_deletion(key, version=version) if value is None else keys.pack(key, value, terms_ms, version=version)

    def there() -> None:
        inside.sky.blocks[key] = bytes(block)
        entry = inside.sky.entry(key)
        if known and entry is not None:
            inside.sky.store.index[key] = entry

    inside.run(there)
    return key


@pytest.mark.parametrize("terms", [(), ("PXAT", LATER_MS)])
@pytest.mark.parametrize(
    "goes", [("DEL", "k"), ("UNLINK", "k"), ("GETDEL", "k"), ("EXPIRE", "k", "-1"), ("GETEX", "k", "PXAT", "1")]
)
@pytest.mark.parametrize(
    ("command", "answer"),
    [
        (("GET", "k"), None),
        (("EXISTS", "k", "k"), 0),
        (("STRLEN", "k"), 0),
        (("TYPE", "k"), b"none"),
        (("TTL", "k"), -2),
        (("TOUCH", "k"), 0),
        (("DEL", "k"), 0),
        (("GETDEL", "k"), None),
        (("MGET", "k", "k"), [None, None]),
        (("EXPIRE", "k", "10"), 0),
        (("PERSIST", "k"), 0),
        (("SET", "k", "new", "XX"), None),
        (("SET", "k", "new", "NX"), b"OK"),
        (("SETNX", "k", "new"), 1),
        (("SET", "k", "new", "GET"), None),
        (("SET", "k", "new", "KEEPTTL"), b"OK"),
        (("INCR", "k"), 1),
        (("KEYS", "*"), []),
        (("DBSIZE",), 0),
    ],
)
def test_it_is_absent(
    inside: InsideGateway, client: RawClient, terms: tuple[str, ...], goes: tuple[str, ...], command: tuple[str, ...], answer: Any
) -> None:
    assert client.ask("SET", "k", "5", *terms) == b"OK"
    assert client.ask(*goes) in (1, b"5")
    assert inside.sky.left == set()
    puts = inside.sky.puts
    assert client.ask(*command) == answer
    stores = answer in (b"OK", 1) or command[-1] == "GET"
    assert inside.sky.puts == puts + stores
    assert client.ask("EXISTS", "k") == stores
    assert client.ask("TTL", "k") == (-1 if stores else -2)


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize(
    ("command", "answer"), [("GET", None), ("EXISTS", 0), ("TTL", -2), ("INCR", 1), ("DEL", 0), ("STRLEN", 0)]
)
def test_another_host_deleted_it(inside: InsideGateway, client: RawClient, is_known: bool, command: str, answer: Any) -> None:
    assert client.ask("SET", "k", "5") == b"OK"
    put(inside, value=None, version=now_unix_us() + 1, known=is_known)
    assert client.ask(command, "k") == answer


@pytest.mark.parametrize(
    ("command", "answer"), [("GET", b"5"), ("EXISTS", 1), ("TTL", -1), ("INCR", 6), ("DEL", 1), ("STRLEN", 1)]
)
def test_another_host_put_it_again(inside: InsideGateway, client: RawClient, command: str, answer: Any) -> None:
    """What the agent knows of a deletion is never believed without a question."""
    put(inside, value=None, version=5, known=True)
    put(inside, value=b"5", version=6)
    assert client.ask(command, "k") == answer


def test_a_deletion_by_another_host_is_not_counted_again(inside: InsideGateway, client: RawClient) -> None:
    put(inside, value=b"5", version=5, known=True)
    put(inside, value=None, version=6)
    assert client.ask("DEL", "k") == 0
    assert inside.sky.puts == 0


def test_who_deletes_what_is_not_there_puts_nothing(inside: InsideGateway, client: RawClient) -> None:
    assert client.ask("DEL", "k", "other") == 0
    assert (inside.sky.puts, inside.sky.blocks) == (0, {})


def test_what_waits_at_once_is_done_in_order(inside: InsideGateway, client: RawClient) -> None:
    words = [("SET", "k", "1"), ("DEL", "k"), ("DEL", "k"), ("INCR", "k"), ("GETDEL", "k"), ("EXISTS", "k")]
    client.send(b"".join(encoded(*one) for one in words))
    assert [client.answer() for _ in words] == [b"OK", 1, 0, 1, b"1", 0]
    assert inside.sky.left == set()


@pytest.mark.parametrize(("age_us", "is_kept"), [(KEPT_US - 3_600_000_000, True), (KEPT_US + 1, False)])
def test_who_reads_an_old_deletion_purges_it(inside: InsideGateway, client: RawClient, age_us: int, is_kept: bool) -> None:
    key = put(inside, value=None, version=now_unix_us() - age_us)
    assert client.ask("EXISTS", "k") == 0
    assert len(inside.sky.blocks[key]) == DELETION_BYTES  # the length says that it is deleted, and not when
    assert client.ask("GET", "k") is None
    assert (key in inside.sky.blocks) is is_kept


def test_who_reads_an_expired_value_deletes_it(inside: InsideGateway, client: RawClient) -> None:
    key = put(inside, value=b"5", version=5, terms_ms=now_unix_ms() - 1)
    assert client.ask("GET", "k") is None
    found = ValueKeys(inside.sky.tenant_secret).unpack(key, bytearray(inside.sky.blocks[key]))
    assert found is not None
    assert (found.is_deleted, found.version) == (True, 6)


def test_a_forged_deletion_is_damage(inside: InsideGateway, client: RawClient) -> None:
    key = put(inside, value=None, version=now_unix_us())
    inside.run(lambda: inside.sky.blocks.update({key: bytes(DELETION_BYTES)}))
    assert client.ask("GET", "k") is None
    assert key not in inside.sky.blocks


def test_a_deletion_that_nobody_stores_is_told(inside: InsideGateway, client: RawClient) -> None:
    assert client.ask("SET", "k", "5") == b"OK"
    inside.run(lambda: setattr(inside.sky, "put_status", Status.STORE_FULL))
    assert client.ask("DEL", "k") == "ERR not stored: store full"
    assert client.ask("GET", "k") == b"5"


def test_behind_the_largest_version_a_value_is_purged(full_sky: LocalConstellation, port: int) -> None:
    keys = ValueKeys(secret := secret_of(full_sky.constellation))
    key = keys.key_of("largest")
    with SkyStore(full_sky.constellation, tenant_secret=secret) as store, RawClient(port) as client:
        assert store.put([(key, keys.pack(key, b"last", version=VALUE_VERSION_MAX))])[0].ok
        assert client.ask("SET", "largest", "more") == "ERR not stored: old version"
        assert client.ask("DEL", "largest") == 1
        assert store.find([key], fresh=True)[0].entry is None
        assert client.ask("SET", "largest", "more") == b"OK"
        assert KeyValue(store).get("largest") == b"more"


@pytest.mark.parametrize("size", [10, 3_000_000])
def test_a_value_of_a_host_whose_clock_is_ahead_is_deleted(full_sky: LocalConstellation, port: int, size: int) -> None:
    name = f"ahead and deleted {size}"
    with SkyStore(full_sky.constellation) as store, RawClient(port) as client:
        assert KeyValue(store, versions=Versions(lambda: 10**18)).put(name, bytes(size)).ok
        assert client.ask("DEL", name) == 1
        assert KeyValue(store).get(name) is None
        assert client.ask("DEL", name) == 0
        assert client.ask("SET", name, "again") == b"OK"
        assert KeyValue(store).get(name) == b"again"
