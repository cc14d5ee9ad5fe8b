"""Positions, frames and sites, beside skyfield's."""

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sgp4.api import Satrec
from skyfield.api import EarthSatellite, load, wgs84
from skyfield.framelib import itrs

from skymemory.sky.orbit.positions import OrbitError, Site, Sky
from skymemory.sky.orbit.walker import Walker
from skymemory.wire.address import Satellite
from support.elements import EPOCH_MS, shell, tle_pair

TIMESCALE = load.timescale(builtin=True)
LATITUDES, LONGITUDES = st.floats(-90, 90), st.floats(-180, 180)
MONTH = st.integers(0, 30 * 86_400_000)
LEAP_SECONDS = st.integers(*(int(datetime(year, 1, 1, tzinfo=UTC).timestamp() * 1000) - EPOCH_MS for year in (1972, 2036)))
"""since the epoch, while UT1 is known or foreseen within 0.9 s of UTC"""


def sky_of(lines: list[str]) -> tuple[Sky, list[EarthSatellite]]:
    """Satellites in one plane, and skyfield's of the same lines."""
    pairs = list(zip(lines[::2], lines[1::2], strict=True))
    sky = Sky({Satellite(1, slot): Satrec.twoline2rv(*pair) for slot, pair in enumerate(pairs, 1)})
    return sky, [EarthSatellite(*pair, ts=TIMESCALE) for pair in pairs]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(MONTH, st.just(0.02)) | st.tuples(LEAP_SECONDS, st.just(0.5)), min_size=1, max_size=5))
def test_positions_are_those_of_skyfield(instants: list[tuple[int, float]]) -> None:
    """0.02 km at times when UT1 and UTC hardly differ (some hundredths of a second in October 2022), 0.5 km at any."""
    since_ms, bounds_km = (list(column) for column in zip(*instants, strict=True))
    sky, oracle = sky_of(shell(3, 4))
    times = EPOCH_MS + np.array(since_ms)
    ours = sky.positions_km(times)
    when = TIMESCALE.from_datetimes([datetime.fromtimestamp(time / 1000, UTC) for time in times.tolist()])
    for number, satellite in enumerate(oracle):
        assert (np.linalg.norm(satellite.at(when).frame_xyz(itrs).km.T - ours[number], axis=-1) < bounds_km).all()
        assert (sky.positions_of_km(np.full(len(times), number), times) == ours[number]).all()


def test_pairs_of_satellites_and_times_come_back_in_their_order() -> None:
    sky = Walker(2, 3, 550, 86.4, star=True).sky
    which, times = np.array([5, 0, 5, 3, 0]), EPOCH_MS + np.array([9, 8, 7, 6, 5]) * 60_000
    expected = [sky.positions_km(times[row : row + 1])[number, 0] for row, number in enumerate(which)]
    assert (sky.positions_of_km(which, times) == np.array(expected)).all()


@given(LATITUDES, LONGITUDES)
def test_sites_are_those_of_skyfield(latitude_deg: float, longitude_deg: float) -> None:
    site = Site(latitude_deg, longitude_deg)
    assert site.position_km == pytest.approx(wgs84.latlon(latitude_deg, longitude_deg).itrs_xyz.km, abs=1e-6)
    assert np.linalg.norm(site.up) == pytest.approx(1)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 86_400_000), LATITUDES, LONGITUDES, st.floats(0, 60))
def test_in_sight_is_what_skyfield_sees_high_enough(since_ms: int, latitude: float, longitude: float, mask: float) -> None:
    sky, oracle = sky_of(shell(6, 8))
    time_ms = EPOCH_MS + since_ms
    seen = sky.in_sight(Site(latitude, longitude), time_ms / 1000, mask)
    when, place = TIMESCALE.from_datetime(datetime.fromtimestamp(time_ms / 1000, UTC)), wgs84.latlon(latitude, longitude)
    views = [(satellite - place).at(when).altaz() for satellite in oracle]
    for slot, (elevation, _, _) in enumerate(views, 1):
        if abs(elevation.degrees - mask) > 0.02:
            assert (Satellite(1, slot) in seen) == (elevation.degrees > mask)
    distances = [views[slot - 1][2].km for _, slot in seen]
    assert distances == pytest.approx(sorted(distances), abs=0.5)


def test_a_satellite_that_comes_down_is_named() -> None:
    sky, _ = sky_of([*tle_pair(1, 0, 0), *tle_pair(2, 0, 90, revolutions_a_day=16.3, drag=0.1)])
    late = EPOCH_MS + np.array([0, 30 * 86_400_000])
    with pytest.raises(OrbitError, match=r"satellite \[1, 2\] leaves its orbit: "):
        sky.positions_km(late)
    with pytest.raises(OrbitError, match=r"satellite \[1, 2\] leaves its orbit: "):
        sky.positions_of_km(np.array([0, 1]), late)
