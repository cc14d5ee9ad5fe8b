"""Routes to the servers' places around lost satellites; there are none while no satellite answers.

The core decides which satellites count as lost, when a lost satellite is asked again, and when nothing is asked at all
(`sky_reach.h`). This module sends the questions, and knows which satellites are in sight, the entry satellite of each route, and
the time.
"""

import ctypes
import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import count
from threading import Lock
from typing import NamedTuple

from skymemory.common import defaults
from skymemory.link.control import ControlPlane
from skymemory.sky import entry_satellites
from skymemory.sky.entry_satellites import Route
from skymemory.sky.placement import structures
from skymemory.sky.placement.core_library import core_torus, from_core, library
from skymemory.sky.placement.places import NOBODY, LateSatellites
from skymemory.sky.placement.spread import offset_of_key
from skymemory.sky.placement.structures import ReachFound, ReachMay
from skymemory.sky.whereabouts import Whereabouts
from skymemory.wire.address import Satellite

_log = logging.getLogger(__name__)


class Ways(NamedTuple):
    """Places where a block's shares may be, as routes."""

    places: tuple[tuple[Route, ...], ...]
    """Routes to each server's places, in the order in which they are asked. A server that moves has its old and its new place.
    `spread.by_share` tells which share of a block is there."""
    homes: Mapping[int, Satellite]
    """Lost satellites that have a stand-in, by server."""
    rows: frozenset[int]
    """Rows of the schedule to which the places belong."""


class _Kept(NamedTuple):
    """Routes that are kept because they hold until the window, the schedule or the lost satellites change."""

    what: tuple[frozenset[Satellite], int, int] | None
    """The lost satellites, the row, and the number of the schedule for which the routes hold."""
    routes: dict[int, list[Route]]
    """Routes to the servers in each row."""
    ways: dict[tuple[int, ...], Ways | None]
    """The ways for each combination of rows whose places are asked."""


