"""Limits of memory and of time, with small numbers."""

import asyncio
import contextlib
import os
import socket
import struct
import threading
import time
from itertools import pairwise

import pytest

from skymemory.agent.gateway import answers, batch, connection, requests, values
from skymemory.agent.gateway.lmcache import Lengths
from skymemory.agent.gateway.users import Users
from support.waiting import wait_until

from .inside import InsideGateway
from .raw import TIMEOUT_S, RawClient, encoded

MIB = 1 << 20


@pytest.mark.parametrize("wrong", [("FOO",), ("GET", "k"), ("SET",), ("QUIT",)])
def test_a_command_that_fails_gives_its_memory_back(wrong: tuple[str, ...]) -> None:
    with InsideGateway(memory_bytes=4 * MIB) as inside:
        for _ in range(15):
            with RawClient(inside.port) as client:
                client.send(encoded(*wrong, bytes(200_000)) + encoded("QUIT"))
                assert client.has_ended()
        wait_until(lambda: inside.used_bytes == 0, "all is given back")
        with RawClient(inside.port) as client:
            assert client.ask("SET", "k", bytes(MIB)) == b"OK"


def test_who_asks_for_memory_that_is_not_there_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(requests.np, "empty", refuse)
    with InsideGateway() as inside, RawClient(inside.port) as client, RawClient(inside.port) as other:
        client.socket.settimeout(5)
        client.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$200000\r\n")
        assert client.has_ended()
        assert other.ask("SET", "k", "v") == b"OK"
        assert inside.used_bytes == 0


@pytest.mark.parametrize("length", [500, 90_000])
def test_small_values_that_wait_take_memory(length: int) -> None:
    """Who has many under way is not read from while memory is full; who has few goes on, but with long arguments is refused."""
    clients, values_each = 12, min(1024, 2_000_000 // length)

    def sent(client: RawClient, number: int) -> threading.Thread:
        commands = [encoded("SET", f"k{number}-{at}", bytes(length)) for at in range(values_each)]
        thread = threading.Thread(target=client.send, args=(b"".join(commands),))
        thread.start()
        return thread

    def is_all_waiting() -> bool:
        before = inside.gateway.shared.meter.received_bytes
        inside.run(lambda: None)
        return inside.gateway.shared.memory.is_full and inside.gateway.shared.meter.received_bytes == before

    with InsideGateway(memory_bytes=4 * MIB) as inside, contextlib.ExitStack() as stack:
        several = [stack.enter_context(RawClient(inside.port)) for _ in range(clients)]
        inside.run(inside.sky.held.clear)
        sending = [sent(client, number) for number, client in enumerate(several)]
        wait_until(is_all_waiting, "memory is full, and nobody is read from")
        most = 2 * MIB + 2 * requests.READ_BYTES + clients * (connection.AHEAD_BYTES + 2 * connection.FULL_READ_BYTES)
        assert 2 * MIB - requests.LARGE_BYTES < inside.used_bytes <= most < clients * values_each * length
        with RawClient(inside.port) as other:
            assert other.ask("GET", "nothing") is None
            assert other.ask("SET", "k", bytes(100_000)).startswith("ERR no memory for 100,000 bytes")
        inside.run(inside.sky.held.set)
        answers = [client.answer() for client in several for _ in range(values_each)]
        for thread in sending:
            thread.join()
        assert answers.count(b"OK") >= (len(answers) if length < 1000 else 20)
        assert all(one == b"OK" or one.startswith("ERR no memory for ") for one in answers)
        wait_until(lambda: inside.used_bytes == 0, "all is given back")


def test_commands_of_who_has_left_are_forgotten() -> None:
    with InsideGateway() as inside:
        inside.run(inside.sky.held.clear)
        with RawClient(inside.port) as client:
            client.send(b"".join(encoded("SET", f"k{number}", bytes(500)) for number in range(1000)))
            wait_until(lambda: inside.used_bytes > 1000 * 500, "all has come")
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # it does not wait for answers
        wait_until(lambda: not inside.gateway.connections, "it has left")
        assert inside.used_bytes > 1000 * 500  # that is still being stored
        inside.run(inside.sky.held.set)
        wait_until(lambda: inside.used_bytes == 0, "all is given back")


def test_answers_that_are_not_taken_keep_their_commands() -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:
        sending = threading.Thread(target=client.send, args=(encoded("ECHO", bytes(50_000)) * 600,))
        sending.start()
        wait_until(lambda: inside.used_bytes > 100_000, "the socket takes no more")
        assert [client.answer() for _ in range(600)] == [bytes(50_000)] * 600
        sending.join()
        wait_until(lambda: inside.used_bytes == 0, "all is given back")


def test_long_answers_to_short_questions_are_not_piled_up() -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client, RawClient(inside.port) as other:
        inside.run(inside.sky.held.clear)
        client.send(encoded("SET", "k", "v") + encoded("COMMAND", "DOCS") * 1000)
        (one,) = inside.run(lambda: [one for one in inside.gateway.connections if one.session.commands])
        wait_until(lambda: inside.run(lambda: one.answers.unsent_bytes) >= answers.UNSENT_BYTES_MAX, "its answers wait")
        assert other.ask("PING") == b"PONG"
        assert inside.run(lambda: one.answers.unsent_bytes) < answers.UNSENT_BYTES_MAX + 20_000
        inside.run(inside.sky.held.set)
        assert client.answer() == b"OK"
        assert all(client.answer() for _ in range(1000))
        assert inside.run(lambda: one.answers.unsent_bytes) == 0


def test_a_long_pipeline_leaves_others_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "TURN_S", 0.0)
    with InsideGateway() as inside, RawClient(inside.port) as client:
        assert client.ask("PING") == b"PONG"
        (one,) = inside.gateway.connections
        done: list[int] = []

        def look() -> None:
            """Note at each turn of the loop how many commands are done."""
            done.append(one.session.commands)
            if inside.gateway.connections:
                asyncio.get_running_loop().call_soon(look)

        inside.run(look)
        client.send(encoded("PING") * 300 + encoded("QUIT"))
        assert list(client.rest()) == [b"PONG"] * 300 + [b"OK"]
        assert max(after - before for before, after in pairwise(done)) == 1


