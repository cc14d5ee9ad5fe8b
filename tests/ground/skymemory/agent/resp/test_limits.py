"""Limits of memory and of time, with small numbers."""

import pytest

from skymemory.agent.resp import requests
from support.agents import wait_until

from .inside import InsideGateway
from .raw import RawClient, encoded

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