class Routes:
    """Routes from this host to the servers of a constellation. Thread-safe."""

    def __init__(self, where: Whereabouts, control: ControlPlane) -> None:
        self._where = where
        self._control = control
        torus = where.constellation.torus
        satellites = torus.planes * torus.slots
        self._known = (structures.ReachSatellite * satellites)()  # the core uses this array and the next one
        self._listed = (structures.Addr * satellites)()
        self._core, self._state = library(), structures.Reach()
        self._at = ctypes.byref(self._state)
        self._timing = control.timing
        times_s = self._timing.lost_s, self._timing.doubt_s, self._timing.pause_first_s, self._timing.pause_max_s
        times = structures.ReachCfg(*(round(1e6 * one) for one in times_s))
        self._core.SKY_Reach_Init(self._at, ctypes.byref(times), ctypes.byref(core_torus(torus)), self._known, self._listed)
        self._lost: frozenset[Satellite] = frozenset()  # a copy of the core's list
        self._kept = _Kept(None, {}, {})
        self._lock = Lock()  # guards the core's state

    @property
    def silent(self) -> bool:
        """True after no satellite has answered, until one does."""
        return bool(self._state.pause_us)

    @property
    def lost(self) -> frozenset[Satellite]:
        """Satellites that do not answer while others do."""
        return self._lost

    @property
    def losses(self) -> int:
        """Number of times that a satellite was found lost."""
        return self._state.losses

    def to_servers(self, row: int | None = None) -> list[Route]:
        """Return current routes to servers 0 to n - 1, around lost satellites.

        The list is empty if no satellite is in sight, or while none answers (`silent`).

        Args:
            row: The row of the schedule whose places count; None for the current one.
        """
        return self._routes(row) if self._is_open() else []

    def to_put(self) -> tuple[list[Route], dict[int, Satellite]]:
        """Return current routes to servers 0 to n - 1, as `to_servers`, and by server the lost satellites with a stand-in."""
        if not self._is_open():
            return [], {}
        row = self.row()
        routes = self._routes(row)
        if not self.losses:
            return routes, {}
        homes = enumerate(zip(routes, self._where.servers(row), strict=False))
        return routes, {server: home for server, (route, home) in homes if route.satellite != home}

    def ways(self, epoch: int = 0, late: LateSatellites = NOBODY) -> Ways | None:
        """Return the ways to all places that shares of a block may have now, around lost satellites.

        Args:
            epoch: `BlockEntry.epoch`.
            late: Late satellites, whose places are asked first.

        Returns:
            The ways, or None if no satellite is in sight, or while none answers.
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

    def lookup_routes(self, keys: Sequence[bytes]) -> list[list[Route]]:
        """Return for each block the routes to the satellites that a lookup by its key asks, in order.

        `entry_satellites.lookup_routes` says which. While servers move, satellites are asked at the old places first and then
        at the new ones. The lists are empty if no satellite is in sight, or while none answers.
        """
        if not self._is_open():
            return [[] for _ in keys]
        now_s, servers = time.time(), self._where.constellation.cache.servers
        rows = self._where.rows(now_s)
        if not self._where.is_moving(now_s):
            rows = rows[:1]
        in_rows = [self._routes(row, now_s) for row in rows]
        offsets = [offset_of_key(key, servers) for key in keys]
        found = {offset: self._asked(in_rows, offset) for offset in set(offsets)}
        return [found[offset] for offset in offsets]

    def all_routes(self, epochs: Iterable[int]) -> list[Route]:
        """Return routes to every place that shares of blocks of these epochs may have now."""
        ways = [self.ways(epoch) for epoch in set(epochs) | {0}]
        return list(dict.fromkeys(route for one in ways if one is not None for place in one.places for route in place))

    def homes(self, epochs: Iterable[int]) -> list[frozenset[Satellite] | None]:
        """Return for each server the satellites that may have its shares of blocks of these epochs; None if a lost one may."""
        ways = [one for epoch in set(epochs) | {0} if (one := self.ways(epoch)) is not None]
        replaced = {server for one in ways for server in one.homes}
        return [
            None if server in replaced else frozenset(route.satellite for one in ways for route in one.places[server])
            for server in range(min((len(one.places) for one in ways), default=0))
        ]

    def has_moved(self, ways: Ways, epoch: int) -> bool:
        """Return True if the window has moved since these ways were found, so that a share may have a place outside of them."""
        return not ways.rows.issuperset(self._where.rows(time.time(), epoch))

    def rows(self, epoch: int = 0) -> tuple[int, ...]:
        """Return the rows of the schedule whose places are asked for a block now."""
        return self._where.rows(time.time(), epoch)

    def row(self) -> int:
        """Return the current row of the schedule; 0 without a schedule."""
        return self._where.row(time.time())

    def look(self, asked: Collection[Satellite] = ()) -> None:
        """Find out which satellites are lost, after an answer that did not come. `to_servers` then leads around them.

        Args:
            asked: The satellites that were asked, if they are not the current servers.
        """
        if not self.silent:
            self._look(asked)

    def doubt(self) -> None:
        """Find out if a lost satellite is back, after its stand-in did not have a share. Other hosts then use it again."""
        self._ask_lost(doubted=True)

    def probe(self, control: ControlPlane) -> dict[Satellite, float]:
        """Ping the servers, the entry satellites and a few others. An answer ends the silence.

        Args:
            control: The control plane whose socket is used.

        Returns:
            Round trip times, in seconds, of the satellites that answered.
        """
        routes = self._around(self._routes())
        answered = control.ping(routes, control.patience_s(routes))
        self._hear(answered)
        return answered

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _is_open(self) -> bool:
        """Return False while no satellite answers. Ask lost satellites again when it is time."""
        with self._lock:
            may = self._core.SKY_Reach_May(self._at, self._timing.now_us())
        if may == ReachMay.SILENT or (may == ReachMay.LOOK and not self._look(())):
            return False
        self._ask_lost(doubted=False)
        return True

    def _routes(self, row: int | None = None, now_s: float | None = None) -> list[Route]:
        now_s = time.time() if now_s is None else now_s
        now = self._where.row(now_s)
        row = now if row is None else row
        lost = self._lost
        if self._where.constellation.cache.window == "physical":
            return entry_satellites.server_routes(self._where, now_s, lost, row)
        placed = self._kept_for(lost, now_s).routes
        if row not in placed:
            placed[row] = entry_satellites.server_routes(self._where, now_s, lost, row)
        return placed[row]

    def _kept_for(self, lost: frozenset[Satellite], now_s: float) -> "_Kept":
        """Return the routes that are kept for a logical window. After a change none are left."""
        what = lost, self._where.row(now_s), self._where.changes
        kept = self._kept
        if kept.what != what:  # another thread may have seen other satellites as lost
            kept = self._kept = _Kept(what, {}, {})
        return kept

    def _asked(self, in_rows: Sequence[list[Route]], offset: int) -> list[Route]:
        """Return the routes that a lookup asks for blocks of an offset, row by row."""
        found: list[Route] = []
        asked: list[Route] = []
        for routes in in_rows:
            before, asked = asked, entry_satellites.lookup_routes(self._where, routes, offset)
            found += [route for route in asked if route not in before]
        return found

    def _find_ways(self, now_s: float, epoch: int, lost: frozenset[Satellite], late: LateSatellites = NOBODY) -> Ways | None:
        shares = self._where.shares(now_s, epoch, lost, late)
        entry_points = entry_satellites.entries(self._where, now_s, lost)
        satellites = dict.fromkeys(satellite for place in shares.places for satellite in place)
        routes = {
            one: found for one in satellites if (found := entry_satellites.route(self._where, one, entry_points)) is not None
        }
        if len(routes) < len(satellites):  # no satellite is in sight
            return None
        places = tuple(tuple(map(routes.__getitem__, place)) for place in shares.places)
        return Ways(places, shares.homes, frozenset(shares.rows))

    def _look(self, asked: Collection[Satellite]) -> bool:
        """Ping the servers and others, with stand-ins for lost ones, until all servers answer. Return False if nobody answers.

        Hosts that see the same losses choose the same stand-ins, and so each finds the blocks that the others put there.
        """
        for number in count(1):
            routes = self._routes()
            if not routes:
                return False
            routes = list(dict.fromkeys([*routes, *self.to(asked)]))
            around = self._around(routes)
            alive = self._control.ping(around, self._control.patience_s(around))
            found = self._found(number, len(routes), around, alive)
            if found != ReachFound.AGAIN:
                break
        return found == ReachFound.FOUND

    def to(self, satellites: Collection[Satellite]) -> list[Route]:
        """Return routes to satellites, in order, without those that are lost or cannot be reached."""
        lost = self._lost
        entry_points = entry_satellites.entries(self._where, time.time(), lost)
        found = (entry_satellites.route(self._where, one, entry_points) for one in satellites if one not in lost)
        return [route for route in found if route is not None]

    def _around(self, routes: Sequence[Route]) -> list[Route]:
        """Return the routes that a look pings: these, those to the entry satellites, and a few others for comparison."""
        others = entry_satellites.others(self._where, time.time(), self._lost | {one for route in routes for one in route})
        asks = _asks(routes, room=2 * len(routes) + defaults.HOST_OTHERS)
        with self._lock:
            number = self._core.SKY_Reach_Around(self._at, asks, len(routes), _asks(others), len(others))
        return [Route(*from_core((structures.Addr * 2).from_buffer(one))) for one in asks[:number]]

    def _found(self, number: int, about: int, around: Sequence[Route], alive: Collection[Satellite]) -> int:
        """Tell the core which satellites answered in a round of a look, and log losses. Return a `ReachFound`."""
        asks = _asks(around, alive)
        with self._lock:
            lost, was_silent = self._lost, self.silent
            found: int = self._core.SKY_Reach_Found(self._at, self._timing.now_us(), number, asks, about, len(around))
            self._note_lost()
            new = self._lost - lost
        if found == ReachFound.NOBODY:
            self._control.new_host()  # another host may have this number, and get the answers
            if not was_silent:
                pause_s = self._state.pause_us / 1e6
                why = self._control.refusal() or "no satellite answers"
                _log.warning("%s: every block is a miss until one does; the host asks again in %g s", why, pause_s)
        elif was_silent:
            _log.warning("satellites answer again")
        if new:
            names = ", ".join(map(str, sorted(new)))
            _log.warning("%s: no answer, so other satellites stand in; the host asks again in %g s", names, self._timing.lost_s)
        return found

    def _hear(self, satellites: Collection[Satellite]) -> None:
        """Tell the core that satellites have answered."""
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
        """Ask lost satellites if they are back, once enough time has passed since the last question."""
        if not self._lost:
            return
        with self._lock:
            found = (structures.Addr * self._state.lost_count)()
            number = self._core.SKY_Reach_AskLost(self._at, self._timing.now_us(), doubted, found)
        if number:
            ways = self._ways_back(from_core(found)[:number])
            # The wait is short, because a caller waits for it and mostly no satellite is back; but not shorter than a round trip.
            self._hear(self._control.ping(ways, max(self._timing.back_s, self._control.hurry_s(ways))))

    def _ways_back(self, satellites: Sequence[Satellite]) -> list[Route]:
        """Return routes to lost satellites: direct ones to entry satellites, and over answering entry satellites to others."""
        lost = self.lost
        now_s = time.time()
        ways, ways_left = (entry_satellites.entries(self._where, now_s, left_out) for left_out in ((), lost))
        direct = [Route(one, one) for one in satellites if ways is None or one in ways]
        behind = (
            entry_satellites.route(self._where, one, ways_left) for one in satellites if ways is not None and one not in ways
        )
        return direct + [found for found in behind if found is not None]


def _asks(routes: Sequence[Route], alive: Collection[Satellite] = (), room: int = 0) -> "ctypes.Array[structures.ReachAsk]":
    """Return the questions to satellites in the core's form, in an array with room for at least `room` of them."""
    asks = (structures.ReachAsk * max(room, len(routes)))()
    for ask, (satellite, entry) in zip(asks, routes, strict=False):
        ask.satellite, ask.entry, ask.answered = structures.Addr(*satellite), structures.Addr(*entry), satellite in alive
    return asks