WORD = bytes(65_537)
LONG = "ERR argument of 65,537 bytes; allowed are 0 to 65,536 where it is no value"


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("GET", WORD), LONG),
        (("SET", WORD, "v"), LONG),
        (("SET", "k", "v", WORD), LONG),
        (("MSET", "k", WORD, WORD, "v"), LONG),
        (("CLIENT", "SETNAME", b"a" * 65_537), LONG),
        (("SCAN", "0", "MATCH", bytes(1025)), "ERR pattern of 1,025 bytes; allowed are 0 to 1,024"),
        (("CONFIG", "GET", bytes(1025)), "ERR pattern of 1,025 bytes; allowed are 0 to 1,024"),
        (("CONFIG", "GET", *["*"] * 1023), "ERR 1,025 arguments; allowed are up to 1,024"),
        (("CONFIG", "GET", *["[^]" * 341] * 5), "ERR patterns of 5,115 bytes; allowed are up to 4,096"),
        (("COMMAND", "INFO", *["get"] * 1023), "ERR 1,025 arguments; allowed are up to 1,024"),
    ],
)
def test_what_is_no_value_is_short(args: tuple[str | bytes, ...], why: str) -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client:
        assert client.ask(*args) == why
        assert client.ask("MSET", "k", WORD, "l", WORD) == b"OK"
        assert client.ask("GET", "l") == WORD


def header(name: str, length: int) -> bytes:
    return b"*3\r\n$3\r\nSET\r\n$%d\r\n%b\r\n$%d\r\n" % (len(name), name.encode(), length)


def test_what_has_not_come_takes_nothing_from_others() -> None:
    with InsideGateway(memory_bytes=8 * MIB) as inside, RawClient(inside.port) as client, RawClient(inside.port) as other:
        client.send(header("a", 3 * MIB))
        other.send(header("b", 3 * MIB))
        wait_until(
            lambda: inside.gateway.shared.meter.received_bytes == 2 * len(header("a", 3 * MIB)), "both have said what comes"
        )
        client.send(bytes(2 * MIB))
        wait_until(lambda: inside.used_bytes == 2 * MIB, "it came")
        with RawClient(inside.port) as third:
            assert third.ask("SET", "c", bytes(MIB)) == b"OK"
        other.send(bytes(3 * MIB) + b"\r\n" + encoded("PING"))
        assert other.answer().startswith("ERR no memory for ")  # it came after another's
        assert other.answer() == b"PONG"
        client.send(bytes(MIB) + b"\r\n")
        assert client.answer() == b"OK"
        wait_until(lambda: inside.used_bytes == 0, "all is given back")


