"""Which satellites answer, and so the ways to the servers' places: around those that do not, and none while nobody does.

The core decides who counts as lost, when a lost satellite is asked again, and when nothing is asked at all (`sky_reach.h`). This
module sends the questions, and knows who is in sight, over which satellite another one is reached, and the time.
"""

import ctypes
import logging
import time
from collections.abc import Collection, Iterable, Sequence
from itertools import count
from threading import Lock
from typing import Final, NamedTuple

from skymemory import defaults
from skymemory.link.control import ControlPlane
from skymemory.placement import structures, window
from skymemory.placement.core import core_torus, from_core, library
from skymemory.placement.places import NOBODY, LateSatellites
from skymemory.placement.structures import ReachFound, ReachMay
from skymemory.placement.torus import Satellite
from skymemory.placement.whereabouts import Whereabouts
from skymemory.placement.window import Route

_log = logging.getLogger(__name__)

LOST_S: Final = defaults.HOST_LOST_US / 1e6
"""how long a satellite that did not answer is left out before it is asked again"""
DOUBT_S: Final = defaults.HOST_DOUBT_US / 1e6
"""the same, when a stand-in did not have what it stands in for"""
_BACK_S: Final = defaults.HOST_PROBE_US / 1e6
"""how long the question whether a lost satellite is back waits for its answer: more than the way round the sky takes"""
PAUSE_FIRST_S: Final = defaults.HOST_PAUSE_FIRST_US / 1e6
"""how long nothing is asked after nobody answered; doubles each time"""
PAUSE_MAX_S: Final = defaults.HOST_PAUSE_MAX_US / 1e6


class Ways(NamedTuple):
    """Where a block's shares may be."""

    places: tuple[tuple[Route, ...], ...]
    """of each server, in the order in which they are asked; of one that moves the old and the new place"""
    replaced: frozenset[int]
    """servers that have a place only because another satellite is lost"""
    rows: frozenset[int]
    """of the schedule, to which the places belong"""


class _Kept(NamedTuple):
    """Routes that were found."""

    what: tuple[frozenset[Satellite], int, int] | None
    """around these lost satellites, in this row of this schedule"""
    routes: dict[int, list[Route]]
    """by row: to the servers"""
    ways: dict[tuple[int, ...], Ways | None]
    """by the rows whose places are asked"""


