"""Where the servers are at a moment, and in which order their places are asked while the sky turns.

Without a schedule the layout lies around `cache.centre` for ever. With one the window's centre follows its track, row by row, and
what falls out of the window goes, satellite by satellite, to what comes in; that takes a while. A chunk only moves forward in
time, so whoever asks the places of its server in the order of time finds it, however far the move has come:

    from a row's time on      old, new       for `cache.handover_s`, but no longer than half the row: the chunk may not have moved
    later                     new, old, new  it should have; if not, the old place is asked, and the new one once more, in case it
                                             moved between the two questions
    before the next row       now, next      for a moment: somebody's clock may be fast

A block that was laid for a row to come (`BlockEntry.epoch`, see `SkyStore.prefetch`) waits there, so that row's places are asked
first, and those of now after it, for what did not arrive.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from skymemory.config import Constellation
from skymemory.orbit.schedule import Schedule
from skymemory.orbit.sky import Site
from skymemory.orbit.walker import Walker
from skymemory.placement.layouts import LAYOUTS, substitute
from skymemory.placement.rolling import RollingLayout
from skymemory.placement.torus import Satellite
from skymemory.placement.track import Track

SKEW_S: Final = 2.0
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


class Whereabouts:
    """Of the servers of a constellation. Times are Unix times in seconds."""

    def __init__(self, constellation: Constellation, playing: Playing | None = None) -> None:
        """`playing`: what the constellation follows. A cache whose host is a satellite moves with that and follows nothing.

        Raises:
            ValueError: a schedule for another constellation, or for fewer satellites than there are servers.
        """
        self.constellation = constellation
        self.playing = None if constellation.cache.host == "satellite" else playing
        if self.playing is not None:
            ours, theirs = constellation.torus, self.playing.track.torus
            if (theirs.planes, theirs.slots) != (ours.planes, ours.slots):
                raise ValueError(
                    f"a schedule for {theirs.planes} planes x {theirs.slots} slots; the constellation has"
                    f" {ours.planes} x {ours.slots}"
                )

    @cached_property
    def _layout(self) -> RollingLayout:
        assert self.playing is not None
        return self.playing.track.layout(self.constellation.cache.layout, self.constellation.cache.servers)

    def row(self, time_s: float) -> int:
        """The row that holds, from 1; 0 without a schedule."""
        return _STAYS if self.playing is None else self.playing.track.row_at(self._track_ms(time_s))

    def centre(self, row: int) -> Satellite:
        """The satellite in the middle of a row's window."""
        return self.constellation.cache.centre if self.playing is None else self.playing.track.centre(row)

    def servers(self, row: int, lost: Collection[Satellite] = ()) -> list[Satellite]:
        """Satellites of servers 0 to n - 1 in a row. Those of `lost` are replaced, see `layouts.substitute`."""
        cache, torus = self.constellation.cache, self.constellation.torus
        if self.playing is None:
            placed = LAYOUTS[cache.layout](cache.centre, cache.servers, torus)
        else:
            placed = self._layout.servers_at(self.playing.track.cell(row))
        return substitute(placed, lost, self.centre(row), torus)

    def rows(self, time_s: float, epoch: int = 0) -> tuple[int, ...]:
        """The rows whose places are asked for a block, in this order.

        Args:
            epoch: `BlockEntry.epoch`. One that no row has is a satellite's word and worth nothing.
        """
        if self.playing is None:
            return (_STAYS,)
        now = self.row(time_s)
        if now < epoch <= len(self.playing.track.rows):
            return epoch, *self._by_time(now, time_s), epoch
        return (now, now - 1, now) if now == epoch > 1 else self._by_time(now, time_s)

    def is_moving(self, time_s: float) -> bool:
        """Do satellites hand blocks over around now?"""
        return len(self.rows(time_s)) == 2

    def in_sight(self, time_s: float) -> list[Satellite]:
        """Satellites above the site's minimum elevation, the nearest first."""
        if self.playing is not None and self.playing.schedule is not None:
            schedule = self.playing.schedule
            passed_ms = int(self.playing.from_ms + self.playing.speed * self._track_ms(time_s))
            time_ms = min(max(passed_ms, 0), schedule.header.duration_ms)
            nearest, seen = schedule.nearest(time_ms), schedule.in_sight(time_ms)
            return [one for one in seen if one == nearest] + [one for one in seen if one != nearest]
        site = self.constellation.site
        place = Site(site.latitude_deg, site.longitude_deg)
        return Walker.of(self.constellation).sky.in_sight(place, time_s, site.min_elevation_deg)

    def _track_ms(self, time_s: float) -> int:
        assert self.playing is not None
        return int((time_s - self.playing.started_unix_s) * 1000 // 1)

    def _by_time(self, row: int, time_s: float) -> tuple[int, ...]:
        assert self.playing is not None
        track, now_ms = self.playing.track, self._track_ms(time_s)
        since_ms, end_ms = now_ms - track.rows[row - 1][0], track.end_ms(row)
        half_ms = float("inf") if end_ms is None else (end_ms - track.rows[row - 1][0]) / 2
        if end_ms is not None and end_ms - now_ms <= min(1000 * SKEW_S, half_ms):
            return row, row + 1
        if row == 1:
            return (row,)
        if since_ms < min(1000 * self.constellation.cache.handover_s, half_ms):
            return row - 1, row
        return row, row - 1, row
