"""Walker constellations, and what a site sees of them."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skymemory.config import Constellation
from skymemory.orbit import geometry
from skymemory.orbit.walker import EARTH_ROTATION_RAD_PER_S, Site, Walker
from skymemory.placement.torus import Satellite

PAPER = Walker.of(Constellation())
DELTA = Walker(72, 22, 550, 53, star=False)
TIMES = st.floats(0, 1e7)


def test_period_is_known() -> None:
    assert PAPER.period_s == pytest.approx(5730, abs=1)


@settings(max_examples=20)
@given(TIMES)
def test_orbits_are_circles_with_even_spacing(time_s: float) -> None:
    for walker in (PAPER, DELTA):
        positions = walker.inertial_km(time_s)
        assert positions.shape == (walker.planes, walker.slots, 3)
        assert np.linalg.norm(positions, axis=-1) == pytest.approx(walker.radius_km)
        east, south = walker.neighbour_km(time_s)
        assert east == pytest.approx(geometry.in_plane_km(walker.slots, walker.altitude_km))
        assert south.shape == east.shape


def test_equation_2_bounds_the_links_between_planes_of_a_delta() -> None:
    aligned = Walker(24, 24, 550, 53, star=False)
    longest = max(float(aligned.neighbour_km(time_s)[1].max()) for time_s in np.linspace(0, aligned.period_s, 50))
    bound = geometry.cross_plane_km(24, 550)
    assert 0.9 * bound < longest < 1.05 * bound  # the stagger of 1/24 slot adds a little


def test_links_between_planes_of_the_default_star() -> None:
    lengths = np.stack([PAPER.neighbour_km(time_s)[1] for time_s in np.linspace(0, PAPER.period_s, 200)])
    delays_ms = lengths / geometry.LIGHT_KM_PER_S * 1e3
    neighbours, seam = delays_ms[:, :-1], delays_ms[:, -1]
    assert 3 < neighbours.min() < 5
    assert 14 < neighbours.max() < 15
    assert seam.max() > 40  # planes that fly against each other: half an orbit apart at times


def test_next_slot_is_ahead() -> None:
    one_slot_s = PAPER.period_s / PAPER.slots
    before, after = PAPER.inertial_km(1000), PAPER.inertial_km(1000 + one_slot_s)
    assert after[:, :-1] == pytest.approx(before[:, 1:])


def test_frames_agree_at_the_epoch_and_turn_apart() -> None:
    assert PAPER.earth_fixed_km(0) == pytest.approx(PAPER.inertial_km(0))
    assert PAPER.inertial_km(0)[0, 0] == pytest.approx([PAPER.radius_km, 0, 0])
    quarter_s = np.pi / 2 / EARTH_ROTATION_RAD_PER_S
    fixed, inertial = PAPER.earth_fixed_km(quarter_s), PAPER.inertial_km(quarter_s)
    assert fixed[..., 0] == pytest.approx(inertial[..., 1])
    assert fixed[..., 1] == pytest.approx(-inertial[..., 0])


@given(st.floats(-90, 90), st.floats(-180, 180))
def test_sites_lie_on_the_ellipsoid(latitude_deg: float, longitude_deg: float) -> None:
    x, y, z = Site(latitude_deg, longitude_deg).position_km
    assert (x * x + y * y) / 6378.137**2 + z * z / 6356.752314**2 == pytest.approx(1)


def test_satellite_overhead() -> None:
    site = Site(0, 0)  # under slot 1 of plane 1 at the epoch
    assert PAPER.nearest(site, 0) == Satellite(1, 1)
    assert PAPER.elevation_deg(site, 0)[0, 0] == pytest.approx(90)
    assert PAPER.range_km(site, 0)[0, 0] == pytest.approx(PAPER.radius_km - 6378.137)
    assert PAPER.in_sight(site, 0, 10)[0] == Satellite(1, 1)
    assert PAPER.elevation_deg(Site(0, 180), 0)[0, 0] == pytest.approx(-90)


@settings(max_examples=30)
@given(TIMES, st.floats(-90, 90), st.floats(-180, 180), st.floats(0, 60))
def test_in_sight_is_what_stands_high_enough(time_s: float, latitude: float, longitude: float, mask: float) -> None:
    site = Site(latitude, longitude)
    seen = DELTA.in_sight(site, time_s, mask)
    elevation, distance = DELTA.elevation_deg(site, time_s), DELTA.range_km(site, time_s)
    assert len(seen) == len(set(seen)) == (elevation >= mask).sum()
    assert all(elevation[plane - 1, slot - 1] >= mask for plane, slot in seen)
    distances = [distance[plane - 1, slot - 1] for plane, slot in seen]
    assert distances == sorted(distances)
    if seen:
        assert seen[0] == DELTA.nearest(site, time_s)


def test_few_satellites_of_95_are_in_sight() -> None:
    """Far fewer than the paper's ten: the reason for a logical window, and for reaching the rest over ISLs."""
    site = Site(48, 11)
    times = np.arange(0, 86_400, 120)
    elevations = [PAPER.elevation_deg(site, float(time_s)) for time_s in times]
    assert np.mean([(elevation > 0).sum() for elevation in elevations]) == pytest.approx(3.8, abs=0.2)
    assert np.mean([(elevation >= 10).sum() for elevation in elevations]) == pytest.approx(1.6, abs=0.1)


def test_nearest_counts_down_and_sometimes_jumps_plane() -> None:
    site = Site(48, 11)
    nearest = [PAPER.nearest(site, float(time_s)) for time_s in range(0, 86_400, 10)]
    changes = [(old, new) for old, new in pairwise(nearest) if old != new]
    assert 86_400 / len(changes) == pytest.approx(PAPER.period_s / PAPER.slots, rel=0.2)
    within = [(old.slot - new.slot) % PAPER.slots for old, new in changes if old.plane == new.plane]
    assert set(within) == {1}
    assert 0.1 < 1 - len(within) / len(changes) < 0.6
