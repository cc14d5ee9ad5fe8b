"""Nonsense, oversize, halves, clients that stall: a clear error for them, nothing for others, and nothing is left behind."""

import os
import random
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess
from support.waiting import wait_until

from .conftest import port_of
from .raw import RawClient, encoded
from .test_silence import NO_ANSWER

StartAgent = Callable[..., AgentProcess]
EVENTS = 1000
OPENED_LATER = 8
"""Descriptors that the agent opens once, such as its survey two seconds after its start. Each bad event comes 125 times."""


def descriptors(agent: AgentProcess) -> int:
    return len(os.listdir(f"/proc/{agent.pid}/fd"))


def used_bytes(agent: AgentProcess) -> int:
    """Memory of the gateway for commands and values of all clients."""
    return int(agent.metric("skymem_resp_memory_bytes"))


def resident_bytes(agent: AgentProcess) -> int:
    return int(Path(f"/proc/{agent.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (b"*9999999\r\n", "ERR Protocol error: invalid multibulk length; allowed are up to 32768 arguments"),
        (
            b"*2\r\n$3\r\nGET\r\n$600000000\r\n",
            "ERR Protocol error: invalid bulk length; allowed are 0 to 536870912 bytes",
        ),
        (b"*1\r\n:5\r\n", "ERR Protocol error: expected '$', got ':'"),
        (b"a" * 100_000, "ERR Protocol error: too big inline request"),
        (b'get "k\r\n', "ERR Protocol error: unbalanced quotes in request"),
    ],
)
def test_what_is_no_command_is_told_and_ends_the_connection(port: int, data: bytes, answer: str) -> None:
    with RawClient(port) as client:
        client.send(encoded("SET", "before", "x") + encoded("GET", "before") + data)
        assert [client.answer() for _ in range(3)] == [b"OK", b"x", answer]
        assert client.has_ended()


@pytest.mark.parametrize(
    "head", ["POST / HTTP/1.1\r\nHost: 127.0.0.1:6390", "GET / HTTP/1.1\r\nhost: a", "PUT / HTTP/1.1\r\nHOST: a"]
)
def test_a_page_in_a_browser_cannot_send_commands(port: int, head: str) -> None:
    with RawClient(port) as client, RawClient(port) as browser:
        assert client.ask("SET", "mine", "good") == b"OK"
        browser.send(f"{head}\r\nContent-Length: 29\r\n\r\n\r\nSET mine evil\r\nFLUSHALL\r\n".encode())
        assert browser.has_ended()
        assert client.ask("GET", "mine") == b"good"


