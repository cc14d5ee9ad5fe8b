"""Delays of the moment."""

import numpy as np

from skymemory.sky.orbit.paper_distances import LIGHT_KM_PER_S
from skymemory.sky.orbit.positions import Site
from skymemory.sky.orbit.walker import Walker
from skymemory.sky.placement.torus import Direction, Torus
from skymemory.twin.link_delays import delays
from skymemory.wire.address import Satellite

TIMES = 1_795_186_800_000 + np.arange(130) * 60_000


def test_delays_are_distances_over_the_speed_of_light() -> None:
    walker, torus, site = Walker(5, 19, 550.0, 86.4, True), Torus(5, 19), Site(52.5, 13.4)
    found = list(delays(walker.sky, site, 5, 19, TIMES))
    assert len(found) == len(TIMES)
    for at in (0, 59, 60, 129):
        positions = walker.sky.positions_km(TIMES[at : at + 1])[:, 0]
        isl_us, ground_us = found[at]
        for satellite in (Satellite(1, 1), Satellite(3, 19), Satellite(5, 7)):
            here = walker.sky.index[satellite]
            for number, direction in enumerate(Direction):
                there = walker.sky.index[torus.neighbour(satellite, direction)]
                expected = np.linalg.norm(positions[here] - positions[there]) / LIGHT_KM_PER_S * 1e6
                assert abs(int(isl_us[here, number]) - expected) <= 0.5
            expected = np.linalg.norm(positions[here] - site.position_km) / LIGHT_KM_PER_S * 1e6
            assert abs(int(ground_us[here]) - expected) <= 0.5


def test_neighbours_in_a_plane_keep_their_distance() -> None:
    found = np.array([isl for isl, _ in delays(Walker(5, 19, 550.0, 86.4, True).sky, Site(0, 0), 5, 19, TIMES)])
    east = found[:, :, 1]
    assert 7500 < east.min() <= east.max() < 7800  # 2,278 km
    assert found[:, :, 2].max() - found[:, :, 2].min() > 5000  # planes of a star meet at the poles
