"""Periodic survey of the constellation: every 2 s while somebody watches, and every 10 s otherwise, for the history."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Final, Protocol

import msgspec

from skymemory.agent.activity import Activity
from skymemory.agent.models import Model
from skymemory.agent.models import told as told_of
from skymemory.agent.watch.frame import Frame
from skymemory.agent.watch.history import History
from skymemory.agent.watch.limits import PageLimits
from skymemory.agent.watch.survey import Quantiles, Survey
from skymemory.agent.watch.survey_metrics import SkyTotals
from skymemory.store.sky_store import SkyStore

_log = logging.getLogger(__name__)

SHARE_MAX: Final = 0.1
"""Largest share of a core's time. With tens of thousands of satellites, frames are further apart."""

NOBODY_UP: Final = "The agent knows of no constellation; it looks for one all the time."
ALL_SILENT: Final = {
    "why": "No satellite answers.",
    "cure": "`skymem status` asks them from the command line; `skymem down` and `skymem up` start them anew. Engines compute "
    "meanwhile what they would have fetched.",
}


class HasActivity(Protocol):
    """The agent's observer."""

    @property
    def activity(self) -> Activity:
        """Counts of the blocks that engines and clients asked for."""


class Watched(Protocol):
    """The part of the agent's sky that the page needs."""

    @property
    def store(self) -> SkyStore | None:
        """Store of the constellation that is up; None if none is up. Another constellation has another store."""

    @property
    def unready(self) -> str | None:
        """Reason why no block can be fetched now; None if blocks can be fetched."""

    @property
    def observer(self) -> HasActivity:
        """Observer that counts the requests of engines and clients."""

    @property
    def models(self) -> Iterable[Model]:
        """Models and their blocks, as engines have reported them."""


