"""Survey of the satellites' counters: a frame has the changes since the survey before, per second.

A survey asks over the store's control plane, on which nobody waits for another. If the store is replaced meanwhile, the survey is
over, and makes no frame of the answers that are missing.
"""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from skymemory.agent.activity import OUTCOMES, Activity, Counts, Event, LastGet
from skymemory.agent.watch import window_motion
from skymemory.agent.watch.detected_events import Happenings
from skymemory.agent.watch.frame import (
    ANSWERS,
    LINK_DOWN,
    LINK_UNKNOWN,
    LINK_UP,
    NO_LINK,
    SILENT,
    UNASKED,
    Column,
    Frame,
    Shape,
    number,
    rate,
)
from skymemory.agent.watch.globe import Globe
from skymemory.agent.watch.survey_metrics import SkyTotals
from skymemory.link.control import LINK_NAMES, LinkStats
from skymemory.sky.entry_satellites import Route
from skymemory.sky.window_state import WindowState
from skymemory.store.results import StoreStatistics
from skymemory.store.sky_store import SkyStore
from skymemory.wire.address import Satellite

DEADLINE_S: Final = 1.5
"""Time after which a satellite that has not answered is silent in this frame."""
SLICE: Final = 512
"""Satellites that are asked for one frame; in a larger constellation the next ones follow with the next frame."""
_HELLOS: Final = 2
"""Packets that an end of a link sends in each `hello_s`: its own hello, and the answer to the other end's."""

Quantiles = Callable[[], tuple[float, float] | None]
"""Function that returns p50 and p99 of the gets since its last call, in seconds; None if there were none."""

_RATES: Final = (
    ("hits", "hits_per_s"),
    ("misses", "misses_per_s"),
    ("evictions", "evictions_per_s"),
    ("migrated_out", "moved_per_s"),
)
"""Pairs of a satellite's counter and the column that has its growth per second."""
_GROWN: Final = ("evictions", "degraded", "repaired")
"""Counters of satellites whose growth is added up for Prometheus."""
_AGENT: Final = (
    *("hits", "misses", "puts", "expired", "retries", "corrupt", "bytes_up", "bytes_down", "satellites_lost"),
    *("degraded", "puts_again", "wrong"),
)
"""Counts of the store that go with each frame."""
_SAVED: Final = ("tokens", "compute_s", "fetch_s")
_CLOCK_DRIFT: Final = 0.01
"""Share of a time by which a satellite's clock may be slow."""
_ROUNDING_MS: Final = 100
"""Largest error of the difference of two rounded uptimes."""
_EVENTS: Final = 100
"""Number of events that go with each frame."""
_EAST, _WEST, _NORTH, _SOUTH, _GROUND = (LINK_NAMES.index(name) for name in ("east", "west", "north", "south", "ground"))


