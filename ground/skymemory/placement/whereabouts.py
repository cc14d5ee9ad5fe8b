"""Where the servers are at a moment, and in which order their places are asked while the sky turns.

Without a schedule the layout lies around `cache.centre` for ever. With one the window's centre follows its track, row by row, and
what falls out of the window goes, satellite by satellite, to what comes in; that takes a while. A chunk only moves forward in
time, so whoever asks the places of its server in the order of time finds it, however far the move has come:

    soon after a row's time   old, new       a tenth of a handover, at most half the row: the chunk may not have moved yet
    later                     new, old, new  it should have; if not, the old place is asked, and the new one once more, in case it
                                             moved between the two questions
    before the next row       and the next   for a moment: somebody's clock may be fast

A handover may take `cache.handover_s`. Where rows are shorter than that several may be under way, and more than one old place is
asked, the oldest first.

A block that was laid for a row to come (`BlockEntry.epoch`, see `SkyStore.prefetch`) waits there, so that row's places are asked
first, and those of now after it, for what did not arrive.
"""

import logging
from collections.abc import Collection
from dataclasses import dataclass
from math import floor, inf
from typing import Final, Protocol

from skymemory import defaults
from skymemory.config import Constellation
from skymemory.orbit.schedule import Schedule
from skymemory.orbit.sky import Site
from skymemory.orbit.walker import Walker
from skymemory.placement.layouts import LAYOUTS, substitute
from skymemory.placement.rolling import RollingLayout
from skymemory.placement.torus import Satellite
from skymemory.placement.track import Track

_log = logging.getLogger(__name__)

SKEW_S: Final = defaults.HOST_SKEW_US / 1e6
"""clocks of satellites and hosts are taken to be as far apart at most"""
_STAYS: Final = 0
"""the row of a sky that follows no schedule"""


@dataclass(frozen=True)
class Playing:
    """A schedule that a constellation follows."""

    track: Track
    """in real time: a replay at 60x has its times divided by 60"""
    started_unix_s: float
    """when the track's time was 0"""
    schedule: Schedule | None = None
    """tells the physical window who is in sight; without it that is computed for now"""
    from_ms: int = 0
    """time of the schedule when the track's was 0"""
    speed: float = 1.0
    """milliseconds of the schedule in one of the track"""

    def track_ms(self, time_s: float) -> int:
        """The track's time at a Unix time."""
        return floor((time_s - self.started_unix_s) * 1000)

    def schedule_ms(self, time_s: float) -> int:
        """The schedule's time at a Unix time; its ends before and after it. It stays at the track's last row, as the window does.
        Of use with a schedule."""
        most = 0 if self.schedule is None else self.schedule.header.duration_ms
        track_ms = min(self.track_ms(time_s), self.track.rows[-1][0])
        return min(max(int(self.from_ms + self.speed * track_ms), 0), most)


class Source(Protocol):
    """Tells what the constellation follows, and when that has changed."""

    def changed(self) -> bool:
        """Since the last `load`."""

    def load(self) -> Playing | None:
        """What it follows now. Raises OSError, RuntimeError, ValueError."""


