"""What one client asks is begun a little at a time, so that others have their turn: pipelines, and commands on many names."""

import asyncio
import socket
import struct
from itertools import pairwise

import pytest

from support.waiting import wait_until

from .inside import InsideGateway, StubStore
from .raw import RawClient, encoded

NAMES = 6_000
A_TURN = 1_000
"""Names that are begun in a turn of 1 ms at most: a name takes some microseconds."""


class CountingStore(StubStore):
    """Counts how often it was asked whether it is silent: once for each name that a command is begun on."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = 0

    @property
    def silent(self) -> bool:
        self.begun += 1
        return False

    @silent.setter
    def silent(self, is_silent: bool) -> None:
        pass


class Watched(InsideGateway):
    """A gateway whose turns are looked at: bytes that came, names that were begun, and reads that were done, until each."""

    def __enter__(self) -> "Watched":
        super().__enter__()
        self.store = self.sky.store = CountingStore()
        self.turns: list[tuple[int, int, int]] = []
        tally = self.gateway.shared.values.tally

        def note() -> None:
            self.turns.append((tally.received_bytes, self.store.begun, tally.hits + tally.misses))
            asyncio.get_running_loop().call_soon(note)

        self.run(note)
        return self

    def most(self) -> tuple[int, int, int]:
        """Most bytes that were read in a turn, names that were begun, and reads that were done."""
        steps = [[one - was for one, was in zip(after, before, strict=True)] for before, after in pairwise(self.turns)]
        received, begun, read = (max(counts) for counts in zip(*steps, strict=True))
        return received, begun, read


def names(count: int = NAMES) -> list[str]:
    return [f"name {number}" for number in range(count)]


def test_a_long_pipeline_of_short_commands_is_taken_in_small_turns() -> None:
    with Watched() as inside, RawClient(inside.port) as hog:
        hog.send(encoded("PING") * 20_000)
        assert all(hog.answer() == b"PONG" for _ in range(20_000))
        assert sum(after[0] - before[0] for before, after in pairwise(inside.turns)) == 20_000 * len(encoded("PING"))
        assert inside.most()[0] <= 1 << 14


@pytest.mark.parametrize("command", ["MGET", "EXISTS", "DEL", "MSET"])
def test_a_command_on_many_names_is_begun_in_small_turns(command: str) -> None:
    words = [word for name in names(NAMES // 2) for word in (name, "v")] if command == "MSET" else names()
    with Watched() as inside, RawClient(inside.port) as hog:
        answer = hog.ask(command, *words)
        assert answer == {"MGET": [None] * NAMES, "EXISTS": 0, "DEL": 0, "MSET": b"OK"}[command]
        assert inside.store.begun >= NAMES // 2
        most_bytes, most_names, _ = inside.most()
        assert most_names <= A_TURN
        assert most_bytes <= 1 << 15
        if command == "MSET":
            assert hog.ask("MGET", *words[::2]) == [b"v"] * (NAMES // 2)


def test_reads_of_one_name_are_done_in_small_turns() -> None:
    with Watched() as inside, RawClient(inside.port) as hog:
        assert hog.ask("SET", "k", "v") == b"OK"
        assert hog.ask("EXISTS", *["k"] * NAMES) == NAMES
        assert inside.most()[2] <= A_TURN


def test_empty_lines_are_taken_in_small_turns() -> None:
    with Watched() as inside, RawClient(inside.port) as hog:
        hog.send(b" \r\n" * 100_000 + encoded("PING"))
        assert hog.answer() == b"PONG"
        assert inside.most()[0] <= 1 << 15


def test_commands_behind_one_on_many_names_see_all_of_it() -> None:
    some = names()[: NAMES // 2]
    with InsideGateway() as inside, RawClient(inside.port) as client:
        client.send(encoded("MSET", *[word for name in some for word in (name, "v")]) + encoded("EXISTS", *some))
        client.send(encoded("MULTI") + encoded("DEL", *some) + encoded("SET", some[-1], "w") + encoded("EXEC"))
        client.send(encoded("EXISTS", *some) + encoded("QUIT"))
        assert [client.answer() for _ in range(7)] == [b"OK", len(some), b"OK", b"QUEUED", b"QUEUED", [len(some), b"OK"], 1]
        assert list(client.rest()) == [b"OK"]
        assert inside.used_bytes == 0


def test_a_command_goes_on_when_its_client_has_left() -> None:
    some = names()[: NAMES // 2]
    with Watched() as inside:
        with RawClient(inside.port) as client:
            client.send(encoded("MSET", *[word for name in some for word in (name, "v" * 10)]) + encoded("GET", some[0]))
            wait_until(lambda: inside.store.begun > 0, "it is begun")
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
        with RawClient(inside.port) as other:
            wait_until(lambda: other.ask("GET", some[-1]) == b"v" * 10, "all of it is done")
        wait_until(lambda: inside.used_bytes == 0, "all memory is given back")


def test_answers_of_one_command_wait_for_a_client_that_takes_none() -> None:
    value = b"v" * 10_000
    with InsideGateway() as inside, RawClient(inside.port) as client:
        assert client.ask("SET", "k", value) == b"OK"
        client.send(encoded("MGET", *["k"] * 20_000))
        wait_until(lambda: inside.used_bytes > 1 << 20, "answers wait")
        assert client.answer() == [value] * 20_000
        wait_until(lambda: inside.used_bytes == 0, "all memory is given back")
        assert client.ask("PING") == b"PONG"