class Survey:
    """Survey of one store's constellation. It blocks while it asks satellites, and so needs a thread of its own."""

    def __init__(
        self,
        store: SkyStore,
        latency: Quantiles = lambda: None,
        activity: Activity | None = None,
        *,
        slice_satellites: int = SLICE,
    ) -> None:
        """Ask nothing yet.

        Args:
            store: The store whose constellation is surveyed.
            latency: Latency of the store's gets.
            activity: Counts and events of the agent; new ones by default.
            slice_satellites: Most satellites that are asked for a frame.
        """
        self._slice_satellites = slice_satellites
        self._activity = Activity() if activity is None else activity
        self.constellation = store.constellation
        self.shape = Shape(self.constellation.planes, self.constellation.slots)
        self._store, self._where, self._latency = store, store.whereabouts, latency
        self._control = store.control
        self._places = list(self.constellation.torus.satellites())
        self._happenings = Happenings(self._activity.events, self._places)
        self._restarted: set[Satellite] = set()
        self._first = 0  # index of the next slice's first satellite
        self._stores: dict[Satellite, dict[str, int]] = {}
        self._links: dict[Satellite, LinkStats] = {}
        self._asked_s = np.zeros(len(self._places))
        self._state = np.full(len(self._places), UNASKED, np.uint8)
        self._rates = {column: np.zeros(len(self._places), np.float16) for _, column in _RATES}
        self._sent = np.zeros((len(self._places), len(LINK_NAMES)))
        self._dropped = np.zeros_like(self._sent)
        self._counted: tuple[StoreStatistics, Counts, float] | None = None
        self._globe = Globe(self.constellation, self._where.playing)
        self._changes = self._where.changes
        self._grown: Counter[str] = Counter()
        self._suites: frozenset[str] = frozenset()
        self._refusal = ""
        self.version = 1
        """Number that goes up when `sky` changes."""

    # ---- what changes seldom ------------------------------------------------------------------------------------------------

    def sky(self) -> dict[str, Any]:
        """Return the constellation, for JSON."""
        grid, cache = self.constellation.grid, self.constellation.cache
        store_bytes = {one["store_bytes"] for one in self._stores.values()}
        return {
            "planes": grid.planes,
            "slots": grid.slots,
            "geometry": grid.geometry,
            "seam": grid.seam,
            "altitude_km": grid.altitude_km,
            "inclination_deg": grid.inclination_deg,
            "servers": cache.servers,
            "layout": cache.layout,
            "window": cache.window,
            "uplink": cache.uplink,
            "host": cache.host,
            "chunk_bytes": cache.chunk_bytes,
            "deadline_ms": cache.deadline_ms,
            "store_bytes": max(store_bytes, default=0),
            "links": self.constellation.links.model,
            "security": self._refusal or self.constellation.security_words(sorted(self._suites)),
            "secured": bool(self.constellation.security.keyring) and not self._refusal,
            "site": self._globe.site,
        }

    def positions(self, sky_ms: int, speed: float) -> dict[str, Any] | None:
        """Return the satellites' positions at a time in the sky (`Globe.told`)."""
        return self._globe.told(sky_ms, speed)

    def now(self) -> dict[str, Any]:
        """Return facts of the newest frame only: the schedule, positions, and counts since satellites and agent began."""
        time_s = time.time()
        playing = self._where.playing
        names = ("hits", "misses", "evictions", "degraded", "repaired", "blocks", "uptime_ms", "handover_left", "handover_ms")
        count, activity = self._store.stats(), self._activity.counts()
        return {
            "schedule": window_motion.told(self._where, time_s),
            "window": self._window(time_s),
            "positions": self.positions(window_motion.sky_ms(playing, time_s), window_motion.sky_rate(playing, time_s)),
            "totals": {name: [self._stores.get(place, {}).get(name) for place in self._places] for name in names},
            "delay_us": self._delays_us(),
            "agent": {name: getattr(count, name) for name in _AGENT},
            "asked": {"blocks": activity.asked, **{name: getattr(activity, name) for name in OUTCOMES}},
            "saved": {name: number(np.float64(getattr(activity, name))) for name in _SAVED},
            "last_get": _told(self._activity.last_get, self.shape.slots),
            "events": [_event(one, self.shape.slots) for one in self._activity.events.newest()[-_EVENTS:]],
        }

    def totals(self) -> SkyTotals:
        """Return sums over the satellites that answered when they were asked last."""
        states = [int((self._state == one).sum()) for one in (ANSWERS, SILENT, UNASKED)]
        told = [self._stores[place] for place in self._places if self._answers(place)]
        names = ("chunks", "bytes", "used_bytes", "store_bytes")
        return SkyTotals(*states, *(sum(one[name] for one in told) for name in names), *(self._grown[name] for name in _GROWN))

    def _window(self, time_s: float) -> dict[str, str]:
        """Return which servers are lost and what that means. Frames have stand-ins in their places."""
        servers = self._where.servers(self._where.row(time_s))
        lost = tuple(sorted(one for one in servers if self._state[_index(one, self.shape.slots)] == SILENT))
        state = WindowState(len(servers), self.constellation.cache.parity, lost)
        return {"state": state.state, "words": state.words()}

    # ---- a frame ------------------------------------------------------------------------------------------------------------

    def take(self) -> Frame:
        """Ask satellites, and return the frame of their answers.

        Raises:
            ValueError: The survey was closed.
        """
        self._where.refresh()
        if self._where.changes != self._changes:
            self._changes = self._where.changes
            self._globe = Globe(self.constellation, self._where.playing)
            self.version += 1
        known = bool(self._stores)
        some = range(self._first, min(self._first + self._slice_satellites, len(self._places)))
        self._first = some.stop % len(self._places)
        self._ask(some)
        suites, refusal = self._control.suites(), self._control.refusal()
        self.version += bool(self._stores) != known or suites != self._suites or refusal != self._refusal
        self._suites, self._refusal = suites, refusal
        frame = Frame(self.shape)
        time_s = time.time()
        frame["time_ms"][0] = round(1000 * time_s)
        frame["state"][:] = self._state
        frame["alive"][0] = (self._state == ANSWERS).sum()
        for index, place in enumerate(self._places):
            if self._state[index] == ANSWERS:
                for name in ("chunks", "bytes", "used_bytes"):
                    frame[name][index] = min(self._stores[place][name], 2**32 - 1)
        for name, column in self._rates.items():
            frame[name][:] = column
        self._fill_links(frame)
        self._fill_agent(frame, time_s)
        lost = [place for index, place in enumerate(self._places) if self._state[index] == SILENT]
        window_motion.place(frame, self._where, time_s, lost if len(lost) < len(self._places) else ())
        self._happenings.look(frame, self._where, self._restarted, self._store.lost)
        return frame

    def _ask(self, some: range) -> None:
        routes = [Route(self._places[index], self._places[index]) for index in some]
        deadline_s = min(self._control.patience_s(routes), DEADLINE_S)
        began_s = time.monotonic()
        stores = self._control.store_stats(routes, deadline_s)
        now_s = time.monotonic()
        links = self._control.link_stats([route for route in routes if route.satellite in stores], deadline_s)
        self._restarted.clear()
        for index in some:
            place = self._places[index]
            new, old = stores.get(place), self._stores.get(place)
            new_links, old_links = links.get(place), self._links.get(place)
            self._state[index] = SILENT if new is None else ANSWERS
            # The counters of a restarted satellite begin at 0. Its uptime may be above that of its last answer
            again = old is not None and new is not None and _restarted(old, new, began_s - self._asked_s[index])
            if again:
                self._restarted.add(place)
            since_s = now_s - self._asked_s[index]
            for name, column in _RATES:
                before = 0 if again or old is None else old[name]
                self._rates[column][index] = 0 if new is None or old is None else rate(max(0, new[name] - before), since_s)
            self._sent[index], self._dropped[index] = 0, 0
            if new_links is not None and old_links is not None:
                before_links = {} if again else old_links.links
                hellos = _HELLOS * (1 + int(since_s / self.constellation.satellite.hello_s))
                for at, name in enumerate(LINK_NAMES):
                    sent, dropped = _moved(before_links.get(name), new_links.links[name])
                    spared = 0 if at == _GROUND else hellos
                    self._sent[index, at] = max(0, sent - spared) / since_s
                    self._dropped[index, at] = max(0, dropped - spared) / since_s
            if new is not None and old is not None:
                self._grown.update({name: max(0, new[name] - (0 if again else old[name])) for name in _GROWN})
            if new is not None:
                self._stores[place], self._asked_s[index] = new, now_s
            if new_links is not None:
                self._links[place] = new_links

    def _fill_links(self, frame: Frame) -> None:
        sent, dropped = _both_ends(self._sent, self.shape), _both_ends(self._dropped, self.shape)
        frame["packets_per_s"][:] = rate(sent, 1.0)
        frame["drops_per_s"][:] = rate(dropped, 1.0)
        for index, place in enumerate(self._places):
            for side, (name, back) in enumerate((("east", "west"), ("south", "north"))):
                ends = ((place, name), (self._other(index, side), back))
                told = [self._links[one].links[link] for one, link in ends if one in self._links and self._answers(one)]
                state = LINK_UNKNOWN
                if told:
                    state = LINK_UP if all(one["up"] for one in told) else LINK_DOWN
                    state = state if told[0]["plane"] else NO_LINK
                frame["link_state"][2 * index + side] = state
        all_sent, all_dropped = self._sent.sum(), self._dropped.sum()
        if all_sent + all_dropped > 0:
            frame["loss_ratio"][0] = all_dropped / (all_sent + all_dropped)

    def _fill_agent(self, frame: Frame, time_s: float) -> None:
        count, asked = self._store.stats(), self._activity.counts()
        before, self._counted = self._counted, (count, asked, time_s)
        if before is None:
            return
        old, old_asked, seconds = before[0], before[1], max(time_s - before[2], 1e-3)
        frame["asked_per_s"][0] = (asked.asked - old_asked.asked) / seconds
        frame["hit_per_s"][0] = (asked.hit - old_asked.hit) / seconds
        frame["lost_per_s"][0] = (asked.not_delivered - old_asked.not_delivered) / seconds
        chunks = count.chunks_up + count.chunks_down - old.chunks_up - old.chunks_down
        repeats = count.retries - old.retries
        if chunks + repeats > 0:
            frame["retry_ratio"][0] = repeats / (chunks + repeats)
        frame["bytes_up_per_s"][0] = (count.bytes_up - old.bytes_up) / seconds
        frame["bytes_down_per_s"][0] = (count.bytes_down - old.bytes_down) / seconds
        if (latency := self._latency()) is not None:
            frame["get_p50_s"][0], frame["get_p99_s"][0] = latency

    def _delays_us(self) -> list[int | None]:
        """Return the smallest one-way delay of each link that was measured of late, in microseconds; None if there is none."""
        found: list[int | None] = []
        for index, place in enumerate(self._places):
            for side, (name, back) in enumerate((("east", "west"), ("south", "north"))):
                ends = ((place, name), (self._other(index, side), back))
                told = [self._links[one].links[link]["delay_min_us"] for one, link in ends if one in self._links]
                found.append(next((delay for delay in told if delay), None))
        return found

    def _answers(self, place: Satellite) -> bool:
        return bool(self._state[_index(place, self.shape.slots)] == ANSWERS)

    def _other(self, index: int, side: int) -> Satellite:
        """Return the satellite at the other end of a link of satellite `index`: east for `side` 0, south for 1."""
        plane, slot = self._places[index]
        return self.constellation.torus.wrap(plane + side, slot + 1 - side)


