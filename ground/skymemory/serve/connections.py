"""Connections of clients: how many there may be, in all and of one source, and how long each may take.

A connection is idle, sends a head, sends a body, or waits for its answer. One that has not sent a whole request makes room when
a place is needed: the longest idle first. One whose request is whole never does, unless its API key was wrong. A trusted proxy
brings many clients, so it may have as many connections as there are in all.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from aiohttp import web

from skymemory.common.guesses import source_of
from skymemory.common.http_faults import is_ours
from skymemory.common.listening import Acceptor, into_protocols
from skymemory.serve.proxies import HEADER, TrustedProxies

CLIENT_LOG: Final = logging.getLogger("skymemory.serve.http")
"""Log for what aiohttp says of connections."""


class _Stage(IntEnum):
    """Stages of a connection; those with a lower number make room first."""

    WRONG_KEY = 0
    IDLE = 1
    HEAD = 2
    BODY = 3
    ANSWER = 4


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of a server's connections and bodies."""

    connections_max: int = 512
    source_connections_max: int = 128
    """Connections from one address."""
    idle_s: float = 60.0
    """Time for which a connection is kept without a request, and in which an answer's last bytes must be taken."""
    head_s: float = 10.0
    """Time in which the head of a request must come whole."""
    body_s: float = 60.0
    """Time in which a body must come whole."""
    take_s: float = 60.0
    """Time in which a client must take the next part of a stream."""
    body_bytes_max: int = 1 << 23
    """Bytes of one body."""
    bodies_bytes_max: int = 1 << 26
    """Bytes of all bodies whose requests wait for nothing else yet."""


