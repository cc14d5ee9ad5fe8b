"""Which satellites answer, and so the ways to the servers' places: around those that do not, and none while nobody does.

Silence is judged by comparison. A satellite counts as lost only when another one answers at the same time; when nobody
answers, it is this host that is cut off, or the whole sky is gone. Then nothing is asked for a while, so that whoever
waits for a cache does not wait for each prompt anew, and the next caller after that asks whether somebody is back.
"""

import logging
import time
from collections.abc import Collection, Iterable, Sequence
from threading import Lock
from typing import Final, NamedTuple

from skymemory.link.control import ControlPlane
from skymemory.placement import window
from skymemory.placement.torus import Satellite
from skymemory.placement.whereabouts import Whereabouts
from skymemory.placement.window import Route

_log = logging.getLogger(__name__)

LOST_S: Final = 30.0
"""how long a satellite that did not answer is left out before it is asked again"""
DOUBT_S: Final = 5.0
"""the same, when a stand-in did not have what it stands in for"""
_BACK_S: Final = 0.25
"""how long the question whether a lost satellite is back waits for its answer: more than the way round the sky takes"""
PAUSE_FIRST_S: Final = 1.0
"""how long nothing is asked after nobody answered; doubles each time"""
PAUSE_MAX_S: Final = 64.0
_ROUNDS_MAX: Final = 8
"""steps of a look around: each finds more satellites lost, and others in their places"""


class Ways(NamedTuple):
    """Where a block's shares may be."""

    places: tuple[tuple[Route, ...], ...]
    """of each server, in the order in which they are asked; of one that moves the old and the new place"""
    replaced: frozenset[int]
    """servers that have a place only because another satellite is lost"""
    rows: frozenset[int]
    """of the schedule, to which the places belong"""


