"""The Unix socket at which engines find the agent."""

import asyncio
import logging
import os
import socket
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client import Counter as Total
from prometheus_client.core import GaugeMetricFamily, Metric

from skymemory.agent import protocol
from skymemory.agent.engine_connection import DRAIN_S, EngineConnection
from skymemory.agent.formats import Formats
from skymemory.agent.models import Models
from skymemory.agent.shared_sky import SharedSky
from skymemory.agent.socket_lock import OwnedSocket
from skymemory.agent.socket_peers import peer
from skymemory.common.listening import Acceptor
from skymemory.store.results import Status

_log = logging.getLogger(__name__)

ENGINES_MAX: Final = 256
"""Connections at a time."""
_SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class EngineServer:
    """Serves engines of this host and of this user. Used from one event loop."""

    def __init__(self, sky: SharedSky, path: Path, registry: CollectorRegistry) -> None:
        self.path = path
        self._sky = sky
        self._formats = Formats(sky)
        self._counter = _RequestMetrics(registry)
        self._models = sky.models = Models(path)
        self._socket: OwnedSocket | None = None
        self._acceptor: Acceptor | None = None
        self._connections: dict[asyncio.Task[None], EngineConnection] = {}
        self._stopping = asyncio.Event()
        registry.register(self)

    async def start(self) -> None:
        """Listen.

        Raises:
            SocketError: Another agent serves there, or the path cannot be one of a socket.
            OSError: The system does not let us.
        """
        self._socket = OwnedSocket(self.path)
        self._acceptor = Acceptor([self._socket.listener], self._take, "engines")
        self._acceptor.start()

    async def close(self) -> None:
        """Take no more questions, answer those in work within some seconds, and end the connections."""
        if self._acceptor is not None:
            self._acceptor.close()
        self._stopping.set()
        if self._connections:
            # Connections that are left wait for the sky, and end with it.
            await asyncio.wait(self._connections, timeout=DRAIN_S + 1)
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def collect(self) -> Iterable[Metric]:
        """Yield the connections of engines and their memory, for Prometheus."""
        # An engine of several processes looks like several engines, and its worker like its scheduler.
        connections = GaugeMetricFamily(
            "skymem_engine_connections", "Connections of engines; one engine may have several.", labels=["engine"]
        )
        arenas = GaugeMetricFamily("skymem_engine_arena_bytes", "Memory that engines share with the agent.", labels=["engine"])
        served = [one for one in self._connections.values() if one.hello is not None]
        mapped: Counter[str] = Counter()
        for one in served:
            assert one.hello is not None
            mapped[_known(one.hello.name)] += one.arena_bytes
        for name, count in Counter(_known(one.hello.name) for one in served if one.hello is not None).items():
            connections.add_metric([name], count)
            arenas.add_metric([name], mapped[name])
        in_work = sum(one.in_work for one in self._connections.values())
        working = GaugeMetricFamily("skymem_engine_requests_in_work", "Requests of engines not answered yet.", value=in_work)
        tokens = GaugeMetricFamily(
            "skymem_model_tokens", "Tokens of a model that the sky holds, of engines since the start.", labels=["model", "dtype"]
        )
        store = self._sky.store
        if store is not None:
            for model in self._models:
                tokens.add_metric([model.model, model.dtype], model.tokens(store.constellation))
        return [connections, arenas, working, tokens]

    def _take(self, link: socket.socket, _: Any) -> None:
        """Serve an engine, or turn it away."""
        pid, uid = peer(link)
        if uid not in (os.geteuid(), 0) or len(self._connections) >= ENGINES_MAX:
            why = f"of user {uid}" if uid not in (os.geteuid(), 0) else f"one more than {ENGINES_MAX}"
            _log.warning("engine (pid %d) was turned away: it is %s", pid, why)
            link.close()
            return
        one = EngineConnection(link, self._sky, self._greeted, self._formats.stored, self._counter.answered)
        task = asyncio.create_task(self._serve(one, pid))
        self._connections[task] = one
        task.add_done_callback(self._connections.pop)

    async def _greeted(self, hello: protocol.Hello) -> list[str]:
        self._models.add(hello)
        return await self._formats.notes(hello) if hello.model else []

    async def _serve(self, one: EngineConnection, pid: int) -> None:
        try:
            await one.run(self._stopping)
        except Exception:
            _log.exception("serving the engine of pid %d failed", pid)
        if one.why:
            self._counter.refusals.inc()
            _log.warning("engine (pid %d) was refused: %s", pid, one.why)


class _RequestMetrics:
    """Prometheus metrics of the requests of engines."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._blocks = Total(
            "skymem_engine_blocks",
            "Blocks that engines asked for, by what became of them.",
            ["operation", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "skymem_engine_request_seconds", "Requests of engines.", ["operation"], buckets=_SECONDS, registry=registry
        )
        self.refusals = Total("skymem_engine_refusals", "Connections ended because of what an engine said.", registry=registry)

    def answered(self, operation: str, statuses: Sequence[Status], duration_s: float) -> None:
        """Count an answered request, with the status of each block."""
        for status, count in Counter(statuses).items():
            self._blocks.labels(operation, status).inc(count)
        self._seconds.labels(operation).observe(duration_s)


def _known(name: str) -> str:
    """Return a label of few values, whatever engines call themselves."""
    return name if name in ("vllm", "sglang", "transformers") else "other"