class SkySampler:
    """A sampler that takes frames, keeps them in a history, and wakes all that wait for the next one."""

    def __init__(self, sky: Watched, latency: Quantiles = lambda: None, limits: PageLimits | None = None) -> None:
        self._sky, self._latency = sky, latency
        self._limits = limits or PageLimits()
        self._survey: Survey | None = None
        self._surveyed: SkyStore | None = None
        self._identity = 0  # number of the constellation, by which a browser notices a change
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="skymem-page")
        self._task: asyncio.Task[None] | None = None
        self.totals: SkyTotals | None = None
        """Sums of the newest survey; None: no constellation is known."""
        self.watchers = 0
        """Number of clients that watch."""
        self._spent_s = 0.0  # processor time that the last look took
        self._asked_s = -self._limits.asked_s
        self._wake = asyncio.Event()
        self._news: asyncio.Event = asyncio.Event()
        self._told: dict[str, Any] = {"state": "none", "sky": None, "frame": None, "why": NOBODY_UP, "cure": ""}
        self._texts: dict[bool, bytes] = {}
        self._version: tuple[int, int] = (0, 0)
        self.history: History | None = None
        """History of the constellation that is up; None if none is up."""

    async def start(self) -> None:
        """Begin to take frames."""
        self._task = asyncio.create_task(self._run(), name="skymem-page")

    async def close(self) -> None:
        """Take no more frames, and close the survey."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await asyncio.get_running_loop().run_in_executor(self._thread, self._leave)
        self._thread.shutdown()

    # ---- who watches --------------------------------------------------------------------------------------------------------

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count a watcher while the context is open."""
        self.watchers += 1
        self._wake.set()
        try:
            yield
        finally:
            self.watchers -= 1

    def touch(self) -> None:
        """Note that a client asked over HTTP, which counts as watching for a while."""
        self._asked_s = time.monotonic()
        self._wake.set()

    @property
    def version(self) -> tuple[int, int]:
        """Version of the constellation itself in `text`, which changes with it."""
        return self._version

    def text(self, *, whole: bool = True) -> bytes:
        """Return the newest state as JSON; unless `whole`, without the constellation itself, for a browser that has it."""
        if whole not in self._texts:
            told = {**self._told}
            if not whole:
                del told["sky"]
            self._texts[whole] = msgspec.json.encode(told)
        return self._texts[whole]

    async def news(self) -> AsyncIterator[None]:
        """Yield once now, and again when there is a newer state. A slow caller misses states in between."""
        while True:
            seen = self._news
            yield
            await seen.wait()

    async def frames_text(self, frames: list[Frame]) -> bytes:
        """Return frames of the history as JSON, with the satellites' positions, encoded in the thread lest engines wait."""

        def encode() -> bytes:
            survey = self._survey
            places = [None if survey is None else survey.positions(frame.sky_ms, 1.0) for frame in frames]
            told = [{**frame.told(), "positions": place} for frame, place in zip(frames, places, strict=True)]
            return msgspec.json.encode({"frames": told})

        return await asyncio.get_running_loop().run_in_executor(self._thread, encode)

    # ---- inside -------------------------------------------------------------------------------------------------------------

    @property
    def _is_watched(self) -> bool:
        return self.watchers > 0 or time.monotonic() - self._asked_s < self._limits.asked_s

    @property
    def _pause_s(self) -> float:
        # Without a constellation a look asks no satellite, and costs almost nothing.
        wanted_s = self._limits.watched_s if self._is_watched or self._survey is None else self._limits.alone_s
        return max(wanted_s, self._spent_s / SHARE_MAX)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began_s = time.monotonic()
            try:
                frame, told = await loop.run_in_executor(self._thread, self._look)
                self._take(frame, told)
            except Exception as error:  # the agent goes on after any error, and the page shows the last state
                _log.warning("the page shows what was seen last: %s", error, exc_info=not isinstance(error, OSError | ValueError))
            while (left_s := began_s + self._pause_s - time.monotonic()) > 0:
                self._wake.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), left_s)

    def _look(self) -> tuple[Frame | None, dict[str, Any]]:
        """Return a frame, and facts that are sent with the newest frame only. Call it in the thread."""
        store = self._sky.store
        if store is not self._surveyed:
            self._leave()
            if store is not None:
                self._survey = Survey(store, self._latency, self._sky.observer.activity)
            self._surveyed = store
        if self._survey is None:
            return None, {}
        began_s = time.thread_time()
        frame, now = self._survey.take(), self._survey.now()
        self.totals = self._survey.totals()
        now["models"] = told_of(self._survey.constellation, list(self._sky.models))
        self._spent_s = time.thread_time() - began_s
        return frame, now

    def _leave(self) -> None:
        self._survey = self._surveyed = self.totals = None

    def _take(self, frame: Frame | None, now: dict[str, Any]) -> None:
        survey = self._survey
        if frame is None or survey is None:
            why = self._sky.unready or ""
            cure = f"{why[:1].upper()}{why[1:]}."
            told: dict[str, Any] = {"state": "none", "sky": None, "frame": None, "why": NOBODY_UP, "cure": cure}
            self.history, self._constellation = None, None
            self._version = (self._identity, -1)
        else:
            if self.history is None or survey.constellation != self._constellation:
                self.history, self._constellation = History(survey.shape), survey.constellation
                self._identity += 1
            self.history.append(frame)
            self._version = (self._identity, survey.version)
            told = {"state": "up" if frame["alive"][0] else "silent", "sky": {"id": self._identity, **survey.sky()}}
            told |= {} if frame["alive"][0] else {**ALL_SILENT, **self._reason()}
            told["frame"] = {**frame.told(), **now}
            told["history"] = {"span_ms": self.history.span_ms, "bytes": self.history.bytes, "step_s": self.history.step_s}
        self._told, self._texts = told, {}
        before, self._news = self._news, asyncio.Event()
        before.set()

    def _reason(self) -> dict[str, str]:
        """Return why no satellite serves, if the agent knows more than that none answers."""
        why = self._sky.unready
        return {"why": f"{why[:1].upper()}{why[1:]}."} if why else {}

    _constellation: Any = None