class Reach:
    """The ways from this host to the servers of a constellation. Thread-safe."""

    def __init__(self, where: Whereabouts, control: ControlPlane) -> None:
        self._where = where
        self._control = control
        self._lost: dict[Satellite, float] = {}  # when it was asked last
        self._doubts: dict[Satellite, int] = {}  # how often it was asked in vain whether it is back
        self._placed: tuple[tuple[frozenset[Satellite], int, int] | None, dict[int, list[Route]]] = None, {}
        self._pause_s = 0.0
        self._ask_again_s = 0.0
        self._lock = Lock()
        self.losses = 0
        """times that a satellite was found not to answer"""

    @property
    def silent(self) -> bool:
        """True from when no satellite answered until one does."""
        return self._pause_s > 0

    @property
    def lost(self) -> frozenset[Satellite]:
        """Satellites that do not answer while others do."""
        with self._lock:
            return frozenset(self._lost)

    def routes(self) -> list[Route]:
        """Routes to servers 0 to n - 1 now, around lost satellites.

        Returns:
            An empty list when no satellite is in sight, or while none answers (`silent`).
        """
        return self._routes() if self._is_open() else []

    def routes_in(self, row: int) -> list[Route]:
        """Routes, as they are now, to where servers 0 to n - 1 are in a row of the schedule; empty as `routes`."""
        return self._routes(row) if self._is_open() else []

    def ways(self, epoch: int = 0) -> Ways | None:
        """Where the shares of a block may be now, around lost satellites; None when `routes` has none.

        Args:
            epoch: `BlockEntry.epoch`.
        """
        if not self._is_open():
            return None
        now_s = time.time()
        rows = self._where.rows(now_s, epoch)
        routes = [self._routes(row, now_s) for row in rows]
        if not all(routes):
            return None
        placed = [self._where.servers(row) for row in rows]
        places, replaced = [], set()
        for server, one in enumerate(zip(*routes, strict=True)):
            places.append(tuple(route for at, route in enumerate(one) if at == 0 or route != one[at - 1]))
            if any(route.satellite != where[server] for route, where in zip(one, placed, strict=True)):
                replaced.add(server)
        return Ways(tuple(places), frozenset(replaced), frozenset(rows))

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
        if answered:
            self._wake()
        return answered

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _is_open(self) -> bool:
        """False while no satellite answers."""
        if self.silent and not (self._is_my_turn() and self._look()):
            return False
        self._ask_lost(doubted=False)
        return True

    def _routes(self, row: int | None = None, now_s: float | None = None) -> list[Route]:
        now_s = time.time() if now_s is None else now_s
        now = self._where.row(now_s)
        row = now if row is None else row
        with self._lock:
            lost = frozenset(self._lost)
        if self._where.constellation.cache.window == "physical":
            return window.server_routes(self._where, now_s, lost, row)
        what = lost, now, self._where.changes  # nothing else changes a logical window
        known, placed = self._placed
        if known != what:  # another thread's routes may be around other satellites
            placed = {}
            self._placed = what, placed
        if row not in placed:
            placed[row] = window.server_routes(self._where, now_s, lost, row)
        return placed[row]

    def _look(self, asked: Collection[Satellite] = ()) -> bool:
        """Ask the servers, and others, until all who then have a server's place answer. False: nobody answers.

        Whoever looks at the same sky finds the same satellites in the same places, and so what another host has put there.
        """
        for _ in range(_ROUNDS_MAX):
            routes = self._routes()
            if not routes:
                return False
            routes = list(dict.fromkeys([*routes, *self.routes_to(asked)]))
            alive = self._ping(self._around(routes))
            if not alive:
                self._fall_silent()
                return False
            self._wake()
            # Of the satellites behind a way in that is silent nothing is known
            silent = {route.entry for route in routes} - alive or {route.satellite for route in routes} - alive
            if not self._lose(silent):
                break
        return True

    def routes_to(self, satellites: Collection[Satellite]) -> list[Route]:
        """Routes to satellites, in their order, but for those that are lost or cannot be reached."""
        now_s = time.time()
        with self._lock:
            lost = frozenset(self._lost)
        entry_points = window.entries(self._where, now_s, lost)
        found = (window.route(self._where, one, entry_points) for one in satellites if one not in lost)
        return [route for route in found if route is not None]

    def _around(self, routes: Sequence[Route]) -> list[Route]:
        """Whom to ask: the servers, the ways in, and a few others for comparison."""
        asked = dict.fromkeys([*routes, *(Route(route.entry, route.entry) for route in routes)])
        with self._lock:
            known = self._lost.keys() | {route.satellite for route in asked}
        return [*asked, *window.others(self._where, time.time(), known)]

    def _ping(self, routes: Sequence[Route]) -> set[Satellite]:
        return set(self._control.ping(routes, self._control.patience_s(routes)))

    def _is_my_turn(self) -> bool:
        """True for one caller when the pause is over; the others go on without the sky meanwhile."""
        with self._lock:
            now_s = time.monotonic()
            mine = now_s >= self._ask_again_s
            if mine:
                self._ask_again_s = now_s + self._pause_s
            return mine

    def _fall_silent(self) -> None:
        with self._lock:
            first = self._pause_s == 0
            self._pause_s = PAUSE_FIRST_S if first else min(2 * self._pause_s, PAUSE_MAX_S)
            self._ask_again_s = time.monotonic() + self._pause_s
        self._control.new_host()  # another host may have this one's number, and get its answers
        if first:
            _log.warning("no satellite answers: all is a miss until one does; asked again in %g s and later", self._pause_s)

    def _wake(self) -> None:
        with self._lock:
            was_silent, self._pause_s = self.silent, 0.0
        if was_silent:
            _log.warning("satellites answer again")

    def _lose(self, satellites: set[Satellite]) -> bool:
        """Leave satellites out of the layout. Return False if all of them are left out already."""
        now_s = time.monotonic()
        with self._lock:
            new = sorted(satellites - self._lost.keys())
            self._lost |= dict.fromkeys(satellites, now_s)
            self.losses += len(new)
        if new:
            names = ", ".join(map(str, new))
            _log.warning("no answer from %s: others stand in; asked again in %g s", names, LOST_S)
        return bool(new)

    def _ask_lost(self, *, doubted: bool) -> None:
        """Ask satellites that were lost, and not asked for a while, whether they are back."""
        now_s = time.monotonic()
        with self._lock:
            again = [satellite for satellite, asked_s in self._lost.items() if now_s - asked_s >= self._pause(satellite, doubted)]
            self._lost |= dict.fromkeys(again, now_s)  # other threads do not wait for this one's question
            if doubted:
                self._doubts |= {satellite: self._doubts.get(satellite, 0) + 1 for satellite in again}
        if not again:
            return
        # Whoever is back answers within the way there and back; most often nobody is, and somebody waits for us here
        alive = set(self._control.ping(self._ways_back(again), _BACK_S))
        with self._lock:
            for satellite in alive:
                self._lost.pop(satellite, None)
                self._doubts.pop(satellite, None)

    def _pause(self, satellite: Satellite, doubted: bool) -> float:
        return min(DOUBT_S * 2.0 ** self._doubts.get(satellite, 0), LOST_S) if doubted else LOST_S

    def _ways_back(self, satellites: Sequence[Satellite]) -> list[Route]:
        """To lost satellites: straight to those that would be ways in, to the others over ways in that are there."""
        lost = self.lost
        now_s = time.time()
        ways, ways_left = (window.entries(self._where, now_s, left_out) for left_out in ((), lost))
        direct = [Route(one, one) for one in satellites if ways is None or one in ways]
        behind = (window.route(self._where, one, ways_left) for one in satellites if ways is not None and one not in ways)
        return direct + [found for found in behind if found is not None]
