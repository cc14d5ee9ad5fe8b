"""Search for late satellites: those that still have chunks to hand over.

Before a block counts as gone, two groups of satellites are asked whether they have chunks that belong elsewhere: those that had a
place in an earlier row, and those that may have been stand-ins. The core decides who is asked, what an answer means, and how long
it counts (`sky_handovers.h`). This module sends the questions, and knows the schedule and the time.
"""

import ctypes
import logging
import time
from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

from skymemory.link.control import ControlPlane
from skymemory.sky.entry_satellites import Route
from skymemory.sky.placement import structures
from skymemory.sky.placement.core_library import library
from skymemory.sky.placement.places import NOBODY, LateSatellites
from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.routes import Routes, Ways

_log = logging.getLogger(__name__)


class Late(NamedTuple):
    """Satellites that are late, found at one time."""

    row: int
    """The row of the schedule when satellites were asked."""
    routes: tuple[Route, ...]
    """Routes to the satellites that still have chunks to hand over."""
    satellites: LateSatellites
    """The same satellites, in the form that the search for places takes."""
    is_certain: bool
    """True if every satellite that may be late has answered."""

    @property
    def is_over(self) -> bool:
        """True if no satellite that answered has anything to hand over."""
        return not self.routes


class LateSearch:
    """Search of one store for the satellites that are late to hand over. Thread-safe."""

    def __init__(self, where: Whereabouts, routes: Routes, control: ControlPlane) -> None:
        self._where = where
        self._routes = routes
        self._control = control
        self._core, self._state = library(), structures.Handovers()
        self._at = ctypes.byref(self._state)
        self._core.SKY_Handovers_Init(self._at)
        self._late: Late | None = None  # the last findings
        self._lock = Lock()  # guards the core's state and `_late`
        self._told_row = 0
        self._told_unknown = False
        self._turn = Lock()

    def over(self) -> Late | None:
        """Return the last result if it still holds and says that no handover goes on, else None. Sends nothing."""
        known = self._known()
        return known if known is not None and known.is_over else None

    def look(self, *, hurry: bool = False) -> Late:
        """Ask which satellites are late, unless that is known.

        Args:
            hurry: Wait no longer than an answer takes.
        """
        with self._turn:
            known = self._known()
            return self._ask(hurry) if known is None else known

    def ways(self, epoch: int, late: Late | None) -> Ways | None:
        """Return `Routes.ways`; places at late satellites come first.

        Args:
            epoch: `BlockEntry.epoch`.
            late: The late satellites; None if none are known.
        """
        if late is None or late.is_over:
            return self._routes.ways(epoch)
        return self._routes.ways(epoch, late.satellites)

    def routes(self) -> list[Route]:
        """Return routes to the satellites that are late."""
        return list(self.look().routes)

    def is_schedule_unknown(self, routes: Sequence[Route]) -> bool:
        """Return True if a satellite says that it follows a schedule though this store follows none. Log that once.

        False for a store of a host on board: it follows no schedule on purpose, and its blocks stay where they are.
        """
        if self._where.playing is not None or self._where.constellation.cache.host == "satellite":
            return False
        stats = self._control.store_stats(routes, self._control.hurry_s(routes))
        if not any(one["rows"] for one in stats.values()):
            return False
        if not self._told_unknown:
            self._told_unknown = True
            _log.warning(
                "satellites follow a schedule that this host does not know, so values that have moved are missed; "
                "a host finds the schedule that `skymem replay` plays on its machine, and SkyStore takes one as `playing`"
            )
        return True

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _known(self) -> Late | None:
        """Return the last result if it still holds, or None if satellites must be asked."""
        row = self._where.row(time.time())
        if not row:
            return Late(row, (), NOBODY, True)
        with self._lock:
            is_known = self._core.SKY_Handovers_IsKnown(self._at, self._where.changes, row, self._control.timing.now_us())
            return self._late if is_known else None

    def _ask(self, hurry: bool) -> Late:
        changes, playing, row = self._where.changes, self._where.playing, self._where.row(time.time())
        if playing is None or not row:
            return Late(row, (), NOBODY, True)
        search = structures.HandoverSearch()
        with self._lock:
            self._core.SKY_Handovers_Begin(self._at, ctypes.byref(search), changes, row, len(playing.track.rows))
        stood_in = self._where.spares(search.first, row)
        had_place = self._where.left(search.first, row)
        before = list(dict.fromkeys([*had_place, *stood_in]))
        routes = self._routes.to(before)
        while True:
            patience_s = self._control.hurry_s(routes) if hurry else self._control.patience_s(routes)
            stats = self._control.store_stats(routes, patience_s)
            having = {
                satellite: route
                for route in routes
                if (satellite := route.satellite) in stats and self._has_left(search, stats[satellite], satellite in had_place)
            }
            self._tell([stats[satellite] for satellite in having if satellite in had_place], row)
            counts = len(before), len(stats), len(having)
            with self._lock:
                if not self._core.SKY_Handovers_Asked(self._at, ctypes.byref(search), self._control.timing.now_us(), *counts):
                    spares = [one for one in stood_in if one in having and self._has_left(search, stats[one], had_place=False)]
                    known = LateSatellites(having.keys(), search.first, spares)
                    late = self._late = Late(row, tuple(having.values()), known, self._state.is_certain)
                    break
        silent = {route.satellite for route in routes} & set(had_place) - stats.keys()
        if silent and not hurry:
            self._routes.look(silent)
        return late

    def _has_left(self, search: structures.HandoverSearch, counters: dict[str, int], had_place: bool) -> bool:
        """Return True if a satellite has chunks that belong elsewhere."""
        said = (counters[name] for name in ("row", "rows", "handover_left", "used_bytes"))
        word = structures.HandoverWord(*said)
        return bool(self._core.SKY_Handovers_HasLeft(ctypes.byref(search), ctypes.byref(word), had_place))

    def _tell(self, having: list[dict[str, int]], row: int) -> None:
        """Log, at most once for each row, that a handover takes longer than expected."""
        longest_s = max((one["handover_ms"] for one in having), default=0) / 1000
        expected_s = self._where.constellation.cache.handover_s
        if longest_s > expected_s and row != self._told_row:
            self._told_row = row
            chunks = sum(one["handover_left"] for one in having)
            _log.warning(
                "%d satellites have handed over for %.0f s and have %d chunks left; cache.handover_s is %g s",
                *(len(having), longest_s, chunks, expected_s),
            )
