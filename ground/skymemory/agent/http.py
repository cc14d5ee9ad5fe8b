"""HTTP of the agent: health, readiness, metrics, and the page."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from skymemory.agent.readiness import readiness
from skymemory.agent.shared_sky import SharedSky
from skymemory.agent.watch.origins import strange_name_on_loopback
from skymemory.agent.watch.routes import Handler, add_routes
from skymemory.common.addresses import address_text, local_host
from skymemory.common.http_faults import is_ours
from skymemory.common.listening import Acceptor, bind, into_protocols

_log = logging.getLogger(__name__)

CONNECTIONS_MAX: Final = 256
"""Connections at a time. One more ends the oldest, so probes always get in, and engines have descriptors left."""
IDLE_S: Final = 60.0
"""Time after which a connection without a whole request ends."""


class HttpServer:
    """`/healthz`, `/readyz`, `/metrics`, and the routes of the page."""

    def __init__(self, sky: SharedSky, registry: CollectorRegistry, host: str, port: int) -> None:
        """`port` 0: any that is free."""
        self._sky, self._registry = sky, registry
        self._host = host
        self.port = port
        """Port where it listens, once it was started."""
        self.url = ""
        """URL under which this machine reaches it, once it was started."""
        self._started_s = time.monotonic()
        self._runner: web.AppRunner | None = None
        self._acceptor: Acceptor | None = None

    async def start(self) -> None:
        """Listen.

        Raises:
            OSError: The address is in use, or is none of this machine.
        """
        app = web.Application()
        app.router.add_get("/healthz", _monitored(self._healthz))
        app.router.add_get("/readyz", _monitored(self._readyz))
        app.router.add_get("/metrics", _monitored(self._metrics))
        add_routes(app, self._sky, self._registry)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0, keepalive_timeout=IDLE_S, logger=_log)
        await self._runner.setup()
        try:
            # The sites of aiohttp are not used, because they take any number of connections.
            self._acceptor = Acceptor(bind(self._host, self.port), into_protocols(self._admit), "HTTP clients")
            self._acceptor.start()
        except OSError as error:
            await self.close()
            where = address_text(self._host, self.port)
            raise OSError(error.errno, f"page, health and metrics at {where}: {error.strerror}") from error
        except BaseException:
            await self.close()
            raise
        host, self.port = self._acceptor.address[:2]
        self.url = f"http://{address_text(local_host(host), self.port)}"

    async def close(self) -> None:
        """Stop listening and end what is left of the connections."""
        if self._acceptor is not None:
            self._acceptor.close()
            self._acceptor = None
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def _admit(self) -> asyncio.Protocol:
        """For a connection that has come."""
        server = None if self._runner is None else self._runner.server
        assert server is not None
        # Ended connections stay in aiohttp's list for a while.
        transports = [one.transport for one in server.connections]
        open_ = [one for one in transports if one is not None and not one.is_closing()]
        for oldest in open_[: max(0, len(open_) + 1 - CONNECTIONS_MAX)]:
            oldest.abort()
        return server()

    async def _healthz(self, request: web.Request) -> web.Response:
        """Answer that the process lives and its loop turns, whatever the sky does."""
        up_s = round(time.monotonic() - self._started_s, 1)
        return web.json_response({"healthy": True, "uptime_seconds": up_s})

    async def _readyz(self, request: web.Request) -> web.Response:
        """Answer 200 if a constellation is known and a satellite answered lately, also while servers are lost; otherwise 503."""
        report = readiness(self._sky)
        return web.json_response(report, status=200 if report["ready"] else 503)

    async def _metrics(self, request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(self._registry), headers={"Content-Type": content_type})


_log.addFilter(is_ours)


def _monitored(handler: Handler) -> Handler:
    """For probes and Prometheus, by whatever name they come over the network; not for pages that have their name on loopback."""

    async def monitored(request: web.Request) -> web.StreamResponse:
        why = strange_name_on_loopback(request)
        if why is not None:
            raise web.HTTPForbidden(text=f"{why}\n")
        return await handler(request)

    return monitored
