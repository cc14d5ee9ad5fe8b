"""The page's routes in an application of their own, over a sky that is only a store."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client import CollectorRegistry

from skymemory.agent.activity import Activity
from skymemory.agent.models import Model
from skymemory.agent.watch.limits import PageLimits
from skymemory.agent.watch.routes import PAGE, add_routes
from skymemory.agent.watch.sampler import SkySampler
from skymemory.store.sky_store import SkyStore

Client = TestClient[web.Request, web.Application]
Serve = Callable[..., Any]


@dataclass
class OnlyActivity:
    """The part of the agent's observer that the page needs."""

    activity: Activity = field(default_factory=Activity)


class OnlyStore:
    """The part of the agent's sky that the page needs."""

    models: tuple[Model, ...] = ()

    def __init__(self, store: SkyStore | None, unready: str) -> None:
        self.observer = OnlyActivity()
        self.unready: str | None = unready
        self.looks = 0
        """Number of times that somebody asked for the store: once for each frame."""
        self._store = store

    @property
    def store(self) -> SkyStore | None:
        self.looks += 1
        return self._store

    @store.setter
    def store(self, store: SkyStore | None) -> None:
        self._store = store


@asynccontextmanager
async def served(
    store: SkyStore | None = None, page: Path = PAGE, unready: str = "nothing is up; `skymem up` starts one", **limits: Any
) -> AsyncIterator[tuple[Client, SkySampler, OnlyStore]]:
    """Yield a client of an application that has the page's routes; frames follow each other at once."""
    sky = OnlyStore(store, unready)
    app = web.Application()
    paces = PageLimits(**{"watched_s": 0.02, "alone_s": 0.02, **limits})
    sampler = add_routes(app, sky, CollectorRegistry(), page=page, limits=paces)
    async with TestClient(TestServer(app)) as client:
        yield client, sampler, sky


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """Run an asynchronous test."""
    asyncio.run(asyncio.wait_for(scenario, 300))
