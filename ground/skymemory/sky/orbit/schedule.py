"""The schedule of a sky over a site: which satellite is nearest, the window around it, and when they change."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from skymemory.common.progress import Progress
from skymemory.sky.orbit import schedule_format
from skymemory.sky.orbit.fleet import Fleet, filled
from skymemory.sky.orbit.positions import Site, Sky
from skymemory.sky.orbit.schedule_format import Change, Header, NearestChange, ScheduleError, WindowChange, utc
from skymemory.sky.orbit.views import Link, View, Watch
from skymemory.sky.orbit.walker import Walker
from skymemory.sky.placement.torus import Direction
from skymemory.sky.placement.track import Track
from skymemory.wire.address import Satellite

__all__ = ["Change", "Header", "NearestChange", "Schedule", "ScheduleError", "Summary", "WindowChange"]


@dataclass(frozen=True)
class Summary:
    """A schedule in numbers."""

    satellites: int
    handovers: int
    """Changes from one nearest satellite to another, with a gap between or without."""
    plane_jumps: int
    """Handovers to another plane."""
    gaps: int
    """Times without a satellite in sight."""
    gap_ms: int
    """Length of all gaps together."""
    longest_gap_ms: int
    links_down: int
    """Links that are always down: at the seam, and behind the earth."""
    links_blocked: int
    """Links that the earth blocks at times."""


class Schedule:
    """A schedule, which answers for any instant from the epoch to the end. Times are whole milliseconds since the epoch."""

    def __init__(self, header: Header, changes: Iterable[Change]) -> None:
        self.header = header
        self.changes = tuple(changes)
        """Changes in order of time."""
        self.site = Site(header.latitude_deg, header.longitude_deg)
        self._nearest = [change for change in self.changes if isinstance(change, NearestChange)]
        self._windows = [change for change in self.changes if isinstance(change, WindowChange)]
        self._nearest_ms = [change.time_ms for change in self._nearest]
        self._windows_ms = [change.time_ms for change in self._windows]
        self._always_down = schedule_format.header_links(header)

    @classmethod
    def load(cls, path: str | Path) -> "Schedule":
        """Read a schedule file, `.csv` or `.jsonl`.

        Raises:
            ScheduleError: The file is wrong: `file:line: what is; what is allowed`.
            OSError: The file cannot be read.
        """
        return cls(*schedule_format.read(Path(path)))

    @classmethod
    def compute(
        cls,
        orbits: Walker | Fleet,
        source: str,
        site: Site,
        min_elevation_deg: float,
        start_ms: int,
        duration_ms: int,
        progress: Progress | None = None,
    ) -> "Schedule":
        """Compute the schedule of a sky over a site.

        Args:
            orbits: Pattern, or the result of `fleet.arrange` for a file.
            source: Origin of the orbits, for the header.
            min_elevation_deg: Elevation below which a satellite is not in sight.
            start_ms: Unix time, the schedule's epoch.

        Raises:
            OrbitError: A satellite leaves its orbit meanwhile.
        """
        header = Header(
            source=source,
            epoch=utc(start_ms),
            duration_ms=duration_ms,
            planes=orbits.planes,
            slots=orbits.slots,
            pattern="star" if orbits.star else "delta",
            phasing=orbits.phasing if isinstance(orbits, Walker) else None,
            altitude_km=orbits.altitude_km,
            inclination_deg=orbits.inclination_deg,
            latitude_deg=site.latitude_deg,
            longitude_deg=site.longitude_deg,
            min_elevation_deg=min_elevation_deg,
            isl_down=(),
            elements=None,
        )
        sky = orbits.sky
        links, seam = _links(header, frozenset(sky.satellites))
        views = Watch(sky, site, min_elevation_deg, links, start_ms, duration_ms).views(progress)
        always = frozenset.intersection(*(view.blocked for view in views))
        elements = None
        if isinstance(orbits, Fleet):
            elements = {f"{one.plane}.{one.slot}": orbits.elements[one].lines for one in sky.satellites}
        isl_down = tuple(str(link) for link in sorted([*seam, *always]))
        return cls(header.model_copy(update={"isl_down": isl_down, "elements": elements}), _changes(views, always))

    def save(self, path: str | Path) -> None:
        """Write a schedule file, CSV or JSON lines by its suffix.

        Raises:
            ScheduleError: The suffix is another one.
            OSError: The file cannot be written.
        """
        schedule_format.write(Path(path), self.header, self.changes)

    def nearest(self, time_ms: int) -> Satellite | None:
        """Return the nearest satellite in sight; None if there is none."""
        return self._nearest[self._at(self._nearest_ms, time_ms)].satellite

    def centre(self, time_ms: int) -> Satellite:
        """Return the window's centre: the nearest satellite, in a gap the nearest below the minimum elevation."""
        return self._windows[self._at(self._windows_ms, time_ms)].centre

    def in_sight(self, time_ms: int) -> tuple[Satellite, ...]:
        """Return the satellites at or above the minimum elevation, by plane and slot."""
        return self._windows[self._at(self._windows_ms, time_ms)].in_sight

    def links_down(self, time_ms: int) -> frozenset[Link]:
        """Return the existing links between satellites that the earth blocks or the seam cuts."""
        return self._always_down | self._windows[self._at(self._windows_ms, time_ms)].links_down

    @cached_property
    def full_sky(self) -> Sky:
        """The sky with a satellite in every place: a place that is empty in a TLE file gets a copy of one of its plane.

        A constellation has a satellite in every place, in the twin as in a replay.
        """
        header = self.header
        elements = schedule_format.header_elements(header)
        if elements is not None:
            return filled(elements, header.planes, header.slots)
        size = header.planes, header.slots
        return Walker(*size, header.altitude_km, header.inclination_deg, header.pattern == "star", header.phasing or 0).sky

    @cached_property
    def track(self) -> Track:
        """Return the track of the window's centre."""
        return Track.of(self.header.torus, ((window.time_ms, window.centre) for window in self._windows))

    def summary(self) -> Summary:
        """Return counts for people."""
        header = self.header
        ends = [*self._nearest_ms[1:], header.duration_ms]
        gaps = [end - change.time_ms for change, end in zip(self._nearest, ends, strict=True) if change.satellite is None]
        held = [change.satellite for change in self._nearest if change.satellite is not None]
        moves = [(before, after) for before, after in pairwise(held) if before != after]
        return Summary(
            satellites=header.planes * header.slots if header.elements is None else len(header.elements),
            handovers=len(moves),
            plane_jumps=sum(before.plane != after.plane for before, after in moves),
            gaps=len(gaps),
            gap_ms=sum(gaps),
            longest_gap_ms=max(gaps, default=0),
            links_down=len(self._always_down),
            links_blocked=len(frozenset[Link]().union(*(window.links_down for window in self._windows))),
        )

    def _at(self, times_ms: list[int], time_ms: int) -> int:
        if not 0 <= time_ms <= self.header.duration_ms:
            raise ValueError(
                f"the time is {time_ms} ms since the epoch; allowed are 0 to {self.header.duration_ms}, the schedule's"
            )
        return bisect_right(times_ms, time_ms) - 1


def _links(header: Header, present: frozenset[Satellite]) -> tuple[list[Link], list[Link]]:
    """Return the links that the earth may block, and those over a star's seam, which are cut: antennas cannot follow there."""
    torus = header.torus
    links: list[Link] = []
    seam: list[Link] = []
    for origin in torus.satellites():
        for direction in (Direction.EAST, Direction.SOUTH):
            target = torus.neighbour(origin, direction)
            if target is not None and origin in present and target in present:
                over = header.pattern == "star" and direction is Direction.SOUTH and origin.plane == header.planes
                (seam if over else links).append(Link(origin, target))
    return links, seam


def _changes(views: list[View], always: frozenset[Link]) -> list[Change]:
    changes: list[Change] = []
    nearest: NearestChange | None = None
    window: WindowChange | None = None
    for view in views:
        satellite = view.nearest if view.in_sight else None
        if nearest is None or nearest.satellite != satellite:
            nearest = NearestChange(view.time_ms, satellite)
            changes.append(nearest)
        now = WindowChange(view.time_ms, view.nearest, tuple(sorted(view.in_sight)), view.blocked - always)
        if window is None or window[1:] != now[1:]:
            window = now
            changes.append(window)
    return changes
