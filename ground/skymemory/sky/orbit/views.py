"""Times at which the view of the sky changes: the nearest satellite, the satellites in sight, the links that the earth blocks.

Everything is a function of time, sampled in coarse steps for all satellites at once. Between two samples a function whose second
derivative is bounded by B stays within B h^2 / 8 of its chord, so most intervals cannot hide a change. The others are halved, all
together, until each change is known to the millisecond: its time is the first whole millisecond at which the new state holds.
Nothing that lasts a millisecond is missed, however short a pass is.

Satellites may be equally far for hours: from a pole those of all planes of a pattern without phasing are. A satellite that is
farther than another by no more than `TIE_KM` ties with it. The nearest satellite stays so while it ties with one that came
closer. At the start, and after the nearest has lost its place, the first by plane and slot of those that tie is the nearest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import radians, sin
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skymemory.common.progress import Progress
from skymemory.sky.orbit.positions import WGS84_FLATTENING, WGS84_RADIUS_KM, Array, Indices, Site, Sky, Times
from skymemory.wire.address import Satellite

STEP_MS = 30_000
TIE_KM = 1e-5
"""A centimetre: SGP4 rounds a mean longitude decades behind its epoch to some millimetres."""
_STEPS_AT_ONCE = 120
"""An hour's steps: they bound memory to some megabytes for a thousand satellites."""
_SPEED_KM_PER_S = 8.5
"""Largest speed of a satellite on a low circular orbit, seen from the turning earth, retrograde included."""
_ACCELERATION_KM_PER_S2 = 0.012
"""Gravity at 160 km, 0.0093, and what the turning frame adds."""
_BLOCKED_BOUND_KM_PER_S2 = 0.1
"""Bound of the second derivative of `_clearance_km`: r cos(angle / 2) of two satellites on planes at up to 90 degrees stays below
0.03."""

Flags = NDArray[np.bool_]


class Link(NamedTuple):
    """An inter-satellite link, named from its west or north end: `target` is east or south of `origin`."""

    origin: Satellite
    target: Satellite

    def __str__(self) -> str:
        """Return the name in a schedule file: 3.19-3.1."""
        (plane, slot), (to_plane, to_slot) = self
        return f"{plane}.{slot}-{to_plane}.{to_slot}"


class View(NamedTuple):
    """A view of the sky, which holds from a time on."""

    time_ms: int
    """Milliseconds since the start."""
    nearest: Satellite
    """Nearest satellite in sight, or of all if none is in sight; of several that tie the one that was it before."""
    in_sight: frozenset[Satellite]
    """Satellites at or above the minimum elevation."""
    blocked: frozenset[Link]
    """Links that the earth blocks."""


