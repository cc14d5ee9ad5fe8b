"""Commands that go through all names, while other clients go on."""

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

import pytest

from skymemory.agent.gateway import name_commands
from support.waiting import wait_until

from .inside import InsideGateway
from .raw import RawClient, encoded

NAMES = 20_000
Meanwhile = Callable[[list[bytes]], None]


class Steps:
    """Steps of commands through the names of a gateway, of which there are many."""

    def __init__(self, inside: InsideGateway, meanwhile: Meanwhile = lambda _: None) -> None:
        """`meanwhile`: called behind each step with the names that it found."""
        self.turns: list[int] = []
        """Turn of the loop, for each step."""
        self.directory = inside.gateway.shared.values.directory
        self._scan, self._meanwhile, self._turn = self.directory.scan, meanwhile, 0
        inside.run(self._begin)

    def _begin(self) -> None:
        for number in range(NAMES):
            self.directory.put(0, b"name %d" % number, 1, 0)
        self.directory.scan = self._scanned  # type: ignore[method-assign]
        self._next()

    def _next(self) -> None:
        self._turn += 1
        asyncio.get_running_loop().call_soon(self._next)

    def _scanned(self, *args: Any, **options: Any) -> tuple[int, list[bytes]]:
        self.turns.append(self._turn)
        cursor, names = self._scan(*args, **options)
        self._meanwhile(names)
        return cursor, names


def leave(client: RawClient) -> None:
    """Reset the connection."""
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.close()


@pytest.mark.parametrize("command", [("KEYS", "none*"), ("FLUSHDB",), ("FLUSHALL",)])
def test_one_client_at_a_time_does_a_step(command: tuple[str, ...]) -> None:
    with InsideGateway() as inside, contextlib.ExitStack() as stack:
        steps = Steps(inside)
        clients = [stack.enter_context(RawClient(inside.port)) for _ in range(8)]
        for client in clients:
            client.send(encoded(*command))
        assert all(client.answer() in ([], b"OK") for client in clients)
        assert len(steps.turns) >= (8 * NAMES // 1000 if command[0] == "KEYS" else NAMES // 512)
        assert len(set(steps.turns)) == len(steps.turns)


@pytest.mark.parametrize("command", [("KEYS", "*"), ("FLUSHDB",)])
def test_who_has_left_takes_no_more_steps(command: tuple[str, ...]) -> None:
    several = 8
    has_begun, has_left = threading.Event(), threading.Event()

    def wait(_: list[bytes]) -> None:
        if len(steps.turns) == several:
            has_begun.set()
            has_left.wait(60)

    with InsideGateway() as inside:
        steps = Steps(inside, wait)
        clients = [RawClient(inside.port) for _ in range(several)]
        for client in clients:
            client.send(encoded(*command))
        assert has_begun.wait(60)
        for client in clients:
            leave(client)
        has_left.set()
        wait_until(lambda: not inside.gateway.connections, "all have left")
        with RawClient(inside.port) as other:
            assert other.ask("PING") == b"PONG"
            taken = len(steps.turns)
            assert taken <= 3 * several
            assert len(other.ask("KEYS", "name 1*")) > 1000
            assert len(steps.turns) <= taken + NAMES // 1000
        wait_until(lambda: inside.used_bytes == 0, "all is given back")


def test_names_that_come_back_are_not_told_twice() -> None:
    def put_again(names: list[bytes]) -> None:
        if len(steps.turns) <= NAMES // 1000:  # else it would not end where this fails
            for name in names:
                steps.directory.remove(0, name)
                steps.directory.put(0, name, 1, 0)

    with InsideGateway() as inside, RawClient(inside.port) as client:
        steps = Steps(inside, put_again)
        assert sorted(client.ask("KEYS", "*")) == sorted(b"name %d" % number for number in range(NAMES))


def test_no_step_makes_much_of_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def encode(value: object, protocol: int) -> bytes:
        made.append(len(encoded := before(value, protocol)))
        return encoded

    before = name_commands.encode
    monkeypatch.setattr(name_commands, "encode", encode)
    with InsideGateway() as inside, RawClient(inside.port) as client:
        Steps(inside)
        assert sorted(client.ask("KEYS", "*")) == sorted(b"name %d" % number for number in range(NAMES))
        assert sum(made) > NAMES
        assert max(made) < 1000


def test_a_step_looks_at_few_bytes_of_names() -> None:
    looked: list[int] = []
    with InsideGateway() as inside, RawClient(inside.port) as client:
        steps = Steps(inside, lambda names: looked.append(sum(map(len, names))))
        inside.run(lambda: [steps.directory.put(0, b"%0200d" % number, 1, 0) for number in range(2000)])
        assert client.ask("KEYS", "*x") == []
        assert client.ask("SCAN", "0", "MATCH", "*x", "COUNT", "100000")[1] == []
        assert max(looked) <= name_commands.LOOKED_BYTES_MAX
        assert sum(looked) > 2000 * 200