def test_who_sends_or_reads_too_slowly_is_stalled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LEAST_BYTES", 300_000)
    with InsideGateway() as inside, RawClient(inside.port) as client:

        def is_stalled() -> bool:
            (one,) = inside.gateway.connections
            return inside.run(lambda: one.stalled(begun_s + connection.STALL_S)) is not None

        def sent(data: bytes) -> None:
            before = inside.gateway.shared.meter.received_bytes
            client.send(data)
            wait_until(lambda: inside.gateway.shared.meter.received_bytes == before + len(data), "it came")

        assert client.ask("PING") == b"PONG"
        sent(header("k", 2_000_000))
        begun_s = inside.run(time.monotonic)
        sent(bytes(100_000))
        assert is_stalled()
        sent(bytes(250_000))
        assert not is_stalled()
        begun_s = inside.run(time.monotonic)
        sent(bytes(100_000))
        assert is_stalled()
        sent(bytes(1_550_000) + b"\r\n")
        assert client.answer() == b"OK"
        assert not is_stalled()

    with InsideGateway() as inside, RawClient(inside.port) as client:
        client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        assert client.ask("SET", "k", bytes(20_000_000)) == b"OK"
        client.send(encoded("GET", "k"))
        wait_until(lambda: inside.gateway.shared.meter.sent_bytes > 1000, "the answer goes out")
        begun_s = inside.run(time.monotonic)
        client.socket.recv(10_000)
        assert is_stalled()


def test_large_values_do_not_share_a_call_with_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "_ALONE_BYTES", 25_000)
    with InsideGateway() as inside, RawClient(inside.port) as client:
        inside.run(inside.sky.held.clear)
        lengths = [10, 10, 90_000, 20_000, 300_000, 24_000, 24_000, 24_000, 24_000, 10, 10]
        client.send(b"".join(encoded("SET", f"k{at}", bytes(length)) for at, length in enumerate(lengths)) + encoded("PING"))
        wait_until(lambda: inside.used_bytes > 410_000, "all wait")
        inside.run(inside.sky.held.set)
        assert [client.answer() for _ in range(12)] == [b"OK"] * 11 + [b"PONG"]
        assert sum(inside.sky.put_bytes) == sum(lengths) + 11 * 56
        assert {90_056, 300_056} <= set(inside.sky.put_bytes)
        client.send(encoded("MGET", *(f"k{at}" for at in range(11))))
        assert [len(one) for one in client.answer()] == lengths
        assert sorted(one for one in inside.sky.got if max(one) >= 25_000) == [[90_056], [300_056]]


def test_who_takes_nothing_does_not_keep_a_name_from_others() -> None:
    value = os.urandom(5 * MIB)
    with InsideGateway() as inside, RawClient(inside.port) as slow, RawClient(inside.port) as other:
        assert other.ask("SET", "k", value) == b"OK"
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.send(encoded("GET", "k") * 2000)  # more than are done at a time: one of them waits for memory
        for _ in range(5):
            assert other.ask("GET", "k") == value


def test_who_asks_for_little_does_not_wait_for_a_large_value() -> None:
    with InsideGateway() as inside, RawClient(inside.port) as client, RawClient(inside.port) as other:
        assert client.ask("MSET", "small", "v", "large", bytes(2 * MIB)) == b"OK"
        inside.run(inside.sky.held_large.clear)
        client.send(encoded("GET", "large"))
        wait_until(lambda: inside.sky.got, "it is being fetched")
        assert other.ask("GET", "small") == b"v"
        inside.run(inside.sky.held_large.set)
        assert client.answer() == bytes(2 * MIB)


def test_who_does_not_say_the_password_loses_the_place() -> None:
    with InsideGateway(users=Users("secret")) as inside, RawClient(inside.port) as client, RawClient(inside.port) as stranger:
        assert client.ask("AUTH", "secret") == b"OK"
        assert stranger.ask("PING") == "NOAUTH Authentication required."

        def later(after_s: float) -> list[str]:
            return inside.run(
                lambda: [
                    why for one in inside.gateway.connections if (why := one.stalled(time.monotonic() + after_s)) is not None
                ]
            )

        assert later(0) == []
        assert later(connection.STRANGER_S) == ["no password in 10 s"]
        inside.run(lambda: [one.cut_off("no password in 10 s") for one in list(inside.gateway.connections) if one.stalled(1e12)])
        assert stranger.answer() == "ERR Protocol error: no password in 10 s"
        assert stranger.has_ended()
        assert client.ask("PING") == b"PONG"


def test_what_others_put_does_not_change_a_miss_that_is_read_by_its_length() -> None:
    digest = "0123456789abcdef" * 4
    with InsideGateway() as inside, RawClient(inside.lmcache_port) as client, RawClient(inside.lmcache_port) as other:

        def missed(one: RawClient, part: str) -> bytes:
            one.send(encoded("GET", f"{part}@{digest[::-1]}"))
            data = b""
            while not data.endswith(b"\r\n"):
                data += one.socket.recv(100)
            return data

        assert client.ask("SET", f"org/model@00000001@0@{digest}", bytes(90_000)) == b"OK"
        assert other.ask("SET", "x@00000000@0@0", "v") == b"OK"
        assert other.ask("SET", f"org/model@00000001@0@{digest[1:]}", bytes(1_000)) == b"OK"
        assert len(missed(client, "org/model@00000001@0")) == len("$90000\r\n")
        assert len(missed(other, "org/model@00000001@0")) == len("$1000\r\n")
        with RawClient(inside.lmcache_port) as third:  # has put nothing itself
            assert len(missed(third, "org/model@00000001@0")) == len("$1000\r\n")
            assert missed(third, "org/other@00000001@0") == b"$-1\r\n"