def test_a_value_that_is_too_large_is_told_and_the_connection_goes_on(
    start_sky: Callable[..., LocalConstellation], start_agent: StartAgent
) -> None:
    local = start_sky(satellite={"store_mib": 1})
    agent = start_agent(local, "--resp-port", "0")
    before = resident_bytes(agent)
    with RawClient(port_of(agent)) as client:
        for length in (20_000_000, 200_000_000):
            client.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n" % length)
            for _ in range(length // 1_000_000):
                client.send(bytes(1_000_000))
            client.send(b"\r\n" + encoded("PING"))
            answer = client.answer()
            assert answer.startswith(f"ERR value of {length:,} bytes; allowed are 0 to ")
            assert answer.endswith("(9 servers of 1 MiB)")
            assert client.answer() == b"PONG"
        most = int(answer.partition(" 0 to ")[2].partition(" ")[0].replace(",", ""))
        assert client.ask("SET", "most", os.urandom(most)) == b"OK"
        assert len(client.ask("GET", "most")) == most
        assert client.ask("SET", "most", bytes(most + 1)).startswith("ERR value of")
    assert resident_bytes(agent) - before < 100_000_000


def test_a_claim_takes_no_memory(agent: AgentProcess, port: int) -> None:
    before = resident_bytes(agent)
    clients = [RawClient(port) for _ in range(20)]
    for number, client in enumerate(clients):
        client.send(b"*3\r\n$3\r\nSET\r\n$2\r\nc%d\r\n$100000000\r\nabc" % (number % 10))
    with RawClient(port) as other:
        wait_until(lambda: used_bytes(agent) == 60, "all that came is accounted for")
        assert resident_bytes(agent) - before < 20_000_000

        def stored() -> bool:
            answer = other.ask("SET", "k", bytes(100_000_000))
            assert answer in (b"OK", NO_ANSWER)  # satellites of a busy machine may take too long; there is memory
            return bool(answer == b"OK")

        wait_until(stored, "it is stored")
        for client in clients:
            client.socket.close()
        wait_until(lambda: used_bytes(agent) == 0, "all is given back")


def test_a_client_that_reads_nothing_holds_up_nobody(agent: AgentProcess, port: int) -> None:
    value = os.urandom(5_000_000)
    with RawClient(port) as slow, RawClient(port) as other:
        assert other.ask("SET", "slow", value) == b"OK"
        before = resident_bytes(agent)
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.send(encoded("GET", "slow") * 2000)  # 10 GB
        for _ in range(20):
            assert other.ask("GET", "slow") == value
        assert resident_bytes(agent) - before < 400_000_000
    with RawClient(port) as other:
        wait_until(lambda: used_bytes(agent) == 0, "all is given back")


def test_who_says_good_bye_first_still_gets_all_answers(port: int) -> None:
    with RawClient(port) as client:
        client.send(
            b"".join(encoded("SET", f"bye{number}", b"x" * 10_000) + encoded("GET", f"bye{number}") for number in range(100))
        )
        client.socket.shutdown(socket.SHUT_WR)
        for _ in range(100):
            assert client.answer() == b"OK"
            assert client.answer() == b"x" * 10_000
        assert client.has_ended()


def test_of_too_many_clients_the_longest_idle_makes_room(port: int) -> None:
    clients = []
    try:
        for _ in range(1000):
            clients.append(RawClient(port))
        assert clients[0].ask("PING") == b"PONG"  # so another one is idle for longer
        with RawClient(port) as late:
            assert late.ask("PING") == b"PONG"
            assert clients[1].has_ended()
        assert clients[0].ask("PING") == b"PONG"
        assert clients[-2].ask("PING") == b"PONG"
    finally:
        for client in clients:
            client.socket.close()
    wait_until(lambda: _serves(port), "there is room again")


def _serves(port: int) -> bool:
    with RawClient(port) as client:
        try:
            return bool(client.ask("PING") == b"PONG")
        except ConnectionError:
            return False


def test_nothing_is_left_of_a_thousand_bad_events(agent: AgentProcess, port: int) -> None:
    draw = random.Random(1)

    def misbehave(client: RawClient, number: int) -> None:
        kind = number % 8
        whole = encoded("SET", f"bad{number % 50}", draw.randbytes(draw.choice([10, 7000, 150_000])))
        if kind == 0:
            client.send(draw.randbytes(draw.randrange(1, 2000)))
        elif kind == 1:
            client.send(whole[: draw.randrange(1, len(whole))])
        elif kind == 2:
            changed = bytearray(whole)
            for _ in range(3):
                changed[draw.randrange(min(len(changed), 60))] = draw.randrange(256)
            client.send(bytes(changed))
        elif kind == 3:
            client.send(encoded("GET", f"bad{number % 50}") * 50)  # and does not wait for the answers
        elif kind == 4:
            client.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$50000000\r\n" + bytes(1000))
        elif kind == 5:
            client.send(encoded(draw.randbytes(5), draw.randbytes(100)) + encoded("SET", "k") + encoded("EXPIRE", "k", "x"))
        elif kind == 6:
            client.send(whole + encoded("QUIT") + b"more")
        else:
            client.send(b"*30000\r\n" + b"$1\r\nx\r\n" * 1000)

    def event(number: int) -> None:
        client = RawClient(port)
        with suppress(ConnectionError):  # the agent may have enough before all of it is sent
            misbehave(client, number)
        if draw.random() < 0.5:  # a reset, not a good-bye
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.socket.close()

    with RawClient(port) as witness:
        assert witness.ask("SET", "witness", "unharmed") == b"OK"
        for number in range(100):
            event(number)

        def at_rest() -> bool:
            return "connected_clients:1\r" in witness.ask("INFO").decode() and used_bytes(agent) == 0

        wait_until(at_rest, "those before are gone")
        open_before, resident_before = descriptors(agent), resident_bytes(agent)
        for number in range(EVENTS):
            event(number)
            if number % 50 == 0:
                assert witness.ask("GET", "witness") == b"unharmed"
        wait_until(at_rest, "all are gone")
        # The agent may still accept a connection that waits in the kernel.
        wait_until(lambda: descriptors(agent) <= open_before + OPENED_LATER, "no descriptor is left")
        assert resident_bytes(agent) - resident_before < 200_000_000
        assert witness.ask("GET", "witness") == b"unharmed"
