"""HTTP routes of the page: its files, the newest state, the last hours, and a WebSocket."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry

from skymemory.agent.watch.latency import Latency
from skymemory.agent.watch.limits import PageLimits
from skymemory.agent.watch.origins import HEADERS, refusal
from skymemory.agent.watch.sampler import SkySampler, Watched
from skymemory.agent.watch.survey_metrics import SurveyMetrics
from skymemory.agent.watch.websocket import Live

PAGE: Final = Path(__file__).parents[1] / "page"
"""Folder where the build puts the page's files."""
_TIME_MAX: Final = 2**53
"""Largest integer of JavaScript."""
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


def add_routes(
    app: web.Application, sky: Watched, registry: CollectorRegistry, page: Path = PAGE, limits: PageLimits | None = None
) -> SkySampler:
    """Add the page to an application, which starts and closes its parts.

    Args:
        app: The application of the agent's HTTP server.
        sky: The sky that the page shows.
        registry: Metrics of the agent, for the latency of gets.
        page: Folder of the page's files.
        limits: Limits and periods of the page.
    """
    limits = limits or PageLimits()
    sampler = SkySampler(sky, Latency(registry), limits)
    SurveyMetrics(registry, lambda: sampler.totals)
    live = Live(sampler, limits)
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
    # Each file that is there now has a route of its own, so that no path leads out of the folder
    files = {str(file.relative_to(page)): file for file in page.rglob("*") if file.suffix in _TYPES} if page.is_dir() else {}
    for name, file in files.items():
        app.router.add_get(f"/{name}", _guarded(_file(file)))
    app.router.add_get("/", _guarded(_file(files["index.html"]) if "index.html" in files else _no_page))
    return sampler


class _Routes:
    def __init__(self, sampler: SkySampler, live: Live) -> None:
        self._sampler, self._live = sampler, live

    async def now(self, _: web.Request) -> web.Response:
        """Answer with the newest state."""
        self._sampler.touch()
        return _json(self._sampler.text())

    async def history(self, request: web.Request) -> web.Response:
        """Answer with the series of a time."""
        history = self._sampler.history
        if history is None or history.span_ms is None:
            return _json({"time_ms": []})
        return _json(history.series(*_span(request, history.span_ms)))

    async def csv(self, request: web.Request) -> web.Response:
        """Answer with the series of a time as CSV: a line for each instant, with empty cells for values not measured."""
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
        """Answer with the frames of a time, and before them with the frame that was the newest when the time began, if any."""
        history = self._sampler.history
        if history is None or history.span_ms is None:
            return _json({"frames": []})
        from_ms, to_ms, step_ms = _span(request, history.span_ms)
        frames = list(history.frames(from_ms, to_ms, step_ms))
        if (first := history.at(from_ms)) is not None and (not frames or first.time_ms < frames[0].time_ms):
            frames.insert(0, first)
        return _json(await self._sampler.frames_text(frames))


def _span(request: web.Request, span_ms: tuple[int, int]) -> tuple[int, int, int]:
    """Return `from`, `to` (Unix times) and `step` of a query in ms; by default those of all frames."""
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
    """Return a handler that refuses requests from foreign pages, and adds the headers of every answer."""

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
