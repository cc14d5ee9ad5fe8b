"""The agent: its parts, in the order in which they start, and its clean end."""

import asyncio
import gc
import logging
import resource
import signal
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Final, Protocol

from prometheus_client import GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR, CollectorRegistry

from skymemory.agent.constellation_source import ConstellationSource, FixedSource, RunningSource
from skymemory.agent.engine_server import EngineServer
from skymemory.agent.engines_secret import EnginesSecret
from skymemory.agent.gateway.gateway import Gateway
from skymemory.agent.gateway.users import Users
from skymemory.agent.http import HttpServer
from skymemory.agent.settings import AgentSettings
from skymemory.agent.shared_sky import SharedSky
from skymemory.agent.systemd import notify
from skymemory.agent.tracing import Tracing
from skymemory.common.addresses import address_text
from skymemory.common.secret_files import SecretFileError
from skymemory.common.state_folder import http_record
from skymemory.segments.gate_metrics import GateMetrics
from skymemory.sky.constellation import ConfigError, Constellation
from skymemory.testbed.run_record import RunRecord

_log = logging.getLogger(__name__)

CLOSE_S: Final = 30.0
"""Time that all parts have to end; parts that have not ended then are left behind."""
_PART_S: Final = 15.0
"""Time that one part has to end."""
DESCRIPTORS: Final = 8192
"""Descriptors for a thousand Redis clients, 256 engines with an arena each, 256 browsers, and the sky."""
_FEW_DESCRIPTORS: Final = 2048
_GC_OBJECTS: Final = 10_000
"""New objects between two collections: a Redis command makes dozens, and nearly none of them in circles."""
_GC_YOUNG: Final = 2
"""Collections of new objects for each one of those that the last ones left: 30,000 are looked through in a dozen milliseconds."""
_GC_WHOLE: Final = 5000
"""Collections of what is not new, for each one of all objects: that one takes as long as there are many, and all wait for it."""


class Part(Protocol):
    """Parts of the agent."""

    async def start(self) -> None:
        """Begin to serve. Raises OSError, RuntimeError."""

    async def close(self) -> None:
        """End within a bounded time; safe to call twice, and without `start`."""


class Agent:
    """All of one host's agent. Used from one event loop."""

    def __init__(self, settings: AgentSettings, listening: Mapping[int, list[socket.socket]] = MappingProxyType({})) -> None:
        """Make the parts; nothing is opened yet.

        Args:
            listening: Sockets of Redis clients that listen already, by the ports of the settings.

        Raises:
            ConfigError: The constellation file is wrong, or that of users is, or others may read it.
            OSError: The file cannot be read.
            SecretFileError: The file of the tenant secret cannot be read.
        """
        self.settings = settings
        self._record = http_record(settings.socket)
        self.registry = CollectorRegistry()
        for collector in (PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR, GateMetrics()):
            self.registry.register(collector)
        self._secret = EnginesSecret(settings.socket, settings.tenant_secret_file)
        self.sky = SharedSky(_source(settings, self._secret.of), self.registry, Tracing.from_environment())
        self.http: HttpServer | None = None
        self.engines = EngineServer(self.sky, settings.socket, self.registry)
        self._parts: list[Part] = [self.sky, self.engines]
        """Parts in the order of their start; they end in the opposite order."""
        self.gateway: Gateway | None = None
        if settings.resp_port is not None or settings.lmcache_port is not None:
            self.gateway = Gateway(
                self.sky,
                settings.resp_host,
                settings.resp_port,
                self.registry,
                lmcache_port=settings.lmcache_port,
                listening=listening,
                users=_users(settings),
            )
            self._parts.append(self.gateway)
        if settings.http_port is not None:
            self.http = HttpServer(self.sky, self.registry, settings.http_host, settings.http_port)
            self._parts.append(self.http)

    async def start(self) -> None:
        """Start all parts; the constellation need not be reachable.

        Raises:
            OSError, RuntimeError: One could not; those before it have ended again.
        """
        try:
            for part in self._parts:
                await part.start()
            self._secret.serve()
        except BaseException:
            await self.close()
            raise
        with suppress(OSError):  # only `skymem status` misses the record
            if self.http is not None:
                self._record.write_text(self.http.url)
            else:
                self._record.unlink(missing_ok=True)  # an agent that was killed has left it

    async def close(self) -> None:
        """End all parts, the last one first. What was asked for has a few seconds to come to its end."""
        end_s = time.monotonic() + CLOSE_S
        if self.http is not None and self.http.url:
            with suppress(OSError):
                if self._record.read_text() == self.http.url:  # another agent that serves here now keeps its record
                    self._record.unlink()
        for part in reversed(self._parts):
            try:
                await asyncio.wait_for(part.close(), min(_PART_S, max(0.1, end_s - time.monotonic())))
            except Exception:  # the other parts have to end all the same
                _log.exception("%s failed while it was closed", type(part).__name__)

    def addresses(self) -> dict[str, str]:
        """Return the addresses where it serves, once it was started."""
        found = {"engines": str(self.settings.socket)}
        if self.gateway is not None:
            for name, port in (("redis", self.gateway.port), ("lmcache", self.gateway.lmcache_port)):
                if port is not None:
                    found[name] = f"redis://{address_text(self.settings.resp_host, port)}"
        if self.http is not None:
            found["http"] = f"http://{address_text(self.settings.http_host, self.http.port)}"
        return found


def _users(settings: AgentSettings) -> Users:
    try:
        return Users(settings.resp_password, settings.resp_users)
    except SecretFileError as error:
        raise ConfigError(str(error)) from error


def _source(settings: AgentSettings, secret: Callable[[Constellation], bytes]) -> ConstellationSource:
    if settings.constellation is None:
        return RunningSource(secret=secret)
    sky = RunRecord(settings.replay).sky(Constellation.load(settings.constellation, "host"))
    return FixedSource(sky.constellation, sky.playing, secret)


async def run(
    settings: AgentSettings,
    tell: Callable[[dict[str, str]], None],
    listening: Mapping[int, list[socket.socket]] = MappingProxyType({}),
) -> None:
    """Run an agent until SIGTERM or Ctrl-C, and end it in order.

    Args:
        listening: See `Agent`.
        tell: Called with `Agent.addresses()` when all parts serve.

    Raises:
        ConfigError, OSError, RuntimeError: It could not start.
        KeyboardInterrupt: It was Ctrl-C.
    """
    _take_descriptors()
    loop = asyncio.get_running_loop()
    ended, interrupted = asyncio.Event(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)

    def interrupt() -> None:
        interrupted.set()
        ended.set()

    loop.add_signal_handler(signal.SIGINT, interrupt)
    agent = Agent(settings, listening)
    await agent.start()
    try:
        gc.collect()
        gc.freeze()  # modules and metrics stay: to look through them again and again took a sixth of the time
        gc.set_threshold(_GC_OBJECTS, _GC_YOUNG, _GC_WHOLE)
        tell(agent.addresses())
        notify("READY=1")
        await ended.wait()
        notify("STOPPING=1")
    finally:
        await agent.close()
    if interrupted.is_set():
        raise KeyboardInterrupt


def _take_descriptors() -> None:
    """Shells and service managers give 1,024, and let a process that asks have more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= DESCRIPTORS:
        return
    most = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < _FEW_DESCRIPTORS:
        _log.warning("%d open files are allowed; all that may connect need %d (ulimit -Hn, LimitNOFILE)", most, _FEW_DESCRIPTORS)
