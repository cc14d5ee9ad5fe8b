"""`Gateway`: the ports of Redis clients and of LMCache.

    client - Connection - command (table) - Values: a line of operations for each name - sky

The operations of a connection are done side by side, and answered in order.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import socket
import time
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from prometheus_client import CollectorRegistry

from skymemory.agent.gateway.commands import COMMANDS
from skymemory.agent.gateway.connection import Connection
from skymemory.agent.gateway.lmcache import ADAPTERS_WARNING, Padding
from skymemory.agent.gateway.memory import JOINED_BYTES_MAX, MEMORY_BYTES
from skymemory.agent.gateway.session import Session
from skymemory.agent.gateway.shared import Shared
from skymemory.agent.gateway.users import Users
from skymemory.agent.shared_sky import SharedSky
from skymemory.common.addresses import address_text
from skymemory.common.guesses import Guesses
from skymemory.common.listening import Acceptor, bind

_log = logging.getLogger(__name__)

CLIENTS_MAX: Final = 1000
_SWEEP_S: Final = 5.0
_SAMPLE_S: Final = 0.5
_GRACE_S: Final = 5.0
"""Time that commands have to be answered when the gateway closes."""
_BREATH_S: Final = 0.01


class Gateway:
    """Used from one event loop. Its ports are open between `start` and `close`."""

    def __init__(
        self,
        sky: SharedSky,
        host: str,
        port: int | None,
        registry: CollectorRegistry,
        *,
        lmcache_port: int | None = None,
        listening: Mapping[int, list[socket.socket]] = MappingProxyType({}),
        users: Users | None = None,
        guesses: Guesses | None = None,
        memory_bytes: int = MEMORY_BYTES,
        clients_max: int = CLIENTS_MAX,
        joined_bytes_max: int = JOINED_BYTES_MAX,
    ) -> None:
        """Make it; nothing is opened yet.

        Args:
            sky: The satellites.
            host: Address of both ports.
            port: Port of Redis clients; 0: any that is free; None: none.
            registry: Registry of the gateway's metrics.
            lmcache_port: Port of LMCache 0.5's client, likewise.
            listening: Sockets that listen already, by the ports that were asked for; the gateway closes them.
            users: Users that clients may be; None: clients need no password.
            guesses: Memory of wrong passwords; one of its own by default.
            memory_bytes: Memory of all values on their way between clients and the sky.
            clients_max: Number of clients. For one more an idle one has to go; if none is, the new one is told so and let go.
            joined_bytes_max: Bytes of answers that a client has not taken, before its further commands wait.
        """
        self.shared = Shared(sky, host, users or Users(), memory_bytes, clients_max, guesses, joined_bytes_max)
        self.port = port
        """Port of Redis clients; the one where it listens, once it was started."""
        self.lmcache_port = lmcache_port
        """Port of LMCache, likewise."""
        self.connections: set[Connection] = set()
        self._listening = dict(listening)
        self._number = 0
        self._acceptors: list[Acceptor] = []
        self._sweeper: asyncio.Task[None] | None = None
        registry.register(self.shared.meter)

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: A port is taken, or the address is none of this host.
        """
        if self.port is not None:
            self.port = self._listen(self.port, pads=False)
        if self.lmcache_port is not None:
            self.lmcache_port = self._listen(self.lmcache_port, pads=True)
            _log.warning(ADAPTERS_WARNING)
        self.shared.port = self.port or self.lmcache_port or 0
        self._sweeper = asyncio.create_task(self._sweep())

    async def close(self) -> None:
        """Give commands a while to be answered, then end all connections. Safe to call twice."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sweeper
            self._sweeper = None
        for one in itertools.chain.from_iterable(self._listening.values()):
            one.close()
        while self._acceptors:
            self._acceptors.pop().close()
        for connection in list(self.connections):
            connection.retire()
        until_s = time.monotonic() + _GRACE_S
        while self.connections and time.monotonic() < until_s:
            await asyncio.sleep(_BREATH_S)
        for connection in list(self.connections):
            connection.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.shared.drained(), max(0.1, until_s - time.monotonic()))

    def _listen(self, port: int, *, pads: bool) -> int:
        """Open a port, and return its number."""
        who = "LMCache" if pads else "Redis clients"
        try:
            sockets = self._listening.pop(port, None) or bind(self.shared.host, port)
            acceptor = Acceptor(sockets, partial(self._take, pads=pads), who)
            self._acceptors.append(acceptor)
            acceptor.start()
        except OSError as error:
            raise OSError(error.errno, f"{who} at {address_text(self.shared.host, port)}: {error.strerror}") from error
        return int(acceptor.address[1])

    def _take(self, client: socket.socket, address: Any, *, pads: bool) -> None:
        """Serve a client, or tell it that there are too many."""
        shared = self.shared
        if len(self.connections) >= shared.clients_max and not self._make_room():
            shared.meter.rejected += 1
            with contextlib.suppress(OSError):
                client.send(b"-ERR max number of clients reached\r\n")
            client.close()
            return
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._number += 1
        shared.meter.accepted += 1
        tally = shared.tally_of(shared.users.open_user)
        tally.connections += 1
        session = Session(self._number, tally.connections, address[0], address[1], shared.users.open_user)
        shared.sessions[session.number] = session
        padding = Padding(shared.values.lengths) if pads else None
        self.connections.add(Connection(shared, COMMANDS, client, session, self.connections.discard, padding))

    def _make_room(self) -> bool:
        """End the client that can best be spared; return False if none can."""
        now_s = time.monotonic()
        spare = [(rank, one) for one in self.connections if (rank := one.spare(now_s)) is not None]
        if not spare:
            return False
        _, last = min(spare, key=lambda one: one[0])
        last.tally.failed("crowded")
        last.close()  # without a word, which it would take for the answer to its next command
        return True

    async def _sweep(self) -> None:
        """Note what is needed for rates, drop values whose time has come, and end the clients that have stalled."""
        swept_s = time.monotonic()
        while True:
            await asyncio.sleep(_SAMPLE_S)
            now_s = time.monotonic()
            self.shared.meter.sample(now_s)
            await self.shared.expire()
            if now_s - swept_s < _SWEEP_S:
                continue
            swept_s = now_s
            for connection in list(self.connections):
                if (why := connection.stalled(now_s)) is not None:
                    connection.cut_off(why)