def _told(get: LastGet | None, slots: int) -> dict[str, Any] | None:
    """Return the last get, for JSON; times are seconds after its beginning."""
    if get is None:
        return None
    steps = []
    for one, later_s in get.steps:
        asked_s, first_s, last_s = (
            None if at is None else round(later_s + at, 6) for at in (one.asked_s, one.first_s, one.last_s)
        )
        steps.append(
            {
                "satellite": _index(one.satellite, slots),
                "entry": _index(one.entry, slots),
                "asked_s": asked_s,
                "first_s": first_s,
                "last_s": last_s,
                "rtt_s": one.rtt_s,
                "chunks": one.chunks,
                "bytes": one.bytes,
                "repeats": one.repeats,
            }
        )
    told = {name: getattr(get, name) for name in ("began_ms", "blocks", "hits", "bytes")}
    return {**told, "duration_s": round(get.duration_s, 6), "steps": steps}


def _event(event: Event, slots: int) -> dict[str, Any]:
    return {
        "number": event.number,
        "time_ms": event.time_ms,
        "kind": event.kind,
        "text": event.text,
        "satellites": [_index(one, slots) for one in event.satellites],
    }


def _index(satellite: Satellite, slots: int) -> int:
    return (satellite.plane - 1) * slots + satellite.slot - 1