class _Connection(web.RequestHandler):
    """A connection of aiohttp's that tells what it is at."""

    def __init__(self, owner: Connections, server: web.Server, **settings: Any) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), **settings)
        self.owner = owner
        self.source = ""
        self.is_proxy = False
        self.stage = _Stage.IDLE
        self.since_s = 0.0
        """Time when the stage began, by the loop's clock."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        address = peer[0] if peer else ""
        self.source, self.is_proxy = source_of(address), self.owner.proxies.trusts(address)
        self.since_s = asyncio.get_running_loop().time()
        self.owner.came(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        self.owner.left(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.stage is _Stage.IDLE:
            self.enter(_Stage.HEAD)
        super().data_received(data)

    def enter(self, stage: _Stage) -> None:
        self.stage, self.since_s = stage, asyncio.get_running_loop().time()

    def end(self) -> None:
        if self.transport is not None:
            self.transport.abort()  # what it has not taken is dropped


class Body:
    """Bytes of a body that came so far."""

    __slots__ = ("connection", "count", "is_whole", "source")

    def __init__(self, connection: _Connection | None, source: str) -> None:
        self.connection = connection
        self.source = source
        self.count = 0
        self.is_whole = False


class BodyMemoryError(RuntimeError):
    """Bodies of other requests take all memory that there is for bodies."""


class Connections:
    """The connections of one server. Used from one event loop."""

    def __init__(self, limits: ConnectionLimits, proxies: TrustedProxies) -> None:
        self.limits = limits
        self.proxies = proxies
        self._open: set[_Connection] = set()
        self._of_source: Counter[str] = Counter()
        self._bodies: dict[Body, None] = {}
        self._bodies_bytes = 0
        self._server: web.Server | None = None
        self._settings: dict[str, Any] = {}
        self._acceptor: Acceptor | None = None
        self._sweeper: asyncio.Task[None] | None = None

    @property
    def count(self) -> int:
        """Number of connections."""
        return len(self._open)

    def start(self, server: web.Server, listeners: Sequence[socket.socket], **settings: Any) -> None:
        """Take clients.

        Args:
            server: Server of aiohttp's `AppRunner`.
            listeners: Sockets that have the address (`skymemory.common.listening.bind`); they are closed with this.
            settings: Settings of aiohttp's connections.
        """
        self._server, self._settings = server, settings
        self._acceptor = Acceptor(listeners, into_protocols(self._new), "HTTP clients")
        self._acceptor.start()
        self._sweeper = asyncio.create_task(self._sweep())

    async def close(self) -> None:
        """Take no more clients, and look after those that are there no more; safe to call twice."""
        if self._acceptor is not None:
            self._acceptor.close()
            self._acceptor = None
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
            self._sweeper = None

    def _new(self) -> asyncio.Protocol:
        assert self._server is not None
        return _Connection(self, self._server, **self._settings)

    # ---- for connections ----------------------------------------------------------------------------------------------

    def came(self, new: _Connection) -> None:
        """Count a new connection, and end another one, or this one, if there are too many."""
        self._open.add(new)
        self._of_source[new.source] += 1
        if self._of_source[new.source] > self.limits.source_connections_max and not new.is_proxy:
            self._make_room(new, new.source)
        elif len(self._open) > self.limits.connections_max:
            self._make_room(new, self._of_source.most_common(1)[0][0])

    def left(self, one: _Connection) -> None:
        """Forget a connection."""
        if one not in self._open:
            return
        self._open.discard(one)
        self._of_source[one.source] -= 1
        if not self._of_source[one.source]:
            del self._of_source[one.source]

    def _make_room(self, new: _Connection, source: str) -> None:
        """End the connection of a source that can best be spared; the new one, if all others wait for answers."""
        spare = [one for one in self._open if one.source == source and one is not new and one.stage is not _Stage.ANSWER]
        last = min(spare, key=lambda one: (one.stage, one.since_s), default=new)
        self.left(last)
        last.end()

    async def _sweep(self) -> None:
        """End connections that take too long."""
        limits = self.limits
        allowed_s = {_Stage.IDLE: limits.idle_s, _Stage.HEAD: limits.head_s}
        while True:
            await asyncio.sleep(min(1.0, *(0.25 * one_s for one_s in allowed_s.values())))
            now_s = asyncio.get_running_loop().time()
            for one in list(self._open):
                if now_s - one.since_s >= allowed_s.get(one.stage, float("inf")):
                    one.end()

    # ---- for requests -------------------------------------------------------------------------------------------------

    def client(self, request: web.Request) -> str:
        """Return the address of who sent a request."""
        return self.proxies.client(request.remote or "", request.headers.getall(HEADER, ()))

    def has_wrong_key(self, request: web.Request) -> None:
        """Note that a request came with a wrong key: its connection makes room first, while its answer waits."""
        if isinstance(request.protocol, _Connection):
            request.protocol.enter(_Stage.WRONG_KEY)

    def at_work(self, request: web.Request) -> None:
        """Note that a request is being answered: its connection makes room for no other."""
        if isinstance(request.protocol, _Connection):
            request.protocol.enter(_Stage.ANSWER)

    def answered(self, request: web.Request) -> None:
        """Note that a request has its answer, whatever it was: its connection is idle until the next one."""
        if isinstance(request.protocol, _Connection):
            request.protocol.enter(_Stage.IDLE)

    @contextmanager
    def body(self, request: web.Request) -> Iterator[Body]:
        """Count the bytes of a request's body, which `read` reads, until the end of this context."""
        connection = request.protocol if isinstance(request.protocol, _Connection) else None
        body = Body(connection, source_of(self.client(request)))
        self._bodies[body] = None
        try:
            yield body
        finally:
            del self._bodies[body]
            self._bodies_bytes -= body.count

    async def read(self, request: web.Request, body: Body) -> bytes:
        """Read a whole body. Its connection may have to make room meanwhile.

        Raises:
            web.HTTPRequestEntityTooLarge: It is longer than allowed.
            BodyMemoryError: There is no memory for it.
            TimeoutError: It did not come in time.
        """
        limits, connection = self.limits, body.connection
        length = request.content_length
        if length is not None and length > limits.body_bytes_max:
            raise web.HTTPRequestEntityTooLarge(max_size=limits.body_bytes_max, actual_size=length)
        if connection is not None:
            connection.enter(_Stage.BODY)
        came = bytearray()
        try:
            async with asyncio.timeout(limits.body_s):
                async for piece in request.content.iter_any():
                    if len(came) + len(piece) > limits.body_bytes_max:
                        raise web.HTTPRequestEntityTooLarge(max_size=limits.body_bytes_max, actual_size=len(came) + len(piece))
                    self._take(body, len(piece))
                    came += piece
        finally:
            if connection is not None:
                connection.enter(_Stage.ANSWER)
        body.is_whole = True
        return bytes(came)

    def _take(self, body: Body, count: int) -> None:
        """Count bytes. If bodies take too much together, the oldest unfinished one of the source that has most of them goes."""
        while self._bodies_bytes + count > self.limits.bodies_bytes_max:
            halves = [one for one in self._bodies if not one.is_whole and one is not body and one.count and one.connection]
            if not halves:
                raise BodyMemoryError("bodies of other requests take all memory for bodies; try again")
            of_source: Counter[str] = Counter()
            for one in halves:
                of_source[one.source] += one.count
            most = of_source.most_common(1)[0][0]
            last = next(one for one in halves if one.source == most)
            self._bodies_bytes -= last.count
            last.count = 0
            assert last.connection is not None
            last.connection.end()
        body.count += count
        self._bodies_bytes += count


CLIENT_LOG.addFilter(is_ours)
