"""MULTI, EXEC and DISCARD: a batch that is answered at once."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import redis

from skymemory.agent.gateway import connection
from skymemory.agent.gateway.users import Users
from support.waiting import wait_until

from .inside import InsideGateway
from .raw import RawClient, encoded

MIB = 1 << 20
Connect = Callable[..., Any]
ABORTED = "EXECABORT Transaction discarded because of previous errors."


@pytest.mark.parametrize("protocol", [2, 3])
def test_the_pipeline_of_redis_py(connect: Connect, protocol: int) -> None:
    client = connect(protocol=protocol, db=10 + protocol)
    with client.pipeline() as pipe:
        pipe.set("a", "1").incr("a").get("a").mget("a", "none").exists("a", "none").dbsize().flushdb().dbsize()
        assert pipe.execute() == [True, 2, b"2", [b"2", None], 1, 1, True, 0]
        assert pipe.execute() == []
        for number in range(3000):
            pipe.set(f"p{number % 50}", bytes(number)).get(f"p{number % 50}")
        assert pipe.execute()[1::2] == [bytes(number) for number in range(3000)]


def test_errors_in_a_batch_are_told_in_their_places(connect: Connect) -> None:
    client = connect(db=12)
    with client.pipeline() as pipe:
        pipe.set("word", "x").incr("word").get("word").execute_command("SET", "word", "y", "nonsense")
        done, wrong, word, syntax = pipe.execute(raise_on_error=False)
        assert (done, word) == (True, b"x")
        assert isinstance(wrong, redis.ResponseError)
        assert "value is not an integer or out of range" in str(wrong)
        assert "syntax error" in str(syntax)
        with pytest.raises(redis.ResponseError, match="value is not an integer or out of range"):
            pipe.set("word", "z").incr("word").execute()
    assert client.get("word") == b"z"


def test_a_command_that_cannot_wait_aborts_all(connect: Connect) -> None:
    client = connect(db=13)
    with client.pipeline() as pipe, pytest.raises(redis.ResponseError, match="unknown command 'nonsense'"):
        pipe.set("aborted", "x").execute_command("nonsense").execute()
    assert client.get("aborted") is None


def test_each_word(port: int) -> None:
    with RawClient(port) as client:
        assert client.ask("EXEC") == "ERR EXEC without MULTI"
        assert client.ask("DISCARD") == "ERR DISCARD without MULTI"
        assert client.ask("MULTI", "x") == "ERR wrong number of arguments for 'multi' command"
        assert client.ask("MULTI") == b"OK"
        assert client.ask("MULTI") == "ERR MULTI calls can not be nested"
        assert client.ask("SET", "each", "1") == b"QUEUED"
        with RawClient(port) as other:
            assert other.ask("GET", "each") is None
        assert client.ask("EXEC") == [b"OK"]
        assert client.ask("EXEC") == "ERR EXEC without MULTI"
        assert client.ask("MULTI") == b"OK"
        assert client.ask("DEL", "each") == b"QUEUED"
        assert client.ask("DISCARD") == b"OK"
        assert client.ask("GET", "each") == b"1"
        for wrong in (("GET",), ("nonsense",), ("GET", bytes(65_537))):
            assert client.ask("MULTI") == b"OK"
            assert client.ask(*wrong).startswith("ERR ")
            assert client.ask("DEL", "each") == b"QUEUED"
            assert client.ask("EXEC") == ABORTED
        assert client.ask("MULTI") == b"OK"
        assert client.ask("EXEC") == []
        assert client.ask("MULTI") == b"OK"
        assert client.ask("DEL", "each") == b"QUEUED"
        assert client.ask("QUIT") == b"OK"
        assert client.has_ended()
    with RawClient(port) as client:
        assert client.ask("GETDEL", "each") == b"1"


def test_an_exec_that_is_wrong_ends_the_batch(port: int) -> None:
    wrong = "EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command"
    with RawClient(port) as client:
        assert client.ask("EXEC", "a") == wrong
        assert client.ask("MULTI") == b"OK"
        assert client.ask("PING") == b"QUEUED"
        assert client.ask("EXEC", "a") == wrong
        assert client.ask("EXEC") == "ERR EXEC without MULTI"


def test_nothing_is_watched(port: int) -> None:
    with RawClient(port) as client:
        assert client.ask("UNWATCH") == b"OK"
        assert client.ask("WATCH", "k").startswith("ERR unknown command 'WATCH'")
        assert client.ask("MULTI") == b"OK"
        assert client.ask("UNWATCH") == b"QUEUED"
        assert client.ask("WATCH", "k") == "ERR WATCH inside MULTI is not allowed"
        assert client.ask("PING") == b"QUEUED"
        assert client.ask("EXEC") == [b"OK", b"PONG"]
        assert client.ask("MULTI") == b"OK"
        assert client.ask("WATCH").startswith("ERR ")
        assert client.ask("EXEC") == ABORTED


def test_commands_of_a_batch_are_counted_once(port: int) -> None:
    with RawClient(port) as client:
        for word in ("MULTI", "PING", "PING", "EXEC"):
            client.ask(word)
        assert b" tot-cmds=4 " in client.ask("CLIENT", "INFO")


def test_commands_of_a_batch_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "COMMANDS_MAX", 10)
    with InsideGateway() as inside, RawClient(inside.port) as client:
        client.send(encoded("MULTI") + encoded("PING") * 10 + encoded("EXEC"))
        assert [client.answer() for _ in range(12)] == [b"OK", *[b"QUEUED"] * 10, [b"PONG"] * 10]
        client.send(encoded("MULTI") + encoded("PING") * 10)
        assert [client.answer() for _ in range(11)] == [b"OK", *[b"QUEUED"] * 10]
        assert client.ask("PING") == "ERR 11 commands in a batch; allowed are up to 10"
        wait_until(lambda: inside.used_bytes == 0, "all is given back")
        assert client.ask("PING") == b"QUEUED"
        assert client.ask("EXEC") == ABORTED


class WaitingFetch:
    """A fetch that waits for memory, and counts how often it is looked at."""

    ahead_bytes = 0

    def __init__(self, inside: InsideGateway) -> None:
        self.looks = 0
        inside.run(lambda: inside.gateway.shared.memory.fetch(self, 1 << 60, lambda: None))

    @property
    def is_due(self) -> bool:
        self.looks += 1
        return False


@pytest.mark.parametrize("end", ["EXEC", "DISCARD", "GET", "QUIT", "leave"])
def test_at_the_end_of_a_batch_waiting_fetches_are_not_looked_at_for_each_command(end: str) -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:
        client.send(encoded("MULTI") + encoded("PING") * 2000)
        assert [client.answer() for _ in range(2001)] == [b"OK", *[b"QUEUED"] * 2000]
        fetch = WaitingFetch(inside)
        if end == "leave":
            client.socket.close()
        else:
            client.ask(end)
        wait_until(lambda: inside.used_bytes == 0, "all is given back")
        assert fetch.looks < 200


def test_waiting_fetches_are_not_looked_at_for_each_answer() -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:
        inside.run(inside.sky.held.clear)
        fetch = WaitingFetch(inside)
        client.send(b"".join(encoded("SET", f"k{number}", "v") for number in range(1000)))
        wait_until(lambda: inside.used_bytes > 100_000, "all has come")
        client.socket.close()
        inside.run(inside.sky.held.set)
        wait_until(lambda: inside.used_bytes == 0, "all is given back")
        assert fetch.looks < 200


def test_strangers_begin_none() -> None:
    with InsideGateway(users=Users("secret")) as inside, RawClient(inside.port) as client:
        for word in ("MULTI", "EXEC", "DISCARD"):
            assert client.ask(word) == "NOAUTH Authentication required."


def test_a_batch_without_end_is_given_up() -> None:
    """Its memory is given back at once, and others go on."""
    with InsideGateway(memory_bytes=4 * MIB) as inside, RawClient(inside.port) as client, RawClient(inside.port) as other:
        assert client.ask("MULTI") == b"OK"
        answers = []
        while not answers or answers[-1] == b"QUEUED":
            assert len(answers) < 10_000
            answers.append(client.ask("SET", f"k{len(answers)}", bytes(500)))
            assert inside.used_bytes <= 2 * MIB
        assert len(answers) > 1000
        assert answers[-1].startswith("ERR no memory for ")
        wait_until(lambda: inside.used_bytes == 0, "all is given back")
        for _ in range(5000):
            assert client.ask("PING") == b"QUEUED"
        assert inside.used_bytes < 1000
        assert other.ask("SET", "k", bytes(MIB)) == b"OK"
        assert client.ask("EXEC") == ABORTED
        assert inside.sky.put_bytes == [inside.sky.put_bytes[0]]


def test_small_commands_in_a_batch_count_with_what_they_take() -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:
        sending = threading.Thread(target=client.send, args=(encoded("MULTI") + encoded("PING") * 10_000,))
        sending.start()
        assert client.answer() == b"OK"
        assert [client.answer() for _ in range(10_000)] == [b"QUEUED"] * 10_000
        sending.join()
        assert inside.used_bytes >= 10_000 * 300
        assert client.ask("EXEC") == [b"PONG"] * 10_000
        wait_until(lambda: inside.used_bytes == 0, "all is given back")


@pytest.mark.parametrize("end", ["EXEC", "DISCARD", "QUIT", "leave"])
def test_long_values_in_a_batch_keep_their_memory_until_its_end(end: str) -> None:
    with InsideGateway(memory_bytes=8 * MIB) as inside, RawClient(inside.port) as client:
        assert client.ask("MULTI") == b"OK"
        for number in range(3):
            assert client.ask("SET", f"k{number}", bytes(MIB)) == b"QUEUED"
        assert 3 * MIB < inside.used_bytes < 3 * MIB + 5000
        assert client.ask("SET", "k3", bytes(2 * MIB)).startswith("ERR no memory for 2,097,152 bytes")
        assert inside.used_bytes < 5000
        assert client.ask("EXEC") == ABORTED
        assert client.ask("MULTI") == b"OK"
        assert client.ask("SET", "k", bytes(MIB)) == b"QUEUED"
        assert client.ask("GET", "k") == b"QUEUED"
        if end == "EXEC":
            assert client.ask(end) == [b"OK", bytes(MIB)]
        elif end != "leave":
            assert client.ask(end) == b"OK"
        client.socket.close()
        wait_until(lambda: inside.used_bytes == 0, "all is given back")
        assert len(inside.sky.blocks) == (end == "EXEC")


def test_who_begins_a_batch_and_does_not_end_it_is_cut_off() -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client, RawClient(inside.port) as typing:
        for one, length in ((client, 5000), (typing, 100)):
            assert one.ask("MULTI") == b"OK"
            assert one.ask("SET", "k", bytes(length)) == b"QUEUED"
        later_s = time.monotonic() + 61
        found = inside.run(lambda: [one.stalled(later_s) for one in inside.gateway.connections])
        assert sorted(filter(None, found)) == ["MULTI without EXEC in 60 s"]
        assert client.ask("SET", "l", bytes(9 * MIB)) == b"QUEUED"  # goes on fast enough
        assert inside.run(lambda: [one.stalled(time.monotonic() + 59) for one in inside.gateway.connections]) == [None, None]


def test_names_in_an_answer_take_memory() -> None:
    with InsideGateway(memory_bytes=4 * MIB) as inside, RawClient(inside.port) as client, RawClient(inside.port) as other:
        directory = inside.gateway.shared.values.directory
        inside.run(lambda: [directory.put(0, b"name %d" % number + bytes(1000), 1, 0) for number in range(3000)])
        assert client.ask("KEYS", "*").startswith("ERR no memory for ")
        assert inside.used_bytes == 0
        assert len(client.ask("KEYS", "name 1*")) == 1111
        client.send(encoded("KEYS", "*7*"))
        assert other.ask("PING") == b"PONG"
        assert len(client.answer()) == len([one for one in range(3000) if "7" in str(one)])
        wait_until(lambda: inside.used_bytes == 0, "all is given back")