class Reach:
    """The ways from this host to the servers of a constellation. Thread-safe."""

    def __init__(self, where: Whereabouts, control: ControlPlane) -> None:
        self._where = where
        self._control = control
        torus = where.constellation.torus
        satellites = torus.planes * torus.slots
        self._known = (structures.ReachSatellite * satellites)()  # the core's memory, as the next one
        self._listed = (structures.Addr * satellites)()
        self._core, self._state = library(), structures.Reach()
        self._at = ctypes.byref(self._state)
        times = structures.ReachCfg(*(round(1e6 * one) for one in (LOST_S, DOUBT_S, PAUSE_FIRST_S, PAUSE_MAX_S)))
        self._core.SKY_Reach_Init(self._at, ctypes.byref(times), ctypes.byref(core_torus(torus)), self._known, self._listed)
        self._lost: frozenset[Satellite] = frozenset()  # as the core has it
        self._kept = _Kept(None, {}, {})
        self._lock = Lock()  # of the core's state

    @property
    def silent(self) -> bool:
        """True from when no satellite answered until one does."""
        return bool(self._state.pause_us)

    @property
    def lost(self) -> frozenset[Satellite]:
        """Satellites that do not answer while others do."""
        return self._lost

    @property
    def losses(self) -> int:
        """Times that a satellite was found not to answer."""
        return self._state.losses

    def routes(self) -> list[Route]:
        """Routes to servers 0 to n - 1 now, around lost satellites.

        Returns:
            An empty list when no satellite is in sight, or while none answers (`silent`).
        """
        return self._routes() if self._is_open() else []

    def routes_in(self, row: int) -> list[Route]:
        """Routes, as they are now, to where servers 0 to n - 1 are in a row of the schedule; empty as `routes`."""
        return self._routes(row) if self._is_open() else []

    def ways(self, epoch: int = 0, late: LateSatellites = NOBODY) -> Ways | None:
        """Where the shares of a block may be now, around lost satellites; None when `routes` has none.

        Args:
            epoch: `BlockEntry.epoch`.
            late: satellites that are asked before the others.
        """
        if not self._is_open():
            return None
        now_s, lost = time.time(), self._lost
        if late.satellites or self._where.constellation.cache.window == "physical":
            return self._find_ways(now_s, epoch, lost, late)
        kept = self._kept_for(lost, now_s).ways
        rows = self._where.rows(now_s, epoch)
        if rows not in kept:
            kept[rows] = self._find_ways(now_s, epoch, lost)
        return kept[rows]

    def lookup_routes(self) -> list[Route]:
        """Whom to ask for a block, in this order (`window.lookup_routes`); while it may move, at its old place and at the new."""
        if not self._is_open():
            return []
        now_s = time.time()
        rows = self._where.rows(now_s)
        if not self._where.is_moving(now_s):
            rows = rows[:1]
        found: list[Route] = []
        asked: list[Route] = []
        for row in rows:
            before, asked = asked, window.lookup_routes(self._where, row, self._routes(row, now_s))
            found += [route for route in asked if route not in before]
        return found

    def all_routes(self, epochs: Iterable[int]) -> list[Route]:
        """Routes to every place that a share of blocks of these epochs may have now."""
        ways = [self.ways(epoch) for epoch in set(epochs) | {0}]
        return list(dict.fromkeys(route for one in ways if one is not None for place in one.places for route in place))

    def has_moved(self, ways: Ways, epoch: int) -> bool:
        """Has the window moved on since, so that a share may be at a place that was not asked?"""
        return not ways.rows.issuperset(self._where.rows(time.time(), epoch))

    def rows(self, epoch: int = 0) -> tuple[int, ...]:
        """The rows of the schedule whose places are asked for a block now."""
        return self._where.rows(time.time(), epoch)

    def row(self) -> int:
        """The row that holds now; 0 without a schedule."""
        return self._where.row(time.time())

    def look(self, asked: Collection[Satellite] = ()) -> None:
        """After an answer that did not come: find out which satellites do not answer at all. Then `routes` leads around them.

        Args:
            asked: satellites that were asked, if they are not the servers of now.
        """
        if not self.silent:
            self._look(asked)

    def doubt(self) -> None:
        """After a stand-in did not have its share: is the lost satellite back? Then others put blocks there again."""
        self._ask_lost(doubted=True)

    def probe(self, control: ControlPlane) -> dict[Satellite, float]:
        """Ask the servers, the ways in and a few others whether they are there; an answer ends the silence.

        Args:
            control: whose socket asks.

        Returns:
            Round trip times in seconds of those that answer.
        """
        routes = self._around(self._routes())
        answered = control.ping(routes, control.patience_s(routes))
        self._hear(answered)
        return answered

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _is_open(self) -> bool:
        """False while no satellite answers."""
        with self._lock:
            may = self._core.SKY_Reach_May(self._at, _now_us())
        if may == ReachMay.SILENT or (may == ReachMay.LOOK and not self._look()):
            return False
        self._ask_lost(doubted=False)
        return True

    def _routes(self, row: int | None = None, now_s: float | None = None) -> list[Route]:
        now_s = time.time() if now_s is None else now_s
        now = self._where.row(now_s)
        row = now if row is None else row
        lost = self._lost
        if self._where.constellation.cache.window == "physical":
            return window.server_routes(self._where, now_s, lost, row)
        placed = self._kept_for(lost, now_s).routes
        if row not in placed:
            placed[row] = window.server_routes(self._where, now_s, lost, row)
        return placed[row]

    def _kept_for(self, lost: frozenset[Satellite], now_s: float) -> "_Kept":
        """What is kept of a logical window: nothing else than this changes it."""
        what = lost, self._where.row(now_s), self._where.changes
        kept = self._kept
        if kept.what != what:  # another thread's may be around other satellites
            kept = self._kept = _Kept(what, {}, {})
        return kept

    def _find_ways(self, now_s: float, epoch: int, lost: frozenset[Satellite], late: LateSatellites = NOBODY) -> Ways | None:
        shares = self._where.shares(now_s, epoch, lost, late)
        entry_points = window.entries(self._where, now_s, lost)
        satellites = dict.fromkeys(satellite for place in shares.places for satellite in place)
        routes = {one: found for one in satellites if (found := window.route(self._where, one, entry_points)) is not None}
        if len(routes) < len(satellites):  # nobody is in sight
            return None
        places = tuple(tuple(map(routes.__getitem__, place)) for place in shares.places)
        return Ways(places, shares.replaced, frozenset(shares.rows))

    def _look(self, asked: Collection[Satellite] = ()) -> bool:
        """Ask the servers, and others, until all who then have a server's place answer. False: nobody answers.

        Whoever looks at the same sky finds the same satellites in the same places, and so what another host has put there.
        """
        for number in count(1):
            routes = self._routes()
            if not routes:
                return False
            routes = list(dict.fromkeys([*routes, *self.routes_to(asked)]))
            around = self._around(routes)
            alive = self._control.ping(around, self._control.patience_s(around))
            found = self._found(number, len(routes), around, alive)
            if found != ReachFound.AGAIN:
                break
        return found == ReachFound.FOUND

    def routes_to(self, satellites: Collection[Satellite]) -> list[Route]:
        """Routes to satellites, in their order, but for those that are lost or cannot be reached."""
        lost = self._lost
        entry_points = window.entries(self._where, time.time(), lost)
        found = (window.route(self._where, one, entry_points) for one in satellites if one not in lost)
        return [route for route in found if route is not None]

    def _around(self, routes: Sequence[Route]) -> list[Route]:
        """Whom a look asks that is about these: them, the ways in, and a few others for comparison."""
        others = window.others(self._where, time.time(), self._lost | {one for route in routes for one in route})
        asks = _asks(routes, room=2 * len(routes) + defaults.HOST_OTHERS)
        with self._lock:
            number = self._core.SKY_Reach_Around(self._at, asks, len(routes), _asks(others), len(others))
        return [Route(*from_core((structures.Addr * 2).from_buffer(one))) for one in asks[:number]]

    def _found(self, number: int, about: int, around: Sequence[Route], alive: Collection[Satellite]) -> int:
        """Tell the core who answered in a round of a look, and log what follows. Return a `ReachFound`."""
        asks = _asks(around, alive)
        with self._lock:
            lost, was_silent = self._lost, self.silent
            found: int = self._core.SKY_Reach_Found(self._at, _now_us(), number, asks, about, len(around))
            self._note_lost()
            new = self._lost - lost
        if found == ReachFound.NOBODY:
            self._control.new_host()  # another host may have this one's number, and get its answers
            if not was_silent:
                pause_s = self._state.pause_us / 1e6
                _log.warning("no satellite answers: all is a miss until one does; asked again in %g s and later", pause_s)
        elif was_silent:
            _log.warning("satellites answer again")
        if new:
            names = ", ".join(map(str, sorted(new)))
            _log.warning("no answer from %s: others stand in; asked again in %g s", names, LOST_S)
        return found

    def _hear(self, satellites: Collection[Satellite]) -> None:
        """Satellites have answered."""
        if not satellites:
            return
        with self._lock:
            was_silent = self.silent
            for one in satellites:
                self._core.SKY_Reach_Heard(self._at, structures.Addr(*one))
            self._note_lost()
        if was_silent:
            _log.warning("satellites answer again")

    def _note_lost(self) -> None:
        self._lost = frozenset(from_core((structures.Addr * self._state.lost_count).from_buffer(self._listed)))

    def _ask_lost(self, *, doubted: bool) -> None:
        """Ask satellites that were lost, and not asked for a while, whether they are back."""
        if not self._lost:
            return
        with self._lock:
            found = (structures.Addr * self._state.lost_count)()
            number = self._core.SKY_Reach_AskLost(self._at, _now_us(), doubted, found)
        if number:
            # Whoever is back answers within the way there and back; most often nobody is, and somebody waits for us here
            self._hear(self._control.ping(self._ways_back(from_core(found)[:number]), _BACK_S))

    def _ways_back(self, satellites: Sequence[Satellite]) -> list[Route]:
        """To lost satellites: straight to those that would be ways in, to the others over ways in that are there."""
        lost = self.lost
        now_s = time.time()
        ways, ways_left = (window.entries(self._where, now_s, left_out) for left_out in ((), lost))
        direct = [Route(one, one) for one in satellites if ways is None or one in ways]
        behind = (window.route(self._where, one, ways_left) for one in satellites if ways is not None and one not in ways)
        return direct + [found for found in behind if found is not None]


def _now_us() -> int:
    """Time of the core's clock."""
    return round(1e6 * time.monotonic())


def _asks(routes: Sequence[Route], alive: Collection[Satellite] = (), room: int = 0) -> "ctypes.Array[structures.ReachAsk]":
    """Questions to satellites as the core has them, and room for so many."""
    asks = (structures.ReachAsk * max(room, len(routes)))()
    for ask, (satellite, entry) in zip(asks, routes, strict=False):
        ask.satellite, ask.entry, ask.answered = structures.Addr(*satellite), structures.Addr(*entry), satellite in alive
    return asks
