"""What the page asks for: its files, the state of now, the last hours, and a WebSocket."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry

from skymemory.agent.watch.latency import Latency
from skymemory.agent.watch.live import Live
from skymemory.agent.watch.origins import HEADERS, refusal
from skymemory.agent.watch.sampler import Sampler, Watched

PAGE: Final = Path(__file__).parents[1] / "page"
"""where the build puts the page's files"""
_TIME_MAX: Final = 2**53
"""what JavaScript can count to"""
_TYPES: Final = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}

NO_PAGE: Final = """\
This agent was installed without its page: when the package was built there was no npm, or npm could not fetch what is needed.

Install Node.js (18 or later) with npm and then the package again: pip install --force-reinstall --no-deps .

The numbers are there without it: /api/now and /api/history (JSON), /metrics (Prometheus); `skymem status` in a terminal.
"""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Agent(Protocol):
    """What the page needs of the agent."""

    @property
    def sky(self) -> Watched:
        """The constellation."""

    @property
    def registry(self) -> CollectorRegistry:
        """Its metrics."""


def add_routes(app: web.Application, agent: Agent, page: Path = PAGE) -> Sampler:
    """Add the page to an application, which starts and closes its parts.

    Args:
        page: folder of the page's files.
    """
    sampler = Sampler(agent.sky, Latency(agent.registry))
    live = Live(sampler)
    routes = _Routes(sampler, live)

    async def start(_: web.Application) -> None:
        await sampler.start()

    async def shut(_: web.Application) -> None:
        await live.close()

    async def close(_: web.Application) -> None:
        await sampler.close()

    app.on_startup.append(start)
    app.on_shutdown.append(shut)
    app.on_cleanup.append(close)
    app.router.add_get("/api/now", _guarded(routes.now))
    app.router.add_get("/api/history", _guarded(routes.history))
    app.router.add_get("/api/history.csv", _guarded(routes.csv))
    app.router.add_get("/api/frames", _guarded(routes.frames))
    app.router.add_get("/api/live", _guarded(live.serve))
    # Only what is there now is served, under its own name: no path leads out of the folder
    files = {str(file.relative_to(page)): file for file in page.rglob("*") if file.suffix in _TYPES} if page.is_dir() else {}
    for name, file in files.items():
        app.router.add_get(f"/{name}", _guarded(_file(file)))
    app.router.add_get("/", _guarded(_file(files["index.html"]) if "index.html" in files else _no_page))
    return sampler


class _Routes:
    def __init__(self, sampler: Sampler, live: Live) -> None:
        self._sampler, self._live = sampler, live

    async def now(self, _: web.Request) -> web.Response:
        """The newest state."""
        self._sampler.touch()
        return _json(self._sampler.text())

    async def history(self, request: web.Request) -> web.Response:
        """Series over a time."""
        history = self._sampler.history
        if history is None or history.span_ms is None:
            return _json({"time_ms": []})
        return _json(history.series(*_span(request, history.span_ms)))

    async def csv(self, request: web.Request) -> web.Response:
        """The same series as a table: a line for each instant; empty where nothing was measured."""
        history = self._sampler.history
        span_ms = None if history is None else history.span_ms
        told = {"time_ms": []} if history is None or span_ms is None else history.series(*_span(request, span_ms))
        names = list(told)
        lines = [",".join(["time_utc", *names])]
        for values in zip(*told.values(), strict=True):
            cells = ("" if value is None else str(value) for value in values)
            lines.append(",".join([datetime.fromtimestamp(values[0] / 1000, UTC).isoformat(timespec="milliseconds"), *cells]))
        name = {"Content-Disposition": 'attachment; filename="skymemory.csv"'}
        return web.Response(text="\r\n".join([*lines, ""]), content_type="text/csv", headers=name)

    async def frames(self, request: web.Request) -> web.Response:
        """Whole frames of a time, after the one that held when it began; and before the first whatever is the oldest."""
        history = self._sampler.history
        if history is None or history.span_ms is None:
            return _json({"frames": []})
        from_ms, to_ms, step_ms = _span(request, history.span_ms)
        frames = list(history.frames(from_ms, to_ms, step_ms))
        if (first := history.at(from_ms)) is not None and (not frames or first.time_ms < frames[0].time_ms):
            frames.insert(0, first)
        return _json(await self._sampler.frames_text(frames))


def _span(request: web.Request, span_ms: tuple[int, int]) -> tuple[int, int, int]:
    """from, to, step of a query, Unix time in ms; by default all there is."""
    values = []
    for name, default in (("from", span_ms[0]), ("to", span_ms[1]), ("step", 0)):
        text = request.query.get(name, str(default))
        if not (text.isascii() and text.isdigit() and int(text[:20]) < _TIME_MAX):
            raise _mistake(f"{name} is {text[:40]!r}; allowed are milliseconds of Unix time, whole numbers below 2^53")
        values.append(int(text))
    unknown = sorted(set(request.query) - {"from", "to", "step"})
    if unknown:
        raise _mistake(f"{unknown[0][:40]!r} is unknown; allowed are from, to and step")
    if values[0] > values[1]:
        raise _mistake(f"from is {values[0]}, after to, {values[1]}; allowed is before")
    return values[0], values[1], values[2]


def _mistake(what: str) -> web.HTTPBadRequest:
    return web.HTTPBadRequest(text=msgspec.json.encode({"error": what}).decode(), content_type="application/json")


def _guarded(handler: Handler) -> Handler:
    """Not for pages of others, and with the headers that every answer has."""

    async def guarded(request: web.Request) -> web.StreamResponse:
        why = refusal(request)
        if why is not None:
            raise web.HTTPForbidden(text=f"{why}\n", headers=HEADERS)
        try:
            response = await handler(request)
        except web.HTTPException as error:
            error.headers.update(HEADERS)
            raise
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    return guarded


def _file(path: Path) -> Handler:
    async def serve(_: web.Request) -> web.StreamResponse:
        return web.FileResponse(path, headers={"Content-Type": f"{_TYPES[path.suffix]}; charset=utf-8"})

    return serve


async def _no_page(_: web.Request) -> web.StreamResponse:
    return web.Response(text=NO_PAGE, status=503)


def _json(told: bytes | dict[str, Any]) -> web.Response:
    body = told if isinstance(told, bytes) else msgspec.json.encode(told)
    return web.Response(body=body, content_type="application/json", charset="utf-8")
