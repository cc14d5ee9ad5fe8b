"""Clients are let in as long as there are descriptors, and wait for one otherwise."""

import asyncio
import errno
import logging
import os
import resource
import socket
from contextlib import ExitStack, closing
from typing import Any

import pytest

from skymemory.common.listening import Acceptor, bind, into_protocols
from support.waiting import PATIENCE_S, wait_until_async


def test_at_the_limit_of_descriptors_clients_wait_and_one_line_tells_it(caplog: pytest.LogCaptureFixture) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[socket.socket] = []

    def take(client: socket.socket, _: Any) -> None:
        taken.append(client)

    async def run() -> None:
        with ExitStack() as stack:
            (listener,) = bind("127.0.0.1", 0)
            stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, before)
            acceptor = stack.enter_context(closing(Acceptor([listener], take, "clients of a test")))
            acceptor.start()
            for _ in range(8):
                stack.enter_context(socket.create_connection(acceptor.address[:2], PATIENCE_S))
            spare = os.open("/dev/null", os.O_RDONLY)
            resource.setrlimit(resource.RLIMIT_NOFILE, (spare + 1, before[1]))
            os.close(spare)
            # Time for dozens of tries without a pause
            await wait_until_async(lambda: len(caplog.records) > 0)
            await asyncio.sleep(0.2)
            told = [record.getMessage() for record in caplog.records]
            assert told == [f"clients of a test cannot be let in now, and wait: {os.strerror(errno.EMFILE)}"]
            assert len(taken) < 8
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
            await wait_until_async(lambda: len(taken) == 8)
            for one in taken:
                one.close()
        assert len(caplog.records) == 1

    with caplog.at_level(logging.DEBUG, "skymemory"):
        asyncio.run(run())


def test_a_protocol_is_made_for_each_client() -> None:
    class Greeter(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            assert isinstance(transport, asyncio.Transport)
            transport.write(b"welcome")
            transport.close()

    async def run() -> None:
        with closing(Acceptor(bind("127.0.0.1", 0), into_protocols(Greeter), "clients of a test")) as acceptor:
            acceptor.start()
            for _ in range(3):
                reader, writer = await asyncio.open_connection(*acceptor.address[:2])
                assert await reader.read() == b"welcome"
                writer.close()

    asyncio.run(run())


def test_a_name_is_served_at_all_its_addresses_and_a_port_that_is_taken_is_named() -> None:
    with ExitStack() as stack:
        sockets = [stack.enter_context(one) for one in bind("localhost", 0)]
        assert len({one.getsockname()[1] for one in sockets}) == 1
        for one in sockets:
            one.listen()
            stack.enter_context(socket.create_connection(one.getsockname()[:2], PATIENCE_S))
        port = sockets[0].getsockname()[1]
        with pytest.raises(OSError, match=f"'localhost:{port}'"):
            bind("localhost", port)
    with pytest.raises(OSError, match=r"'192\.0\.2\.1:0'"):
        bind("192.0.2.1", 0)
    with pytest.raises(OSError, match=r"'no\.such\.invalid:1'"):
        bind("no.such.invalid", 1)
