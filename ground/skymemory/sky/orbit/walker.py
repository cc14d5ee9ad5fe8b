"""Walker constellations: stars and deltas, as elements for SGP4.

The epoch of every constellation is that of Unix time: at 1970-01-01 00:00 UTC slot 1 of plane 1 crosses the equator northward at
longitude 0 (to a fraction of a degree: SGP4 adds what the earth's shape does within a revolution). There is no drag, as for
satellites that keep their places. The nodes of all planes precess alike, so the pattern stays.

Slots fly in the order of their numbers: slot s + 1 is ahead of slot s, so that over a fixed site the nearest slot counts down
(paper, figures 7 and 8). A star spreads its ascending nodes over 180 degrees, a delta over 360. Neighbouring planes are staggered
by phasing/planes of a slot, F/P in Walker's notation i:T/P/F. Whole slots among that are left out: they would change the numbers
only, not the pattern.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import pi, radians, sqrt

import numpy as np
from sgp4.api import WGS72, Satrec

from skymemory.sky.orbit.paper_distances import EARTH_RADIUS_KM
from skymemory.sky.orbit.positions import Sky, sidereal_rad
from skymemory.wire.address import Satellite

EARTH_MU_KM3_PER_S2 = 398_600.4418
"""Gravitational parameter, WGS 84."""
_SGP4_UNIX_EPOCH_DAYS = 7306.0
"""1970-01-01 in days since 1949-12-31, from where SGP4 counts."""


@dataclass(frozen=True)
class Walker:
    """A Walker star or delta."""

    planes: int
    slots: int
    altitude_km: float
    inclination_deg: float
    star: bool
    phasing: int = 1
    """Staggering: plane p, from 0, is (p phasing mod planes)/planes slots ahead."""

    @property
    def period_s(self) -> float:
        """Seconds of one revolution on a circle of the mean earth's radius (6,371 km) plus altitude: 5,730 s at 550 km.

        This is the mean motion that the elements state. From equator to equator a revolution takes up to 0.2 % longer or shorter,
        because of the earth's bulge.
        """
        return 2 * pi * sqrt((EARTH_RADIUS_KM + self.altitude_km) ** 3 / EARTH_MU_KM3_PER_S2)

    @property
    def sky(self) -> Sky:
        """The satellites, with their positions."""
        return _sky(self)


@lru_cache(maxsize=16)
def _sky(walker: Walker) -> Sky:
    node_step = (pi if walker.star else 2 * pi) / walker.planes
    first_node = float(sidereal_rad(np.array([0]))[0])
    satrecs = {}
    for plane in range(walker.planes):
        for slot in range(walker.slots):
            ahead = plane * walker.phasing % walker.planes / walker.planes
            anomaly = 2 * pi * (slot + ahead) / walker.slots
            satrec = Satrec()
            satrec.sgp4init(
                WGS72,  # the constants that SGP4 is made for
                "i",
                0,  # catalogue number
                _SGP4_UNIX_EPOCH_DAYS,
                0.0,  # drag
                0.0,
                0.0,
                0.0,  # eccentricity
                0.0,  # argument of perigee
                radians(walker.inclination_deg),
                anomaly % (2 * pi),
                2 * pi / (walker.period_s / 60),
                (first_node + plane * node_step) % (2 * pi),
            )
            satrecs[Satellite(plane + 1, slot + 1)] = satrec
    return Sky(satrecs)