class Whereabouts:
    """Of the servers of a constellation. Times are Unix times in seconds."""

    def __init__(self, constellation: Constellation, playing: Playing | Source | None = None) -> None:
        """`playing`: what the constellation follows. A cache whose host is a satellite moves with that and follows nothing.

        Raises:
            ValueError: a schedule for another constellation.
        """
        self.constellation = constellation
        self.changes = 0
        """times that another schedule was followed"""
        self._following: tuple[Playing, RollingLayout] | None = None
        self._source: Source | None = None
        self._fixed: list[Satellite] | None = None  # of a window that stays
        if playing is not None and not isinstance(playing, Playing):
            self._source, playing = playing, playing.load()
        self.follow(playing)

    @property
    def playing(self) -> Playing | None:
        """What the window follows."""
        return None if self._following is None else self._following[0]

    def refresh(self) -> None:
        """See whether the source plays another schedule now. One that cannot be followed is left alone, and logged."""
        if self._source is None or not self._source.changed():
            return
        try:
            self.follow(self._source.load())
        except (OSError, RuntimeError, ValueError) as error:
            _log.warning("the window goes on as before: %s", error)

    def follow(self, playing: Playing | None) -> None:
        """From now on this. Raises ValueError: it is for another constellation."""
        if playing is None or self.constellation.cache.host == "satellite":
            self._set(None)
            return
        ours, theirs = self.constellation.torus, playing.track.torus
        if (theirs.planes, theirs.slots) != (ours.planes, ours.slots):
            raise ValueError(
                f"a schedule for {theirs.planes} planes x {theirs.slots} slots; "
                f"the constellation has {ours.planes} x {ours.slots}"
            )
        cache = self.constellation.cache
        self._set((playing, playing.track.layout(cache.layout, cache.servers)))

    def _set(self, following: tuple[Playing, RollingLayout] | None) -> None:
        self._following = following
        self.changes += 1  # last: other threads keep what they compute under the number they saw before

    def row(self, time_s: float) -> int:
        """The row that holds, from 1; 0 without a schedule."""
        playing = self.playing
        return _STAYS if playing is None else playing.track.row_at(playing.track_ms(time_s))

    def centre(self, row: int) -> Satellite:
        """The satellite in the middle of a row's window."""
        if self._following is None:
            return self.constellation.cache.centre
        track = self._following[0].track
        return track.centre(_within(track, row))

    def servers(self, row: int, lost: Collection[Satellite] = ()) -> list[Satellite]:
        """Satellites of servers 0 to n - 1 in a row. Those of `lost` are replaced, see `layouts.substitute`."""
        cache, torus, following = self.constellation.cache, self.constellation.torus, self._following
        if following is None:
            if self._fixed is None:
                self._fixed = LAYOUTS[cache.layout](cache.centre, cache.servers, torus)
            return substitute(list(self._fixed), lost, cache.centre, torus)
        track, layout = following[0].track, following[1]
        row = _within(track, row)
        return substitute(layout.servers_at(track.cell(row)), lost, track.centre(row), torus)

    def rows(self, time_s: float, epoch: int = 0) -> tuple[int, ...]:
        """The rows whose places are asked for a block, in this order.

        Args:
            epoch: `BlockEntry.epoch`. One that no row has is a satellite's word and worth nothing.
        """
        playing = self.playing
        if playing is None:
            return (_STAYS,)
        rows = self._by_time(playing, time_s)
        if playing.track.row_at(playing.track_ms(time_s)) <= epoch <= len(playing.track.rows):
            rows = rows if rows[0] == epoch else (epoch, *rows)
            rows = rows if rows[-1] >= epoch else (*rows, epoch)
        return rows

    def left_since(self, first: int, row: int) -> dict[Satellite, frozenset[int]]:
        """Satellites that had a server's place in a row from `first` on and have it no more in `row`, with those servers.

        They are in the order of the last row in which that was so. A chunk that is late is at one of them.
        """
        now = self.servers(row)
        found: dict[Satellite, frozenset[int]] = {}
        for earlier in range(first, row):
            for server, satellite in enumerate(self.servers(earlier)):
                if satellite != now[server]:
                    servers = found.pop(satellite, frozenset())  # to the end: the order is that of the last row
                    found[satellite] = servers | {server}
        return found

    def is_moving(self, time_s: float) -> bool:
        """May satellites hand blocks over now?"""
        playing = self.playing
        if playing is None:
            return False
        track, now_ms = playing.track, playing.track_ms(time_s)
        row = track.row_at(now_ms)
        end_ms = track.end_ms(row)
        is_after = row > 1 and now_ms - track.rows[row - 1][0] < 1000 * self.constellation.cache.handover_s
        return is_after or (end_ms is not None and end_ms - now_ms <= 1000 * SKEW_S)

    def in_sight(self, time_s: float) -> list[Satellite]:
        """Satellites above the site's minimum elevation, the nearest first."""
        playing = self.playing
        if playing is not None and playing.schedule is not None:
            schedule, time_ms = playing.schedule, playing.schedule_ms(time_s)
            nearest, seen = schedule.nearest(time_ms), schedule.in_sight(time_ms)
            return [one for one in seen if one == nearest] + [one for one in seen if one != nearest]
        site = self.constellation.site
        place = Site(site.latitude_deg, site.longitude_deg)
        return Walker.of(self.constellation).sky.in_sight(place, time_s, site.min_elevation_deg)

    def _by_time(self, playing: Playing, time_s: float) -> tuple[int, ...]:
        track, now_ms = playing.track, playing.track_ms(time_s)
        row = track.row_at(now_ms)
        start_ms, end_ms = track.rows[row - 1][0], track.end_ms(row)
        half_ms = inf if end_ms is None else (end_ms - start_ms) / 2
        handover_ms = 1000 * self.constellation.cache.handover_s
        first = max(1, row - 1)
        while first > max(1, row - defaults.HOST_BACK) and now_ms - track.rows[first - 1][0] < handover_ms:
            first -= 1  # it began to hold so lately that not all may have come to it
        before = tuple(range(first, row))
        is_early = now_ms - start_ms < min(handover_ms / defaults.HOST_EARLY, half_ms)
        rows = (*before, row) if not before or is_early else (row, *before, row)
        is_near = end_ms is not None and end_ms - now_ms <= 1000 * SKEW_S
        return (*rows, row + 1) if is_near else rows


def _within(track: Track, row: int) -> int:
    """A row's number may come from the schedule that was followed a moment ago."""
    return min(max(row, 1), len(track.rows))
