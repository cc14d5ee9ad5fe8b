"""Limits of memory and of time, with small numbers."""

import pytest

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
