"""Users of the gateway: who they are, what they may do, what they see."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from skymemory.agent.gateway.users import Users, add_user
from skymemory.common.guesses import Guesses
from skymemory.store.keyvalue import ValueKeys

from .inside import InsideGateway
from .raw import RawClient


@pytest.fixture
def words(tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "users.toml"
    return {
        "alice": add_user(path, "alice", 7),
        "reader": add_user(path, "reader", 7, read_only=True),
        "bob": add_user(path, "bob", 8),
    }


@pytest.fixture
def users(words: dict[str, str], tmp_path: Path) -> Users:
    return Users("own", tmp_path / "users.toml")


def hello(client: RawClient, *words: str) -> Any:
    return client.ask("HELLO", "2", *words)


def test_a_client_is_who_it_says_and_may_become_another(users: Users, words: dict[str, str]) -> None:
    with InsideGateway(users=users) as inside, RawClient(inside.port) as client:
        assert client.ask("ACL", "WHOAMI") == "NOAUTH Authentication required."
        assert client.ask("AUTH", "alice", words["alice"]) == b"OK"
        assert client.ask("ACL", "WHOAMI") == b"alice"
        assert client.ask("SET", "k", "of alice") == b"OK"
        assert b"server" in hello(client, "AUTH", "bob", words["bob"], "SETNAME", "b")
        assert client.ask("ACL", "WHOAMI") == b"bob"
        assert client.ask("GET", "k") is None
        assert client.ask("AUTH", "own") == b"OK"
        assert client.ask("ACL", "WHOAMI") == b"default"
        assert client.ask("GET", "k") is None
        assert b" user=default " in client.ask("CLIENT", "INFO")
        assert client.ask("ACL", "LIST").startswith("ERR unknown subcommand 'LIST'")
        assert client.ask("AUTH", "reader", words["reader"]) == b"OK"
        assert client.ask("GET", "k") == b"of alice"
        assert client.ask("SET", "k", "x") == "NOPERM User reader has no permissions to run the 'set' command"
        assert client.ask("DEL", "k").startswith("NOPERM")
        assert client.ask("FLUSHALL").startswith("NOPERM")
        assert client.ask("KEYS", "*") == [b"k"]


def test_an_unknown_user_looks_like_a_wrong_password(users: Users, words: dict[str, str]) -> None:
    guesses = Guesses(first_pause_s=0.0, pause_max_s=0.0)
    with InsideGateway(users=users, guesses=guesses) as inside, RawClient(inside.port) as client:
        wrong = "WRONGPASS invalid username-password pair or user is disabled."
        for name, word in (("nobody", "x"), ("alice", "x"), ("alice", words["bob"]), ("default", "x"), ("nobody", "own")):
            assert client.ask("AUTH", name, word) == wrong
            assert hello(client, "AUTH", name, word) == wrong
        assert client.ask("AUTH", "alice", words["alice"]) == b"OK"


def test_a_right_password_waits_for_no_wrong_one_of_the_same_address(users: Users) -> None:
    with InsideGateway(users=users, guesses=Guesses(1000.0, 1000.0)) as inside, ExitStack() as stack:
        guessers = [stack.enter_context(RawClient(inside.port)) for _ in range(100)]
        for one in guessers:
            one.send(b"AUTH wrong\r\n")
        for _ in range(20):
            with RawClient(inside.port) as client:
                assert client.ask("AUTH", "own") == b"OK"
                assert b"server" in hello(client, "AUTH", "default", "own")
                assert client.ask("GET", "k") is None


def test_commands_behind_a_wrong_password_wait_for_its_answer(users: Users) -> None:
    with InsideGateway(users=users, guesses=Guesses(0.05, 0.05)) as inside, RawClient(inside.port) as client:
        client.send(b"AUTH wrong\r\nGET k\r\nAUTH own\r\nPING\r\n")
        assert client.answer().startswith("WRONGPASS")
        assert client.answer() == "NOAUTH Authentication required."
        assert client.answer() == b"OK"
        assert client.answer() == b"PONG"


def test_a_client_that_is_busy_keeps_its_place() -> None:
    with InsideGateway(clients_max=2) as inside, RawClient(inside.port) as batch, RawClient(inside.port) as busy:
        assert batch.ask("MULTI") == b"OK"
        inside.run(inside.sky.held.clear)
        busy.send(b"SET k v\r\n")
        with RawClient(inside.port) as late:
            assert late.answer() == "ERR max number of clients reached"
        inside.run(inside.sky.held.set)
        assert busy.answer() == b"OK"
        with RawClient(inside.port) as late:
            assert late.ask("PING") == b"PONG"
        assert busy.has_ended()
        assert batch.ask("DISCARD") == b"OK"


def test_tenants_keys_come_from_the_skys_secret_or_their_own(tmp_path: Path) -> None:
    path = tmp_path / "users.toml"
    (tmp_path / "own.secret").touch(mode=0o600)
    (tmp_path / "own.secret").write_bytes(b"of tenant 9")
    words = {"alice": add_user(path, "alice", 7), "carol": add_user(path, "carol", 9, tenant_secret_file="own.secret")}
    with InsideGateway(users=Users("own", path)) as inside, RawClient(inside.port) as client:
        for name, word in ({"default": "own"} | words).items():
            assert client.ask("AUTH", name, word) == b"OK"
            assert client.ask("SET", "k", f"of {name}") == b"OK"
        secret = inside.sky.tenant_secret
        keys = [ValueKeys(secret), ValueKeys(secret, 7), ValueKeys(b"of tenant 9", 9)]
        assert set(inside.sky.blocks) == {each.key_of("k") for each in keys}
        found = [each.unpack(each.key_of("k"), bytearray(inside.sky.blocks[each.key_of("k")])) for each in keys]
        assert [value and bytes(value.data) for value in found] == [b"of default", b"of alice", b"of carol"]
