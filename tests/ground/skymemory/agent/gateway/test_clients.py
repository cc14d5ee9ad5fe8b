"""Clients that nobody here wrote, at a real agent over real satellites."""

import os
import shutil
import subprocess
from collections.abc import Callable
from typing import Any
from unittest.mock import ANY

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from skymemory.store.keyvalue import KeyValue
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from support.waiting import wait_until

Connect = Callable[..., Any]
PROTOCOLS = pytest.mark.parametrize("protocol", [2, 3])


def cli(port: int, *words: str, stdin: bytes = b"", flags: tuple[str, ...] = ()) -> bytes:
    command = ["redis-cli", "-p", str(port), *flags, *words]
    return subprocess.run(command, input=stdin, stdout=subprocess.PIPE, check=True, timeout=60).stdout


needs_redis_tools = pytest.mark.skipif(
    shutil.which("redis-cli") is None and not os.environ.get("CI"), reason="redis-cli is not installed"
)


@needs_redis_tools
def test_redis_cli(port: int) -> None:
    assert cli(port, "ping") == b"PONG\n"
    assert cli(port, "set", "cli", "v") == b"OK\n"
    assert cli(port, "get", "cli") == b"v\n"
    assert cli(port, "-x", "set", "cli binary", stdin=bytes(range(256))) == b"OK\n"
    assert cli(port, "get", "cli binary") == bytes(range(256)) + b"\n"
    assert cli(port, "get", "cli none", flags=("--no-raw",)) == b"(nil)\n"
    assert cli(port, "hello", "3", flags=("-3",)).startswith(b"server skymemory\n")
    assert set(cli(port, "--scan", "--pattern", "cli*").split(b"\n")[:2]) == {b"cli", b"cli binary"}
    assert b"unknown command 'lpush'" in cli(port, "lpush", "list", "x")
    assert cli(port, stdin=b"SET typed 1\nTTL typed\n") == b"OK\n-1\n"


@needs_redis_tools
def test_a_value_of_redis_cli_is_one_of_skymem(port: int, full_sky: LocalConstellation) -> None:
    with SkyStore(full_sky.constellation) as store:
        assert cli(port, "set", "shared", "from redis-cli") == b"OK\n"
        assert KeyValue(store).get("shared") == b"from redis-cli"
        assert KeyValue(store).put("shared", b"from skymem put").ok
        assert cli(port, "get", "shared") == b"from skymem put\n"
        assert cli(port, "-n", "7", "set", "shared", "seven") == b"OK\n"
        assert KeyValue(store, "7").get("shared") == b"seven"


@needs_redis_tools
def test_redis_cli_looks_for_big_keys(port: int, connect: Connect) -> None:
    assert connect(db=9).mset({"small": "1", "big one": "x" * 5000, "other": "xx"})
    printed = cli(port, "--bigkeys", "-n", "9").decode()
    assert "Sampled 3 keys in the keyspace!" in printed
    assert "Biggest string found" in printed
    assert "big one" in printed
    assert "5000 bytes" in printed
    assert "0 lists with 0 items" in printed


