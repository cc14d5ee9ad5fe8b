"""Which satellites still have something to hand over, as they say themselves.

A handover may take longer than `cache.handover_s`, and longer than its row: links are slow, or rows are short. Then a chunk may
still be at the place of any earlier row. So before a block counts as gone, the satellites of earlier rows are asked whether they
have chunks that belong elsewhere. In a row chunks go only to the servers' satellites of that row. Once none of the others has
anything left, that is true until the next row begins, and nobody asks again.
"""

import logging
import time
from collections.abc import Sequence
from threading import Lock
from typing import Final, NamedTuple

from skymemory.link.control import ControlPlane
from skymemory.placement.torus import Satellite
from skymemory.placement.whereabouts import Whereabouts
from skymemory.placement.window import Route
from skymemory.reach import LOST_S, Reach, Ways

_log = logging.getLogger(__name__)

_AGAIN_S: Final = 0.25
"""how long an answer counts while something is on its way"""


class Late(NamedTuple):
    """What is still to be handed over."""

    row: int
    """that held when satellites were asked"""
    routes: tuple[Route, ...]
    """to satellites that have something to hand over"""
    places: tuple[tuple[Route, ...], ...]
    """of each server those whose satellite had its place, in the order of time; empty if there are no routes"""
    is_certain: bool
    """every satellite that may have something has answered"""

    @property
    def is_over(self) -> bool:
        """True if no satellite that answers has anything to hand over."""
        return not self.routes


class Handovers:
    """Of the schedule that a store follows. Thread-safe."""

    def __init__(self, where: Whereabouts, reach: Reach, control: ControlPlane) -> None:
        self._where = where
        self._reach = reach
        self._control = control
        self._settled = 0, 1  # changes of the schedule, and the last row in which everything is known to have arrived
        self._late: tuple[Late, int, float] | None = None  # with the number of changes, and until when it counts
        self._told_row = 0
        self._told_unknown = False
        self._turn = Lock()

    def over(self) -> Late | None:
        """What was found, if by that no handover goes on now, and so nothing needs to be looked for; sends nothing."""
        known = self._known()
        return known if known is not None and known.is_over else None

    def look(self, *, hurry: bool = False) -> Late:
        """Ask who has something to hand over, unless that is known.

        Args:
            hurry: wait no longer than an answer takes.
        """
        with self._turn:
            known = self._known()
            return self._ask(hurry) if known is None else known

    def extended(self, ways: Ways, late: Late) -> Ways:
        """Ways by which a share is asked for wherever it may still be: first at satellites that have yet to hand it over."""
        if late.is_over:
            return ways
        return ways._replace(places=tuple((*before, *place) for before, place in zip(late.places, ways.places, strict=True)))

    def routes(self) -> list[Route]:
        """To satellites that still have something to hand over."""
        return list(self.look().routes)

    def is_schedule_unknown(self, routes: Sequence[Route]) -> bool:
        """Ask satellites, and return whether one of them follows a schedule though this store follows none. Log it once.

        A store of a host on board is meant to follow none: its blocks stay where they are.
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
        """What still holds of what was found; None: they are to be asked."""
        row = self._where.row(time.time())
        if self._where.playing is None:
            return Late(row, (), (), True)
        late = self._late
        if late is None or late[0].row != row or late[1] != self._where.changes or time.monotonic() >= late[2]:
            return None
        return late[0]

    def _ask(self, hurry: bool) -> Late:
        changes, playing, row = self._where.changes, self._where.playing, self._where.row(time.time())
        since = self._settled[1] if self._settled[0] == changes else 1
        first = min(since, row)
        before = self._where.left(first, row)
        routes = self._reach.routes_to(before)
        having: dict[Satellite, Route] = {}
        silent: set[Satellite] = set()
        # Twice if nobody has anything: what left one before it was asked may have come to another after that was asked
        for _ in range(2 if before else 0):
            patience_s = self._control.hurry_s(routes) if hurry else self._control.patience_s(routes)
            stats = self._control.store_stats(routes, patience_s)
            silent = {route.satellite for route in routes} - stats.keys()
            rows = 0 if playing is None else len(playing.track.rows)
            having = {route.satellite: route for route in routes if _has_left(stats.get(route.satellite), row, rows)}
            self._tell([stats[satellite] for satellite in having], row)
            if having:
                break
        if silent and not hurry:
            self._reach.look(silent)
        places = [tuple(map(having.__getitem__, found)) for found in self._where.late(first, row, having)] if having else []
        late = Late(row, tuple(having.values()), tuple(places), not silent and len(routes) == len(before))
        until_s = float("inf") if late.is_over and late.is_certain else time.monotonic() + (LOST_S if late.is_over else _AGAIN_S)
        if late.is_over and late.is_certain:
            self._settled = changes, row
        self._late = late, changes, until_s
        return late

    def _tell(self, having: list[dict[str, int]], row: int) -> None:
        """Log once a row that a handover takes longer than expected."""
        longest_s = max((one["handover_ms"] for one in having), default=0) / 1000
        expected_s = self._where.constellation.cache.handover_s
        if longest_s > expected_s and row != self._told_row:
            self._told_row = row
            chunks = sum(one["handover_left"] for one in having)
            _log.warning(
                "%d satellites have handed over for %.0f s and have %d chunks left; cache.handover_s is %g s",
                *(len(having), longest_s, chunks, expected_s),
            )


def _has_left(counters: dict[str, int] | None, row: int, rows: int) -> bool:
    """Has a satellite anything that belongs elsewhere? One that follows another schedule, or is in another row, does not know.
    Of one that does not answer (None) nobody says so."""
    if counters is None:
        return False
    knows = counters["rows"] == rows and counters["row"] == row
    return counters["handover_left"] > 0 or (not knows and counters["slots_used"] > 0)