@dataclass(frozen=True)
class Watch:
    """A site that watches a sky and its links for a time."""

    sky: Sky
    site: Site
    min_elevation_deg: float
    links: Sequence[Link]
    """Links that exist and are looked at."""
    start_ms: int
    """Unix time."""
    duration_ms: int

    def views(self, progress: Progress | None = None) -> list[View]:
        """Return every view from the start to the end, the first at time 0; consecutive ones differ.

        Raises:
            OrbitError: A satellite's elements do not reach to the end.
        """
        steps = -(-self.duration_ms // STEP_MS)
        found = _Found([], [], [])
        for first in range(0, steps, _STEPS_AT_ONCE):
            if progress is not None:
                progress(first, steps)
            last = min(first + _STEPS_AT_ONCE, steps)
            offsets = np.minimum(np.arange(first, last + 1, dtype=np.int64) * STEP_MS, self.duration_ms)
            self._look(self.start_ms + offsets, found)
        if progress is not None:
            progress(steps, steps)
        return self._views(found)

    def _look(self, times: Times, found: "_Found") -> None:
        """Add the changes within a few coarse steps, and at the start of the watch the state there."""
        positions = self.sky.positions_km(times)
        away = positions - self.site.position_km
        distance = np.linalg.norm(away, axis=-1)
        above = self._above_km(away, distance)
        clearance = self._clearances(positions)
        lowest_km = float(np.linalg.norm(positions, axis=-1).min()) - WGS84_RADIUS_KM
        bend = _SPEED_KM_PER_S**2 / max(lowest_km, 100.0) + _ACCELERATION_KM_PER_S2
        above_bend = _ACCELERATION_KM_PER_S2 + sin(radians(max(self.min_elevation_deg, 0.0))) * bend
        if times[0] == self.start_ms:
            found.nearest.append((self.start_ms, np.flatnonzero(_nearest(above[:, 0], distance[:, 0])[0])))
            found.sight.extend((self.start_ms, int(which), True) for which in np.flatnonzero(above[:, 0] >= 0))
            found.blocked.extend((self.start_ms, int(which), True) for which in np.flatnonzero(clearance[:, 0] < 0))

        def above_at(which: Indices, when: Times) -> Array:
            seen = self.sky.positions_of_km(which, when) - self.site.position_km
            return self._above_km(seen, np.linalg.norm(seen, axis=-1))

        origins, targets = self._ends
        found.sight.extend(_crossings(times, above, above_bend, above_at))
        found.blocked.extend(
            (time, which, not clear)
            for time, which, clear in _crossings(
                times,
                clearance,
                _BLOCKED_BOUND_KM_PER_S2,
                lambda which, when: _clearance_km(
                    self.sky.positions_of_km(origins[which], when), self.sky.positions_of_km(targets[which], when)
                ),
            )
        )
        found.nearest.extend(self._handovers(times, above, distance, above_bend, 2 * bend))

    def _above_km(self, away: Array, distance: Array) -> Array:
        """Return a value that is not negative exactly where the elevation is at least the minimum."""
        above: Array = away @ self.site.up - sin(radians(self.min_elevation_deg)) * distance
        return above

    @property
    def _ends(self) -> tuple[Indices, Indices]:
        index = self.sky.index
        ends = np.array([(index[origin], index[target]) for origin, target in self.links], dtype=np.int64).reshape(-1, 2)
        return ends[:, 0], ends[:, 1]

    def _clearances(self, positions: Array) -> Array:
        origins, targets = self._ends
        return _clearance_km(positions[origins], positions[targets])

    def _handovers(
        self, times: Times, above: Array, distance: Array, above_bend: float, distance_bend: float
    ) -> list[tuple[int, Indices]]:
        """Return (time, satellites) for each change of those that tie for the nearest, or of whether any is in sight."""
        span_s = np.diff(times)[:, np.newaxis] / 1000

        def verdict(here: Array, there: Array, span_s: Array) -> tuple[Flags, Flags]:
            nearest, seen = _nearest(here[..., 0], here[..., 1])
            nearest_then, seen_then = _nearest(there[..., 0], there[..., 1])
            changed: Flags = np.any((nearest != nearest_then) | (seen != seen_then), axis=1)
            sight_km, range_km = above_bend * span_s**2 / 8, distance_bend * span_s**2 / 8
            # The state holds while the nearest stay in sight, and all others stay farther or out of sight.
            low = np.minimum(here[..., 0], there[..., 0])
            high = np.maximum(here[..., 0], there[..., 0])
            first = np.argmax(nearest, axis=1)[:, np.newaxis]
            lead = np.minimum(
                here[..., 1] - np.take_along_axis(here[..., 1], first, axis=1),
                there[..., 1] - np.take_along_axis(there[..., 1], first, axis=1),
            )
            farther, hidden, stays = lead > range_km + TIE_KM, high < -sight_km, low > sight_km
            among: Flags = np.where(seen, (~nearest | stays) & (nearest | farther | hidden), hidden & (nearest | farther))
            return changed, np.any(~among, axis=1)

        values = np.stack([above.T, distance.T], axis=-1)  # (times, satellites, 2)
        changed, unsafe = verdict(values[:-1], values[1:], span_s)
        rows = np.flatnonzero(changed | unsafe)
        if not len(rows):
            return []
        # Satellites matter within these steps if they may be in sight, or may be the nearest of all.
        high = np.maximum(above[:, rows], above[:, rows + 1]).T
        closest = np.argmin(distance[:, rows], axis=0)
        lead = np.minimum(distance[:, rows] - distance[closest, rows], distance[:, rows + 1] - distance[closest, rows + 1]).T
        sight_km, range_km = above_bend * span_s[rows] ** 2 / 8, distance_bend * span_s[rows] ** 2 / 8
        matters = (high >= -sight_km) | (lead <= range_km + TIE_KM)
        width = int(matters.sum(axis=1).max())
        who = np.argsort(~matters, axis=1, kind="stable")[:, :width]  # a few too many do no harm

        def sample(items: Indices, when: Times) -> Array:
            chosen = who[items]
            away = self.sky.positions_of_km(chosen.ravel(), np.repeat(when, width)) - self.site.position_km
            far = np.linalg.norm(away, axis=-1)
            return np.stack([self._above_km(away, far), far], axis=-1).reshape(*chosen.shape, 2)

        def taken(step: Indices) -> Array:
            return np.take_along_axis(values[step], who[:, :, np.newaxis], axis=1)

        return [
            (time, who[item][_nearest(after[:, 0], after[:, 1])[0]])
            for item, time, after in _refine(times[rows], times[rows + 1], taken(rows), taken(rows + 1), sample, verdict)
        ]

    def _views(self, found: "_Found") -> list[View]:
        satellites = self.sky.satellites
        nearest = dict(found.nearest)
        sight = _by_time(found.sight)
        blocked = _by_time(found.blocked)
        views: list[View] = []
        who, seen, down = -1, set[int](), set[int]()
        for time in sorted({*nearest, *sight, *blocked}):
            if time in nearest and who not in nearest[time]:
                who = int(nearest[time].min())
            _apply(seen, sight.get(time, ()))
            _apply(down, blocked.get(time, ()))
            view = View(
                time - self.start_ms,
                satellites[who],
                frozenset(satellites[which] for which in seen),
                frozenset(self.links[which] for which in down),
            )
            if not views or view[1:] != views[-1][1:]:
                views.append(view)
        return views


class _Found(NamedTuple):
    """Changes found so far, with Unix times."""

    nearest: list[tuple[int, Indices]]
    """(time, satellites that tie for the nearest)."""
    sight: list[tuple[int, int, bool]]
    """(time, satellite, risen)."""
    blocked: list[tuple[int, int, bool]]
    """(time, link, down)."""


def _by_time(changes: list[tuple[int, int, bool]]) -> dict[int, list[tuple[int, bool]]]:
    grouped: dict[int, list[tuple[int, bool]]] = {}
    for time, which, holds in changes:
        grouped.setdefault(time, []).append((which, holds))
    return grouped


def _apply(members: set[int], changes: Sequence[tuple[int, bool]]) -> None:
    for which, holds in changes:
        (members.add if holds else members.discard)(which)


def _nearest(above: Array, distance: Array) -> tuple[Flags, Flags]:
    """Return who ties for the nearest in sight, or of all if none is, along the last axis; and whether one is in sight."""
    up = above >= 0
    seen: Flags = np.asarray(up.any(axis=-1, keepdims=True))
    within = np.where(up | ~seen, distance, np.inf)
    ties: Flags = within <= within.min(axis=-1, keepdims=True) + TIE_KM
    return ties, seen


def _clearance_km(here: Array, there: Array) -> Array:
    """Return how far above the ellipsoid the line between two positions passes; negative where the earth blocks it.

    Stretched along its axis the ellipsoid is a sphere, and lines stay lines.
    """
    stretch = np.array([1, 1, 1 / (1 - WGS84_FLATTENING)])
    here, there = here * stretch, there * stretch
    along = there - here
    length2 = np.maximum((along * along).sum(axis=-1), 1e-12)
    foot = np.clip(-(here * along).sum(axis=-1) / length2, 0.0, 1.0)
    clearance: Array = np.linalg.norm(here + foot[..., np.newaxis] * along, axis=-1) - WGS84_RADIUS_KM
    return clearance


def _crossings(
    times: Times, values: Array, bend: float, value_at: Callable[[Indices, Times], Array]
) -> list[tuple[int, int, bool]]:
    """Return (time, row, whether the value is not negative from then on) for each change of sign in `values` (rows, times)."""

    def verdict(here: Array, there: Array, span_s: Array) -> tuple[Flags, Flags]:
        changed = (here >= 0) != (there >= 0)
        return changed, np.minimum(np.abs(here), np.abs(there)) <= bend * span_s**2 / 8

    changed, unsafe = verdict(values[:, :-1], values[:, 1:], np.diff(times) / 1000)
    rows, steps = np.nonzero(changed | unsafe)
    refined = _refine(
        times[steps],
        times[steps + 1],
        values[rows, steps],
        values[rows, steps + 1],
        lambda items, when: value_at(rows[items], when),
        lambda here, there, span_s: verdict(here, there, span_s[:, 0]),
    )
    return [(time, int(rows[item]), bool(after >= 0)) for item, time, after in refined]


def _refine(
    here_ms: Times,
    there_ms: Times,
    here: Array,
    there: Array,
    sample: Callable[[Indices, Times], Array],
    verdict: Callable[[Array, Array, Array], tuple[Flags, Flags]],
) -> list[tuple[int, int, Array]]:
    """Halve intervals until every change is known to the millisecond.

    Args:
        here_ms, there_ms: Ends of the intervals; shape (n,).
        here, there: Values at the ends; shape (n, ...).
        sample: Function from intervals, by their index, and times to values.
        verdict: Function of the values at both ends and the seconds between, shape (n, 1). It returns whether the state differs,
            and whether it might change in between although it does not.

    Returns:
        (interval, time, value) of each change; the time is the first at which the new state holds.
    """
    found: list[tuple[int, int, Array]] = []
    items = np.arange(len(here_ms))
    while len(items):
        span_ms = there_ms - here_ms
        changed, unsafe = verdict(here, there, span_ms[:, np.newaxis] / 1000)
        for row in np.flatnonzero(changed & (span_ms == 1)):
            found.append((int(items[row]), int(there_ms[row]), there[row]))
        split = (changed | unsafe) & (span_ms > 1)
        items, here_ms, there_ms, here, there = items[split], here_ms[split], there_ms[split], here[split], there[split]
        middle_ms = (here_ms + there_ms) // 2
        middle = sample(items, middle_ms) if len(items) else here
        here_ms, there_ms = np.concatenate([here_ms, middle_ms]), np.concatenate([middle_ms, there_ms])
        here, there = np.concatenate([here, middle]), np.concatenate([middle, there])
        items = np.concatenate([items, items])
    return found