@needs_redis_tools
@pytest.mark.parametrize("flags", [("-P", "1"), ("-P", "16"), ("-P", "16", "-d", "7000", "-r", "50")])
def test_redis_benchmark(port: int, flags: tuple[str, ...]) -> None:
    command = ["redis-benchmark", "-p", str(port), "-t", "ping,set,get,mset", "-n", "500", "-c", "20", "--csv", *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    rows = [line.split('","')[0].strip('"') for line in done.stdout.splitlines()[1:]]
    assert [row.split()[0] for row in rows] == ["PING_INLINE", "PING_MBULK", "SET", "GET", "MSET"]
    assert "rror" not in done.stderr


@PROTOCOLS
def test_redis_py(connect: Connect, protocol: int) -> None:
    client = connect(protocol=protocol, client_name=f"tests{protocol}", db=protocol)
    assert client.ping()
    name, value = b"\xff" + os.urandom(39), os.urandom(50_000)  # any bytes, but not a name that begins with a or b
    assert client.set(name, value)
    assert client.get(name) == value
    assert client.get(b"none") is None
    assert client.strlen(name) == 50_000
    assert client.set(name, b"2", nx=True) is None
    assert client.set(name, b"2", xx=True, get=True) == value
    assert client.set("terms", "v", ex=1000)
    assert 900 <= client.ttl("terms") <= 1000
    assert client.set("terms", "w", keepttl=True)
    assert 900_000 < client.pttl("terms") <= 1_000_000
    assert client.persist("terms")
    assert client.ttl("terms") == -1
    assert client.expire("terms", 50)
    assert client.get("terms") == b"w"
    assert client.ttl("none") == -2
    assert client.mset({b"a\r\n\0": b"1", "b": b"2" * 7000, "c": ""})
    assert client.mget(b"a\r\n\0", "none", "b", "c") == [b"1", None, b"2" * 7000, b""]
    assert client.exists("b", "b", "none") == 2
    assert set(client.scan_iter(count=2)) == {name, b"terms", b"a\r\n\0", b"b", b"c"}
    assert set(client.scan_iter(match="[a-b]*")) == {b"a\r\n\0", b"b"}
    assert set(client.keys()) == {name, b"terms", b"a\r\n\0", b"b", b"c"}
    assert client.keys("[a-b]*") in ([b"a\r\n\0", b"b"], [b"b", b"a\r\n\0"])
    assert client.keys("none*") == []
    assert client.dbsize() == 5
    assert client.type("b") == b"string"
    assert client.type("none") == b"none"
    assert client.touch("b", "none", "c") == 2
    assert (client.incr("number"), client.incrby("number", 41), client.decr("number", 2)) == (1, 42, 40)
    assert client.getex("number", ex=1000) == b"40"
    assert client.incr("number") == 41
    assert 900 <= client.ttl("number") <= 1000
    assert client.getex("number", persist=True) == b"41"
    assert client.ttl("number") == -1
    assert client.getdel("number") == b"41"
    assert client.getdel("number") is None
    assert client.delete("b", "none") == 1
    assert client.unlink("c") == 1
    info = client.info()
    assert info[f"db{protocol}"] == {"keys": 3, "expires": 1, "avg_ttl": ANY}
    assert info["reachable"] == 1
    assert client.config_get("proto-max-bulk-len") == {"proto-max-bulk-len": "536870912"}
    assert client.client_getname() in (f"tests{protocol}", f"tests{protocol}".encode())
    assert any(one["lib-name"] == "redis-py" for one in client.client_list())
    assert client.command_count() == len(client.command())
    assert client.flushdb()
    assert client.dbsize() == 0
    assert client.get(name) is None


@PROTOCOLS
def test_pipelines(connect: Connect, protocol: int) -> None:
    client = connect(protocol=protocol, db=4)
    pipeline = client.pipeline(transaction=False)
    for number in range(1500):
        pipeline.set(f"p{number % 300}", str(number)).get(f"p{number % 300}").exists("p0", "pnone")
    answers = pipeline.execute()
    assert answers[::3] == [True] * 1500
    assert answers[1::3] == [str(number).encode() for number in range(1500)]
    assert answers[2::3] == [1] * 1500
    pipeline = client.pipeline(transaction=False)
    pipeline.mget([f"p{number}" for number in range(300)]).dbsize().flushdb().dbsize().get("p0")
    assert pipeline.execute() == [[str(1200 + number).encode() for number in range(300)], 300, True, 0, None]


def test_what_is_set_and_deleted_while_another_command_runs_was_there(connect: Connect) -> None:
    client = connect()
    for command in ("GET", "STRLEN", "EXISTS"):
        with client.pipeline(transaction=False) as pipe:
            pipe.execute_command(command, "short-lived")
            pipe.set("short-lived", "v").delete("short-lived").delete("short-lived")
            assert pipe.execute()[1:] == [True, 1, 0]
        assert client.get("short-lived") is None


def test_large_values(connect: Connect) -> None:
    client = connect()
    values = {f"large{length}": os.urandom(length) for length in (99_999, 100_000, 262_144, 3_145_728, 20_000_001)}
    assert client.mset(values)
    assert client.mget(list(values)) == list(values.values())
    pipeline = client.pipeline(transaction=False)
    for name in values:
        pipeline.get(name).strlen(name).ttl(name)
    assert pipeline.execute()[::3] == list(values.values())
    name, value = os.urandom(65_536), os.urandom(200_000)  # a long name, too
    assert client.set(name, value, px=90_000)
    assert client.get(name) == value
    assert client.set(name, value, get=True) == value
    assert client.echo(name) == name
    assert client.delete(name, *values) == 6


def test_what_another_agent_put(connect: Connect, full_sky: LocalConstellation) -> None:
    """Without a directory that knows it: EXISTS, STRLEN and TTL of values that never expire, and of those that do."""
    client = connect()
    with SkyStore(full_sky.constellation) as store:
        there = KeyValue(store)
        for length in (0, 1, 10, 6001):
            assert there.put(f"other{length}", bytes(length)).ok
            assert there.put(f"other{length}t", bytes(length), expires_unix_ms=4_000_000_000_000).ok
    for length in (0, 1, 10, 6001):
        assert client.exists(f"other{length}", f"other{length}t") == 2
        assert client.ttl(f"other{length}") == -1
        assert client.pexpiretime(f"other{length}t") == 4_000_000_000_000
        assert client.strlen(f"other{length}") == client.strlen(f"other{length}t") == length
        assert client.set(f"other{length}", b"new", nx=True) is None
    assert len(set(client.scan_iter(match="other*"))) == 8


def test_nx_is_atomic(connect: Connect) -> None:
    clients = [connect() for _ in range(8)]
    for round_ in range(5):
        pipelines = [client.pipeline(transaction=False) for client in clients]
        for number, pipeline in enumerate(pipelines):
            for name in range(20):
                pipeline.set(f"nx{round_}-{name}", str(number), nx=True)
        sent = []
        for client, pipeline in zip(clients, pipelines, strict=True):
            connection = client.connection_pool.get_connection()
            connection.send_packed_command(connection.pack_commands([one[0] for one in pipeline.command_stack]))
            sent.append(connection)
        won = [[connection.read_response() for _ in range(20)] for connection in sent]
        for client, connection in zip(clients, sent, strict=True):
            client.connection_pool.release(connection)
        for name in range(20):
            winners = [number for number in range(8) if won[number][name] is not None]
            assert clients[0].get(f"nx{round_}-{name}") == b"".join(str(number).encode() for number in winners)


def test_a_password(full_sky: LocalConstellation, start_agent: Callable[..., Any]) -> None:
    agent = start_agent(full_sky, "--resp-port", "0", "--resp-password", "open sesame")
    port = int(agent.addresses["redis"].rpartition(":")[2])
    for protocol in (2, 3):
        with redis.Redis(port=port, protocol=protocol, password="open sesame") as client:
            assert client.set("k", "v")
        with redis.Redis(port=port, protocol=protocol, username="default", password="open sesame") as client:
            assert client.get("k") == b"v"
        once = {"protocol": protocol, "retry": Retry(NoBackoff(), 0)}
        with redis.Redis(port=port, password="wrong", **once) as client, pytest.raises(redis.AuthenticationError):
            client.ping()
        with redis.Redis(port=port, protocol=protocol) as client, pytest.raises(redis.AuthenticationError):
            client.get("k")


def test_metrics(agent: Any, connect: Connect) -> None:
    client = connect()
    client.set("metrics", bytes(10_000))
    client.get("metrics")
    with pytest.raises(redis.ResponseError):
        client.execute_command("nonsense")
    _, body = agent.get("/metrics")
    found = dict(line.rsplit(" ", 1) for line in body.decode().splitlines() if line.startswith("skymem_resp"))
    assert float(found['skymem_resp_commands_total{command="set"}']) >= 1
    assert float(found['skymem_resp_command_duration_seconds_count{command="get"}']) >= 1
    assert float(found['skymem_resp_errors_total{kind="ERR"}']) >= 1
    assert float(found["skymem_resp_received_bytes_total"]) > 10_000
    assert float(found["skymem_resp_sent_bytes_total"]) > 10_000
    assert float(found["skymem_resp_connections"]) >= 1
    assert "skymem_resp_memory_bytes" in found
    wait_until(lambda: agent.metric("skymem_resp_memory_bytes") == 0, "clients of other tests have left commands behind")
