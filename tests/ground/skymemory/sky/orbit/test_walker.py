"""Walker constellations: the pattern, and what a site sees of it."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skymemory.sky.constellation import Constellation
from skymemory.sky.orbit import paper_distances as paper
from skymemory.sky.orbit.positions import Array, Site
from skymemory.sky.orbit.walker import Walker
from skymemory.wire.address import Satellite

PAPER = Constellation().walker()
DELTA = Walker(72, 22, 550, 53, star=False)
TIMES = st.integers(0, 2_000_000_000_000)


def grid_km(walker: Walker, *unix_ms: int) -> Array:
    """Positions; shape (planes, slots, times, 3)."""
    return walker.sky.positions_km(np.array(unix_ms)).reshape(walker.planes, walker.slots, len(unix_ms), 3)


def test_period_is_known() -> None:
    assert PAPER.period_s == pytest.approx(5730, abs=1)


@settings(max_examples=20, deadline=None)
@given(TIMES)
def test_orbits_are_nearly_circles_with_even_spacing(unix_ms: int) -> None:
    for walker in (PAPER, DELTA):
        here = grid_km(walker, unix_ms)[:, :, 0]
        height_km = np.linalg.norm(here, axis=-1) - paper.EARTH_RADIUS_KM
        assert np.abs(height_km - walker.altitude_km).max() < 12  # the earth's bulge pulls by some kilometres
        east = np.linalg.norm(np.roll(here, -1, axis=1) - here, axis=-1)
        assert east == pytest.approx(paper.in_plane_km(walker.slots, walker.altitude_km), rel=0.01)


def test_links_between_planes_of_a_star() -> None:
    lengths = []
    for unix_ms in range(0, 5_730_000, 30_000):
        here = grid_km(PAPER, unix_ms)[:, :, 0]
        lengths.append(np.linalg.norm(np.roll(here, -1, axis=0) - here, axis=-1))
    delays_ms = np.stack(lengths) / paper.LIGHT_KM_PER_S * 1e3
    neighbours, seam = delays_ms[:, :-1], delays_ms[:, -1]
    assert 1 < neighbours.min() < 2  # near the poles, a fifth of a slot apart
    assert neighbours.max() == pytest.approx(paper.cross_plane_km(5, 550, star=True) / paper.LIGHT_KM_PER_S * 1e3, rel=0.03)
    assert seam.max() > 40  # planes that fly against each other: half an orbit apart at times


def test_next_slot_is_ahead() -> None:
    one_slot_s = PAPER.period_s / PAPER.slots
    before, after = np.moveaxis(grid_km(PAPER, 0, round(one_slot_s * 1000))[0, :, :], 1, 0)
    turn = 2 * np.pi * one_slot_s / 86_164  # meanwhile the earth went on
    back = np.array([[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0], [0, 0, 1]])
    assert np.linalg.norm(after[:-1] @ back.T - before[1:], axis=-1).max() < 30


def test_the_epoch_is_that_of_unix_time() -> None:
    place = grid_km(PAPER, 0)[0, 0, 0]
    assert np.linalg.norm(place - [paper.EARTH_RADIUS_KM + 550, 0, 0]) < 30
    assert PAPER.sky.in_sight(Site(0, 0), 0, 80) == [Satellite(1, 1)]
    assert grid_km(PAPER, 60_000)[0, 0, 0][2] > 0  # northward


@pytest.mark.parametrize("phasing", [0, 1, 3, 4, 7])
def test_phasing_staggers_planes(phasing: int) -> None:
    """Argument of latitude of slot 1, from the height over the equator: planes rise and fall together but for the phase."""
    walker = Walker(4, 8, 600, 90, star=False, phasing=phasing)
    heights = grid_km(walker, 0)[:, 0, 0, 2] / 6971
    expected = np.sin(2 * np.pi * (np.arange(4) * phasing % 4) / 4 / 8)
    assert heights == pytest.approx(expected, abs=0.01)


@given(st.integers(0, 10**30), st.integers(1, 10))
def test_large_phasing_loses_nothing(phasing: int, planes: int) -> None:
    large, small = (Walker(planes, 4, 600, 53, star=False, phasing=one) for one in (phasing, phasing % planes))
    assert (grid_km(large, 0) == grid_km(small, 0)).all()


def test_few_satellites_of_95_are_in_sight() -> None:
    """Far fewer than the paper's ten: the reason for a logical window, and for reaching the rest over ISLs."""
    site, sky = Site(48, 11), PAPER.sky
    times = range(0, 86_400, 120)
    assert np.mean([len(sky.in_sight(site, time_s, 0)) for time_s in times]) == pytest.approx(3.8, abs=0.2)
    assert np.mean([len(sky.in_sight(site, time_s, 10)) for time_s in times]) == pytest.approx(1.6, abs=0.1)


def test_nearest_counts_down_and_sometimes_jumps_plane() -> None:
    site = Site(48, 11)
    nearest = [PAPER.sky.in_sight(site, time_s, 0)[0] for time_s in range(0, 86_400, 10)]
    changes = [(old, new) for old, new in pairwise(nearest) if old != new]
    assert 86_400 / len(changes) == pytest.approx(PAPER.period_s / PAPER.slots, rel=0.2)
    within = [(old.slot - new.slot) % PAPER.slots for old, new in changes if old.plane == new.plane]
    assert set(within) == {1}
    assert 0.1 < 1 - len(within) / len(changes) < 0.6