def test_a_client_that_counts_bytes_is_refused_in_as_many_as_it_reads() -> None:
    name = "org/model@00000001@0@" + "0123456789abcdef" * 4
    with InsideGateway(memory_bytes=250_000) as inside, RawClient(inside.lmcache_port) as client, RawClient(inside.port) as other:
        other.send(header("k", 120_000) + bytes(100_000))
        wait_until(lambda: inside.used_bytes >= 100_000, "there is little memory left")
        client.send(encoded("SET", name, bytes(200_000)) + encoded("EXISTS", name))
        data = b""
        while len(data) < 9:
            data += client.socket.recv(100)
        assert data == b"-ER\r\n:0\r\n"


def test_lengths_are_bounded() -> None:
    lengths = Lengths()
    for number in range(1000):
        lengths.put(b"%d" % number, number)
    assert [lengths.get(b"%d" % number) for number in (0, 743, 744, 999)] == [None, None, 744, 999]


def test_answers_that_nobody_takes_count_as_memory() -> None:
    """Each answer is short, and together they are many times what the gateway may have."""
    word, count, limit_bytes = b"w" * 60_000, 4_000, 16 * MIB
    with InsideGateway(memory_bytes=limit_bytes) as inside, RawClient(inside.port) as client:
        assert client.ask("SET", "a", word) == b"OK"
        client.send(encoded("GET", "a") * count)
        most_bytes, gateway = 0, inside.gateway
        end_s = time.monotonic() + 3.0
        while time.monotonic() < end_s:
            most_bytes = max(most_bytes, inside.run(lambda: sum(one.answers.unsent_bytes for one in gateway.connections)))
        assert 0 < most_bytes <= limit_bytes
        assert all(client.answer() == word for _ in range(count))


def test_a_client_may_send_all_its_commands_before_it_reads_an_answer() -> None:
    count, word = 20_000, b"w" * 1000  # more than the buffers of sockets hold
    with InsideGateway() as inside, RawClient(inside.port) as client:
        client.send(encoded("ECHO", word) * count)
        wait_until(lambda: inside.used_bytes >= 4 * MIB, "answers wait")
        assert all(client.answer() == word for _ in range(count))
        wait_until(lambda: inside.used_bytes == 0, "all is given back")
        assert client.ask("PING") == b"PONG"


def test_answers_that_a_client_does_not_take_are_bounded() -> None:
    count, word = 40_000, b"w" * 1000  # more than the buffers of sockets hold, and four times the limit
    commands = memoryview(encoded("ECHO", word) * count)
    with InsideGateway(joined_bytes_max=8 * MIB) as inside, RawClient(inside.port) as client:
        tally = inside.gateway.shared.values.tally
        sent = still = most_bytes = came = 0
        client.socket.setblocking(False)
        while still < 10 and sent < len(commands):  # nothing goes any more, and nothing is read
            try:
                sent += client.socket.send(commands[sent:])
            except BlockingIOError:
                time.sleep(0.05)
            before, came = came, inside.run(lambda: tally.received_bytes)
            still = still + 1 if came == before else 0
            most_bytes = max(most_bytes, inside.used_bytes)
        assert 4 * MIB < most_bytes <= 10 * MIB
        assert sent < len(commands)
        client.socket.settimeout(TIMEOUT_S)
        sender = threading.Thread(target=client.send, args=(commands[sent:],))
        sender.start()
        assert all(client.answer() == word for _ in range(count))
        sender.join()
        wait_until(lambda: inside.used_bytes == 0, "all is given back")


@pytest.mark.parametrize(("sent", "is_progress"), [(b"\r\n", False), (encoded("PING"), True)])
def test_empty_lines_are_no_progress_of_a_client_that_takes_no_answers(sent: bytes, is_progress: bool) -> None:
    word, count = b"w" * 10_000, 2_000
    with InsideGateway() as inside, RawClient(inside.port) as client:
        tally = inside.gateway.shared.values.tally
        client.send(commands := encoded("ECHO", word) * count)
        wait_until(lambda: inside.run(lambda: tally.received_bytes) == len(commands), "all has come, and answers wait")
        began_s = time.monotonic()
        client.send(sent * (2 * MIB // len(sent)))
        wait_until(lambda: inside.run(lambda: tally.received_bytes) > len(commands) + MIB + MIB // 2, "most of it has come")
        (why,) = inside.run(lambda: [one.stalled(began_s + batch.STALL_S) for one in inside.gateway.connections])
        assert (why is None) == is_progress
        assert all(client.answer() == word for _ in range(count))
