"""Equations (1) to (4) of the paper."""

from math import sin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skymemory.sky.orbit import paper_distances as paper

ALTITUDES = st.floats(160, 2000)
COUNTS = st.integers(1, 500)


@given(COUNTS, ALTITUDES)
def test_equations_1_and_2_are_chords(count: int, altitude_km: float) -> None:
    chord = 2 * (paper.EARTH_RADIUS_KM + altitude_km) * abs(sin(3.141592653589793 / count))
    assert paper.in_plane_km(count, altitude_km) == pytest.approx(chord, abs=1e-3)
    assert paper.cross_plane_km(count, altitude_km) == pytest.approx(chord, abs=1e-3)
    assert paper.cross_plane_km(count, altitude_km, star=True) == pytest.approx(paper.in_plane_km(2 * count, altitude_km))


def test_known_values() -> None:
    assert paper.in_plane_km(19, 550) == pytest.approx(2278.3, abs=0.1)
    assert paper.delay_us(paper.in_plane_km(19, 550)) == 7600
    # Paper, section 2: about 50 satellites in a plane bring a hop below 3 ms
    assert paper.delay_us(paper.in_plane_km(50, 550)) < 3000
    assert paper.cross_plane_km(5, 550) == pytest.approx(8136.1, abs=0.1)  # longer than the earth lets through
    assert paper.cross_plane_km(5, 550, star=True) == pytest.approx(4277.4, abs=0.1)


def test_equations_3_and_4() -> None:
    assert paper.grid_km(3, 4, 100, 100) == pytest.approx(500)
    assert paper.grid_km(0, 2, 100, 50) == pytest.approx(100)
    assert paper.ground_km(0, 550) == 550
    assert paper.ground_km(1200, 500) == pytest.approx(1300)
    assert paper.delay_us(299.792458) == 1000
