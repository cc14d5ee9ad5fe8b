"""Places of the servers at a moment, while the sky turns.

Without a schedule the layout lies around `cache.centre` for ever. With a schedule the window's centre follows its track, row by
row. Chunks of a satellite that leaves the window go to one that comes in; that takes a while. The core decides in which order
places are asked meanwhile, and by which rule servers move (`sky_places.h`, `sky_placement.h`), for all hosts and for the twin.
"""

import logging
from collections.abc import Collection
from dataclasses import dataclass
from math import floor
from typing import Protocol

from skymemory.sky.constellation import Constellation
from skymemory.sky.orbit.positions import Site
from skymemory.sky.orbit.schedule import Schedule
from skymemory.sky.placement.places import Places
from skymemory.sky.placement.structures import SCHEDULE_NONE
from skymemory.sky.placement.track import Track
from skymemory.wire.address import Satellite

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Playing:
    """A schedule that a constellation follows."""

    track: Track
    """The track in real time: a replay at 60x has its times divided by 60."""
    started_unix_s: float
    """Unix time at the track's time 0."""
    schedule: Schedule | None = None
    """Schedule that says who is in sight of the physical window; None: that is computed for now."""
    from_ms: int = 0
    """Time of the schedule at the track's time 0."""
    speed: float = 1.0
    """Milliseconds of the schedule in one of the track."""
    stopped_ms: int | None = None
    """Time of the track at which it was stopped: the sky's time stays there. None: it was not."""

    def track_ms(self, time_s: float) -> int:
        """Return the track's time at a Unix time; every question to the core takes its time from here."""
        return floor((time_s - self.started_unix_s) * 1000)

    def schedule_ms(self, time_s: float) -> int:
        """Return the schedule's time at a Unix time, between the schedule's ends.

        It stays at the track's last row, as the window does, and where the replay was stopped. It means something only with a
        schedule.
        """
        most = 0 if self.schedule is None else self.schedule.header.duration_ms
        track_ms = min(self.track_ms(time_s), self.end_ms)
        return min(max(int(self.from_ms + self.speed * track_ms), 0), most)

    @property
    def end_ms(self) -> int:
        """Time of the track from which on nothing moves any more."""
        last_ms = self.track.rows[-1][0]
        return last_ms if self.stopped_ms is None else min(self.stopped_ms, last_ms)


class Source(Protocol):
    """A source that says what the constellation follows, and when that has changed."""

    def changed(self) -> bool:
        """Return True if that has changed since the last `load`."""

    def load(self) -> Playing | None:
        """Return what the constellation follows now. Raise OSError, RuntimeError or ValueError if that is unusable."""


class Whereabouts:
    """Places of the servers of a constellation. Times are Unix times in seconds."""

    def __init__(self, constellation: Constellation, playing: Playing | Source | None = None) -> None:
        """Follow `playing`. A cache whose host is a satellite moves with that and follows nothing.

        Raises:
            ValueError: The schedule is for another constellation.
        """
        self.constellation = constellation
        self.changes = 0
        """Times that another schedule was followed."""
        self._following: tuple[Playing, Places] | None = None
        self._source: Source | None = None
        self._fixed: Places | None = None  # places of a window that stays
        if playing is not None and not isinstance(playing, Playing):
            self._source, playing = playing, playing.load()
        self.follow(playing)

    @property
    def playing(self) -> Playing | None:
        """Schedule that the window follows."""
        return None if self._following is None else self._following[0]

    def refresh(self) -> None:
        """Follow another schedule if the source plays one now. A schedule that cannot be followed is logged and ignored."""
        if self._source is None or not self._source.changed():
            return
        try:
            self.follow(self._source.load())
        except (OSError, RuntimeError, ValueError) as error:
            _log.warning("the new schedule cannot be followed, so the window goes on as before: %s", error)

    def follow(self, playing: Playing | None) -> None:
        """Follow a schedule from now on. Raise ValueError if it is for another constellation."""
        if playing is None or self.constellation.cache.host == "satellite":
            self._set(None)
            return
        ours, theirs = self.constellation.torus, playing.track.torus
        if (theirs.planes, theirs.slots) != (ours.planes, ours.slots):
            raise ValueError(
                f"the schedule is for {theirs.planes} planes x {theirs.slots} slots; "
                f"the constellation has {ours.planes} x {ours.slots}"
            )
        cache = self.constellation.cache
        self._set((playing, playing.track.places(cache.layout, cache.servers)))

    def _set(self, following: tuple[Playing, Places] | None) -> None:
        self._following = following
        self.changes += 1  # raised last: other threads keep their results under the number that they saw

    def row(self, time_s: float) -> int:
        """Return the row that holds, from 1; 0 without a schedule."""
        if (following := self._following) is None:
            return SCHEDULE_NONE
        playing, places = following
        return places.row_at(playing.track_ms(time_s))

    def centre(self, row: int) -> Satellite:
        """Return the satellite in the middle of a row's window."""
        return self._places().centre(row)

    def servers(self, row: int, lost: Collection[Satellite] = ()) -> list[Satellite]:
        """Return the satellites of servers 0 to n - 1 in a row, with stand-ins for lost ones."""
        return self._places().servers(row, lost)

    def in_sight(self, time_s: float) -> list[Satellite]:
        """Return the satellites above the site's minimum elevation, the nearest first."""
        playing = self.playing
        if playing is not None and playing.schedule is not None:
            schedule, time_ms = playing.schedule, playing.schedule_ms(time_s)
            nearest, seen = schedule.nearest(time_ms), schedule.in_sight(time_ms)
            return [one for one in seen if one == nearest] + [one for one in seen if one != nearest]
        site = self.constellation.site
        place = Site(site.latitude_deg, site.longitude_deg)
        return self.constellation.walker().sky.in_sight(place, time_s, site.min_elevation_deg)

    def _places(self) -> Places:
        if (following := self._following) is not None:
            return following[1]
        if self._fixed is None:
            cache = self.constellation.cache
            self._fixed = Track.of(self.constellation.torus, [(0, cache.centre)]).places(cache.layout, cache.servers)
        return self._fixed
