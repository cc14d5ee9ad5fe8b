"""When views change: against skyfield's own search, and against every satellite computed at many instants."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from math import radians, sin
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sgp4.api import Satrec
from skyfield.api import EarthSatellite, load, wgs84
from skyfield.framelib import itrs

from skymemory.sky.orbit.fleet import Fleet, arrange
from skymemory.sky.orbit.positions import Site, Sky
from skymemory.sky.orbit.schedule import NearestChange, Schedule, WindowChange
from skymemory.sky.orbit.tle import read_tle
from skymemory.sky.orbit.views import TIE_KM, Link, View, Watch
from skymemory.sky.orbit.walker import Walker
from skymemory.sky.placement.torus import Direction, Torus
from skymemory.wire.address import Satellite
from support.elements import EPOCH_MS, real_tle, shell, tle_pair

TIMESCALE = load.timescale(builtin=True)
HOUR_MS = 3_600_000


def links_of(planes: int, slots: int) -> list[Link]:
    torus = Torus(planes, slots)
    ends = [(one, torus.neighbour(one, way)) for one in torus.satellites() for way in (Direction.EAST, Direction.SOUTH)]
    return [Link(origin, target) for origin, target in ends if target is not None]


def blocked(here: np.ndarray, there: np.ndarray) -> bool:
    """By walking along the line in small steps: whether one lies inside the ellipsoid."""
    points = here + np.linspace(0, 1, 301)[:, np.newaxis] * (there - here)
    return bool(((points / [6378.137, 6378.137, 6356.752314]) ** 2).sum(axis=-1).min() < 1)


def away_km(watch: Watch, time_ms: int, satellite: Satellite) -> float:
    place = watch.sky.positions_km(np.array([watch.start_ms + time_ms]))[watch.sky.index[satellite], 0]
    return float(np.linalg.norm(place - watch.site.position_km))


def holds(watch: Watch, view: View, time_ms: int) -> bool:
    """Whether a view is that of an instant; of two that tie either may be the nearest."""
    then = expected(watch, time_ms)
    ties = away_km(watch, time_ms, view.nearest) <= away_km(watch, time_ms, then.nearest) + 2 * TIE_KM
    return view.in_sight == then.in_sight and (not view.in_sight or view.nearest in view.in_sight) and ties


def expected(watch: Watch, time_ms: int, links: Sequence[Link] = ()) -> View:
    """The view of an instant from the positions of all satellites then."""
    sky = watch.sky
    places = sky.positions_km(np.array([watch.start_ms + time_ms]))[:, 0]
    away = places - watch.site.position_km
    distance = np.linalg.norm(away, axis=-1)
    seen = away @ watch.site.up - sin(radians(watch.min_elevation_deg)) * distance >= 0
    nearest = int(np.argmin(np.where(seen, distance, np.inf) if seen.any() else distance))
    at = dict(zip(sky.satellites, places, strict=True))
    return View(
        time_ms,
        sky.satellites[nearest],
        frozenset(one for one, high in zip(sky.satellites, seen, strict=True) if high),
        frozenset(link for link in links if blocked(at[link.origin], at[link.target])),
    )


SKIES = {
    "star": (Walker(5, 19, 550, 86.4, star=True), Site(52.5, 13.4), 10.0),
    "thin star": (Walker(3, 5, 700, 86.4, star=True), Site(0, 0), 0.0),
    "delta": (Walker(8, 19, 550, 53, star=False, phasing=3), Site(37.4, -122.1), 25.0),
    "retrograde": (Walker(4, 11, 800, 140, star=False), Site(-33.9, 18.4), 5.0),
    "pole": (Walker(6, 11, 780, 86.4, star=True), Site(90, 0), 8.0),
}


@pytest.mark.parametrize("name", SKIES)
def test_views_hold_from_their_millisecond_to_the_next(name: str) -> None:
    walker, site, mask = SKIES[name]
    watch = Watch(walker.sky, site, mask, links_of(walker.planes, walker.slots), EPOCH_MS, 3 * HOUR_MS)
    views = watch.views()
    assert views[0].time_ms == 0
    for before, after in pairwise(views[:300]):
        assert holds(watch, before, after.time_ms - 1)
        assert holds(watch, after, after.time_ms)
        if before[1:3] != after[1:3]:
            assert expected(watch, after.time_ms)[1:3] != before[1:3]
    random = np.random.default_rng(7)
    starts = [view.time_ms for view in views]
    for time_ms in random.integers(0, 3 * HOUR_MS, 100).tolist():
        view = views[np.searchsorted(starts, time_ms, side="right") - 1]
        assert holds(watch, view, time_ms)
        assert expected(watch, time_ms, watch.links).blocked == view.blocked


@settings(max_examples=15, deadline=None)
@given(
    st.integers(1, 6), st.integers(1, 8), st.floats(300, 1500), st.floats(30, 150), st.booleans(),
    st.floats(-90, 90), st.floats(-180, 180), st.floats(0, 60), st.integers(1, HOUR_MS), st.data(),
)  # fmt: skip
def test_any_pattern_any_site(
    planes: int, slots: int, altitude: float, inclination: float, star: bool,
    latitude: float, longitude: float, mask: float, duration_ms: int, data: st.DataObject,
) -> None:  # fmt: skip
    sky = Walker(planes, slots, altitude, inclination, star).sky
    watch = Watch(sky, Site(latitude, longitude), mask, [], EPOCH_MS, duration_ms)
    views = watch.views()
    starts = [view.time_ms for view in views]
    assert starts == sorted(set(starts))
    for time_ms in [*data.draw(st.lists(st.integers(0, duration_ms), max_size=20)), *starts, duration_ms]:
        assert holds(watch, views[np.searchsorted(starts, time_ms, side="right") - 1], time_ms)


@pytest.mark.parametrize(
    ("walker", "latitude", "handovers_a_turn", "planes"),
    [
        (Walker(5, 19, 550, 86.4, star=True, phasing=0), 90, 19, {1}),  # five are equally near, always
        (Walker(5, 19, 550, 86.4, star=True, phasing=0), -90, 19, {1}),
        (Walker(6, 8, 550, 60, star=False, phasing=3), 90, 16, {1, 2}),  # three and three
        (Walker(4, 4, 550, 0, star=False, phasing=0), -90, 4, {1}),  # four in each of four places; no orbit is quite flat
    ],
)
def test_who_ties_with_another_stays_the_nearest(
    walker: Walker, latitude: float, handovers_a_turn: int, planes: set[int]
) -> None:
    watch = Watch(walker.sky, Site(latitude, 0), 5, [], EPOCH_MS, 6 * HOUR_MS)
    views = watch.views()
    handovers = [(before, after) for before, after in pairwise(views) if before.nearest != after.nearest]
    assert len(handovers) == pytest.approx(handovers_a_turn * 6 * 3600 / walker.period_s, abs=2)
    assert {view.nearest.plane for view in views} == planes
    starts = [view.time_ms for view in views]
    for time_ms in np.random.default_rng(7).integers(0, 6 * HOUR_MS, 100).tolist():
        assert holds(watch, views[np.searchsorted(starts, time_ms, side="right") - 1], time_ms)
    for before, after in handovers:  # and gives way to who is nearer by more than that
        assert away_km(watch, after.time_ms, after.nearest) < away_km(watch, after.time_ms, before.nearest) - TIE_KM


def test_a_satellite_that_is_there_twice_counts_as_its_first() -> None:
    first, other = (Satrec.twoline2rv(*tle_pair(number, 10, 40 * number)) for number in (1, 2))
    sky = Sky({Satellite(1, 1): first, Satellite(1, 2): other, Satellite(2, 1): first})
    views = Watch(sky, Site(52.5, 13.4), 5, [], EPOCH_MS, 24 * HOUR_MS).views()
    assert {view.nearest for view in views} == {Satellite(1, 1), Satellite(1, 2)}
    assert all((Satellite(1, 1) in view.in_sight) == (Satellite(2, 1) in view.in_sight) for view in views)


def test_a_pass_of_a_moment_is_found() -> None:
    """The highest a satellite gets, less a trifle, as the mask: it is in sight for less than a coarse step."""
    sky, site = Walker(1, 1, 550, 86.4, star=True).sky, Site(52.5, 13.4)
    times = EPOCH_MS + np.arange(0, 24 * HOUR_MS, 1000)
    away = sky.positions_km(times)[0] - site.position_km
    highest_deg = float(np.degrees(np.arcsin(away @ site.up / np.linalg.norm(away, axis=-1)).max()))
    views = Watch(sky, site, highest_deg - 1e-4, [], EPOCH_MS, 24 * HOUR_MS).views()
    assert [len(view.in_sight) for view in views] == [0, 1, 0]
    assert 0 < views[2].time_ms - views[1].time_ms < 30_000


def oracle_of(fleet: Fleet, place: Satellite) -> EarthSatellite:
    return EarthSatellite.from_satrec(fleet.elements[place].satrec, TIMESCALE)


def check_with_skyfield(fleet: Fleet, site: Site, mask: float, start_ms: int, hours: float) -> None:
    """Every rise and set of a few satellites within a second, and every handover: before it one is nearer, then the other."""
    duration_ms = round(hours * HOUR_MS)
    schedule = Schedule.compute(fleet, "test", site, mask, start_ms, duration_ms)
    place = wgs84.latlon(site.latitude_deg, site.longitude_deg)
    first, last = (TIMESCALE.from_datetime(datetime.fromtimestamp(ms / 1000, UTC)) for ms in (start_ms, start_ms + duration_ms))
    windows = [change for change in schedule.changes if isinstance(change, WindowChange)]
    seen = sorted({one for window in windows for one in window.in_sight})
    compared = 0
    for satellite in seen[:: max(1, len(seen) // 12)]:
        held = [(window.time_ms, satellite in window.in_sight) for window in windows]
        ours = [after_ms for (_, before), (after_ms, after) in pairwise(held) if before != after]
        when, kinds = oracle_of(fleet, satellite).find_events(place, first, last, altitude_degrees=mask)
        theirs = [time.utc_datetime().timestamp() * 1000 - start_ms for time, kind in zip(when, kinds, strict=True) if kind != 1]
        assert ours == pytest.approx(theirs, abs=1000)
        compared += len(ours)
    assert compared > 10
    for before, after in pairwise(change for change in schedule.changes if isinstance(change, NearestChange)):
        both = {before.satellite, after.satellite}
        if not both <= {*schedule.in_sight(after.time_ms - 1)} & {*schedule.in_sight(after.time_ms)}:
            continue  # one rose or set, which was compared above
        leads_km = []
        for off_ms in (-1000, 1000):
            when = TIMESCALE.from_datetime(datetime.fromtimestamp((start_ms + after.time_ms + off_ms) / 1000, UTC))
            pair = [one for one in (before.satellite, after.satellite) if one is not None]
            far = [(oracle_of(fleet, one) - place).at(when).distance().km for one in pair]
            leads_km.append(far[0] - far[1])
        assert leads_km[0] < 0 < leads_km[1]


def test_skyfield_finds_the_same_changes(tmp_path: Path) -> None:
    path = tmp_path / "shell.tle"
    path.write_text("\n".join(shell(12, 18)))
    fleet = arrange(read_tle(path).elements, EPOCH_MS, EPOCH_MS + 6 * HOUR_MS)
    check_with_skyfield(fleet, Site(52.5, 13.4), 10, EPOCH_MS, 6)


@pytest.mark.parametrize(("name", "hours"), [("oneweb.tle", 3), ("iridium.tle", 12)])
def test_skyfield_finds_the_same_changes_in_a_real_sky(name: str, hours: float) -> None:
    elements = read_tle(real_tle(name)).elements
    start_ms = max(element.epoch_ms for element in elements)
    fleet = arrange(elements, start_ms, start_ms + round(hours * HOUR_MS))
    check_with_skyfield(fleet, Site(37.4, -122.1), 10, start_ms, hours)
    place = next(iter(fleet.elements))
    when = TIMESCALE.from_datetime(datetime.fromtimestamp(start_ms / 1000, UTC))
    ours = Sky({place: fleet.elements[place].satrec}).positions_km(np.array([start_ms]))[0, 0]
    assert np.abs(oracle_of(fleet, place).at(when).frame_xyz(itrs).km - ours).max() < 1
