"""`Gateway`: the port of Redis clients.

    client - Connection - command (table) - Values: a line of operations for each name - Sky

What a connection asks for is done side by side, and answered in order.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Coroutine
from typing import Any, Final

from prometheus_client import CollectorRegistry

from skymemory.agent.resp import server_commands, value_commands
from skymemory.agent.resp.connection import Connection
from skymemory.agent.resp.directory import Directory
from skymemory.agent.resp.memory import MEMORY_BYTES, Memory
from skymemory.agent.resp.meter import Meter
from skymemory.agent.resp.requests import READ_BYTES
from skymemory.agent.resp.session import Lengths, Session
from skymemory.agent.resp.values import Values
from skymemory.agent.shared_sky import SharedSky

_log = logging.getLogger(__name__)

CLIENTS_MAX: Final = 1000
_ACCEPTED_AT_ONCE: Final = 64
_SWEEP_S: Final = 5.0
_GRACE_S: Final = 5.0
"""what was asked for has so long to be answered when the gateway closes"""
_BREATH_S: Final = 0.01

__all__ = ["CLIENTS_MAX", "Gateway", "server_commands", "value_commands"]  # the latter enter their commands in the table


class Gateway:
    """Used from one event loop. Its port is open between `start` and `close`."""

    def __init__(
        self,
        sky: SharedSky,
        host: str,
        port: int,
        registry: CollectorRegistry,
        *,
        password: str | None = None,
        memory_bytes: int = MEMORY_BYTES,
        clients_max: int = CLIENTS_MAX,
    ) -> None:
        """Nothing is opened yet.

        Args:
            port: 0: any that is free.
            password: that clients have to say first; None: none.
            memory_bytes: of all values on their way between clients and the sky.
            clients_max: further ones are told so and let go.
        """
        self.sky = sky
        self.host = host
        self.port = port
        """where it listens, once it was started"""
        self.password = None if password is None else password.encode()
        self.clients_max = clients_max
        self.memory = Memory(memory_bytes)
        self.values = Values(sky, self.memory, Directory())
        self.meter = Meter()
        self.connections: set[Connection] = set()
        self.scratch = memoryview(bytearray(READ_BYTES))
        """what is read lies here until it is taken in, of whichever connection"""
        self.lengths = Lengths()
        """of values of clients that count bytes, for those that have not put or seen one yet"""
        self.started_s = time.monotonic()
        self._number = 0
        self._listener: socket.socket | None = None
        self._sweeper: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.meter.gauges(lambda: len(self.connections), lambda: self.memory.used_bytes)
        registry.register(self.meter)

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: the port is taken, or the address is none of this host.
        """
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.setblocking(False)
            listener.bind(address)
            listener.listen(socket.SOMAXCONN)
        except OSError as error:
            listener.close()
            raise OSError(error.errno, f"Redis clients at {self.host}:{self.port}: {error.strerror}") from error
        self._listener = listener
        self.port = listener.getsockname()[1]
        loop.add_reader(listener, self._accept)
        self._sweeper = asyncio.create_task(self._sweep())

    async def close(self) -> None:
        """Let what was asked for be answered for a while, then end all connections. Safe to call twice."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sweeper
            self._sweeper = None
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener)
            self._listener.close()
            self._listener = None
        for connection in list(self.connections):
            connection.retire()
        until_s = time.monotonic() + _GRACE_S
        while self.connections and time.monotonic() < until_s:
            await asyncio.sleep(_BREATH_S)
        for connection in list(self.connections):
            connection.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.values.drained(), max(0.1, until_s - time.monotonic()))
        for task in self._tasks:
            task.cancel()

    # ---- for connections and commands -----------------------------------------------------------------------------------

    def claim(self, length: int) -> str | None:
        """May a large argument of this length come, as far as is known now? None: it may; else why not."""
        if (why := self.values.too_long(length)) is not None:
            return why
        return None if self.memory.has_room(length) else self._no_room(length)

    def admit(self, length: int) -> str | None:
        """May so many bytes stay that have come? None: they may, and have their memory; else why not."""
        return None if self.memory.admit(length) else self._no_room(length)

    def _no_room(self, length: int) -> str:
        limit, used = self.memory.limit_bytes // 2, self.memory.used_bytes
        return f"ERR no memory for {length:,} bytes: {used:,} of {limit:,} are on their way; try again"

    def work(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Let a command go on in the background."""
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def left(self, connection: Connection) -> None:
        """A connection has ended."""
        self.connections.discard(connection)

    # ---- inside ---------------------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        assert self._listener is not None
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                client, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionError):
                return
            except OSError as error:  # no descriptor is left: who waits is let in later
                _log.warning("a Redis client could not be let in: %s", error.strerror)
                self._pause()
                return
            client.setblocking(False)
            if len(self.connections) >= self.clients_max:
                self.meter.rejected_total += 1
                with contextlib.suppress(OSError):
                    client.send(b"-ERR max number of clients reached\r\n")
                client.close()
                continue
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self._number += 1
            self.meter.connections_total += 1
            session = Session(self._number, f"{address[0]}:{address[1]}", self.password is None)
            self.connections.add(Connection(self, client, session))

    def _pause(self) -> None:
        """Accept nothing for a while: the socket would call again at once."""
        loop, listener = asyncio.get_running_loop(), self._listener
        assert listener is not None
        loop.remove_reader(listener)
        loop.call_later(_SWEEP_S, lambda: loop.add_reader(listener, self._accept) if self._listener is listener else None)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_S)
            now_s = time.monotonic()
            for connection in list(self.connections):
                if (why := connection.stalled(now_s)) is not None:
                    connection.cut_off(why)