def _moved(old: dict[str, int] | None, new: dict[str, int]) -> tuple[int, int]:
    """Return the numbers of packets sent and dropped between two records of a link."""

    def drops(record: dict[str, int] | None) -> int:
        return sum(value for name, value in record.items() if name.startswith("drop_")) if record else 0

    return max(0, new["tx_packets"] - (old["tx_packets"] if old else 0)), max(0, drops(new) - drops(old))


def _restarted(old: dict[str, int], new: dict[str, int], between_s: float) -> bool:
    """Return whether a satellite's uptime grew by less than the time that surely passed between two answers."""
    return new["uptime_ms"] - old["uptime_ms"] < 1000 * between_s * (1 - _CLOCK_DRIFT) - _ROUNDING_MS


def _both_ends(counts: Column, shape: Shape) -> Column:
    """Return counts of each link, both directions together, from counts of each satellite's ends; shape (2 * satellites,)."""
    grid = counts.reshape(shape.planes, shape.slots, len(LINK_NAMES))
    east = grid[:, :, _EAST] + np.roll(grid[:, :, _WEST], -1, axis=1)
    south = grid[:, :, _SOUTH] + np.roll(grid[:, :, _NORTH], -1, axis=0)
    both: Column = np.stack([east, south], axis=-1).ravel()
    return both
