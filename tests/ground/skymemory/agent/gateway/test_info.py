"""INFO, CLIENT LIST: what clients are told of the gateway, which is what their own tenant does."""

import os
import subprocess
from pathlib import Path

import pytest

from skymemory.agent.gateway.users import Users, add_user
from support.waiting import wait_until

from .inside import InsideGateway
from .raw import RawClient, encoded

MOVING = ("server_time_usec", "uptime_in_seconds", "instantaneous_input_kbps", "instantaneous_output_kbps")


@pytest.fixture
def words(tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "users.toml"
    return {"alice": add_user(path, "alice", 7), "bob": add_user(path, "bob", 8)}


@pytest.fixture
def users(words: dict[str, str], tmp_path: Path) -> Users:
    return Users("own", tmp_path / "users.toml")


def told(client: RawClient, *sections: str) -> dict[str, str]:
    lines = client.ask("INFO", *sections).decode().split("\r\n")
    return {name: value for name, _, value in (line.partition(":") for line in lines) if value and name not in MOVING}


def titles(client: RawClient, *sections: str) -> list[str]:
    return [line[2:] for line in client.ask("INFO", *sections).decode().split("\r\n") if line.startswith("# ")]


def test_to_tell_of_the_server_starts_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All other clients would wait for it. Python asks the program `file` how many bits an address of this machine has."""
    started, program = tmp_path / "started", tmp_path / "file"
    program.write_text(f"#!/bin/sh\n: > '{started}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with InsideGateway() as inside, RawClient(inside.port) as client:
        assert told(client, "server")["arch_bits"] in ("32", "64")
        assert titles(client, "server", "KEYSPACE") == ["Server", "Keyspace"]
    assert not started.exists()


def test_a_tenant_learns_nothing_of_what_others_do(users: Users, words: dict[str, str]) -> None:
    with InsideGateway(users=users) as inside, RawClient(inside.port) as alice, RawClient(inside.port) as bob:
        assert alice.ask("AUTH", "alice", words["alice"]) == b"OK"
        first, second = told(alice, "all"), told(alice, "all")
        own = {name for name in second if first.get(name) != second[name]}  # what asking changes by itself
        steps = {name: int(second[name]) - int(first[name]) for name in ("total_commands_processed", "total_net_input_bytes")}
        with RawClient(inside.port), RawClient(inside.port) as stranger:
            assert stranger.ask("GET", "k").startswith("NOAUTH")
            assert bob.ask("AUTH", "bob", words["bob"]) == b"OK"
            for number in range(100):
                assert bob.ask("SET", f"k{number}", "v" * 1000) == b"OK"
                assert bob.ask("GET", f"k{number}") == b"v" * 1000
            assert bob.ask("INCR", "k0").startswith("ERR")
            inside.run(inside.sky.held.clear)
            bob.send(encoded("SET", "k", b"v" * 1_000_000))
            wait_until(lambda: inside.used_bytes > 1_000_000, "the value waits")
            third = told(alice, "all")
            listed = alice.ask("CLIENT", "LIST").decode().splitlines()
            inside.run(inside.sky.held.set)
            assert bob.answer() == b"OK"
        assert {name for name in third if second.get(name) != third[name]} <= own
        for name, step in steps.items():
            assert int(third[name]) - int(second[name]) == step, name
        assert [line.split()[0] for line in listed] == ["id=1"]
        assert bob.ask("CLIENT", "ID") == 1
        assert told(alice)["connected_clients"] == "1"


def test_the_operator_sees_all_tenants(users: Users, words: dict[str, str]) -> None:
    with InsideGateway(users=users) as inside, RawClient(inside.port) as client:
        for name, word in words.items():
            assert client.ask("AUTH", name, word) == b"OK"
            assert client.ask("SET", "k", "v") == b"OK"
            assert client.ask("GET", "k") == b"v"
        samples = {
            (one.name, *one.labels.values()): one.value
            for family in inside.run(lambda: list(inside.gateway.shared.meter.collect()))
            for one in family.samples
        }
        assert samples["skymem_resp_commands_total", "set"] == 2
        assert samples["skymem_resp_keyspace_hits_total",] == 2
        assert samples["skymem_resp_connections_accepted_total",] == 1


def test_reads_and_values_that_go_are_counted() -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:
        assert client.ask("SET", "k", "v") == b"OK"
        for command in ("GET", "MGET", "STRLEN", "TYPE", "EXISTS", "TTL", "GETDEL"):
            client.ask(command, "k")
            client.ask(command, "none")
        assert {name: told(client, "stats")[name] for name in ("keyspace_hits", "keyspace_misses")} == {
            "keyspace_hits": "7",
            "keyspace_misses": "7",
        }
        assert client.ask("SET", "short", "v", "PX", "1000") == b"OK"  # so long that it is known before it expires
        wait_until(lambda: client.ask("DBSIZE") == 0, "the value expires")
        assert told(client, "stats")["expired_keys"] == "1"
        assert client.ask("SET", "lost", "v") == b"OK"
        inside.run(inside.sky.blocks.clear)
        assert client.ask("GET", "lost") is None
        assert told(client, "stats")["evicted_keys"] == "1"
        assert client.ask("SET", "k", "v", "EX", "1000") == b"OK"
        found = told(client, "keyspace")["db0"]
        assert found.startswith("keys=1,expires=1,avg_ttl=")
        assert 0 < int(found.rpartition("=")[2]) <= 1_000_000


def test_rates_follow_what_is_asked() -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:

        def rate() -> int:
            client.send(encoded("PING") * 100)
            assert [client.answer() for _ in range(100)] == [b"PONG"] * 100
            return int(told(client, "stats")["instantaneous_ops_per_sec"])

        wait_until(lambda: rate() > 0, "there is a rate")


def test_sections_are_those_of_redis() -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:
        default, every = titles(client), titles(client, "everything")
        assert default == titles(client, "default")
        assert every == titles(client, "all") == titles(client, "everything", "server")
        assert set(every) - set(default) == {"Commandstats"}
        assert titles(client, "keyspace", "SERVER", "nothing") == ["Server", "Keyspace"]
        assert titles(client, "default", "commandstats") == every
        assert client.ask("INFO", "nothing") == b""
        assert told(client, "commandstats")["cmdstat_info"].startswith("calls=")


def test_redis_cli_tells_numbers() -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:
        assert client.ask("SET", "k", "v") == b"OK"
        child = subprocess.Popen(["redis-cli", "-p", str(inside.port), "-i", "0.05", "--stat"], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        with child.stdout:
            lines = [child.stdout.readline() for _ in range(4)]
            child.terminate()
            child.wait()
        # Keys, memory (one or two words), clients, blocked, requests, connections
        assert lines[2].split()[0] == "1"
        assert "-9223372036854775808" not in "".join(lines)


def test_while_the_constellation_is_looked_for_clients_are_told_to_wait() -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:
        inside.sky.is_loading = True
        for command in (("GET", "k"), ("SET", "k", "v"), ("PING",), ("DBSIZE",)):
            assert client.ask(*command).startswith("LOADING ")
        assert told(client, "persistence")["loading"] == "1"
        assert client.ask("CLIENT", "SETNAME", "a") == b"OK"
        assert client.ask("SELECT", "0") == b"OK"
        assert client.ask("MULTI") == b"OK"
        assert client.ask("GET", "k").startswith("LOADING ")
        assert client.ask("EXEC").startswith("EXECABORT")
        inside.sky.is_loading = False
        assert client.ask("PING") == b"PONG"
        assert told(client)["loading"] == "0"
