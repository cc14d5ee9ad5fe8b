"""Walker constellations on circular orbits: positions, and what a site on the ground sees.

The model, and where it is simpler than the sky: two-body motion without nodal precession; orbits have the radius of the
mean spherical earth plus altitude, as in the paper; sites lie on the WGS 84 ellipsoid, and elevation is measured from
its normal. Time zero is the constellation's epoch: slot 1 of plane 1 crosses the equator northward at longitude 0.

Slots fly in the order of their numbers: slot s + 1 is ahead of slot s, so that over a fixed site the nearest slot
counts down (paper, figures 7 and 8). A star spreads its ascending nodes over 180 degrees, a delta over 360;
neighbouring planes are staggered by half a slot in a star (which keeps satellites apart where planes meet) and by
1/planes of a slot in a delta (a Walker pattern with phasing 1).
"""

from dataclasses import dataclass
from math import cos, pi, radians, sin, sqrt
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from skymemory.orbit.geometry import EARTH_RADIUS_KM
from skymemory.placement.torus import Satellite

if TYPE_CHECKING:
    from skymemory.config import Constellation

Array = NDArray[np.float64]

EARTH_MU_KM3_PER_S2 = 398_600.4418
"""gravitational parameter, WGS 84"""
EARTH_ROTATION_RAD_PER_S = 7.292115e-5
"""WGS 84"""
_WGS84_RADIUS_KM = 6378.137
_WGS84_FLATTENING = 1 / 298.257223563


@dataclass(frozen=True)
class Site:
    """A place on the ground, on the ellipsoid."""

    latitude_deg: float
    """geodetic, north positive"""
    longitude_deg: float
    """east positive"""

    @property
    def up(self) -> Array:
        """Unit vector of the ellipsoid's normal, earth-fixed; shape (3,)."""
        latitude, longitude = radians(self.latitude_deg), radians(self.longitude_deg)
        return np.array([cos(latitude) * cos(longitude), cos(latitude) * sin(longitude), sin(latitude)])

    @property
    def position_km(self) -> Array:
        """Earth-fixed position; shape (3,)."""
        eccentricity2 = _WGS84_FLATTENING * (2 - _WGS84_FLATTENING)
        normal = _WGS84_RADIUS_KM / sqrt(1 - eccentricity2 * sin(radians(self.latitude_deg)) ** 2)
        position: Array = self.up * np.array([normal, normal, normal * (1 - eccentricity2)])
        return position


@dataclass(frozen=True)
class Walker:
    """A Walker star or delta. Arrays are indexed [plane - 1, slot - 1]."""

    planes: int
    slots: int
    altitude_km: float
    inclination_deg: float
    star: bool

    @classmethod
    def of(cls, constellation: "Constellation") -> "Walker":
        """The orbits of a constellation file."""
        grid = constellation.grid
        return cls(grid.planes, grid.slots, grid.altitude_km, grid.inclination_deg, grid.geometry == "star")

    @property
    def radius_km(self) -> float:
        """Of the orbits."""
        return EARTH_RADIUS_KM + self.altitude_km

    @property
    def period_s(self) -> float:
        """Of one revolution; 5,730 s at 550 km."""
        return 2 * pi * sqrt(self.radius_km**3 / EARTH_MU_KM3_PER_S2)

    def inertial_km(self, time_s: float) -> Array:
        """Positions in an inertial frame; shape (planes, slots, 3)."""
        plane = np.arange(self.planes)[:, np.newaxis]
        slot = np.arange(self.slots)[np.newaxis, :]
        stagger = 0.5 if self.star else 1 / self.planes
        node = plane * ((pi if self.star else 2 * pi) / self.planes)
        angle = 2 * pi * ((slot + stagger * plane) / self.slots + time_s / self.period_s)
        inclination = radians(self.inclination_deg)
        along, across = np.cos(angle), np.sin(angle) * cos(inclination)
        x = np.cos(node) * along - np.sin(node) * across
        y = np.sin(node) * along + np.cos(node) * across
        z = np.sin(angle) * sin(inclination)
        positions: Array = self.radius_km * np.stack([x, y, z], axis=-1)
        return positions

    def earth_fixed_km(self, time_s: float) -> Array:
        """Positions in the frame that turns with the earth; shape (planes, slots, 3)."""
        turn = EARTH_ROTATION_RAD_PER_S * time_s
        rotation = np.array([[cos(turn), sin(turn), 0], [-sin(turn), cos(turn), 0], [0, 0, 1]])
        positions: Array = self.inertial_km(time_s) @ rotation.T
        return positions

    def range_km(self, site: Site, time_s: float) -> Array:
        """Distance of every satellite from a site; shape (planes, slots)."""
        distances: Array = np.linalg.norm(self.earth_fixed_km(time_s) - site.position_km, axis=-1)
        return distances

    def elevation_deg(self, site: Site, time_s: float) -> Array:
        """Elevation of every satellite above a site's horizon, negative below it; shape (planes, slots)."""
        away = self.earth_fixed_km(time_s) - site.position_km
        elevations: Array = np.degrees(np.arcsin(away @ site.up / np.linalg.norm(away, axis=-1)))
        return elevations

    def in_sight(self, site: Site, time_s: float, min_elevation_deg: float) -> list[Satellite]:
        """Satellites at or above an elevation, nearest first."""
        elevation = self.elevation_deg(site, time_s)
        order = np.argsort(self.range_km(site, time_s), axis=None, kind="stable")
        planes, slots = np.unravel_index(order, elevation.shape)
        seen = elevation[planes, slots] >= min_elevation_deg
        return [Satellite(int(plane) + 1, int(slot) + 1) for plane, slot in zip(planes[seen], slots[seen], strict=True)]

    def nearest(self, site: Site, time_s: float) -> Satellite:
        """The satellite with the smallest distance from a site, in sight or not."""
        plane, slot = divmod(int(np.argmin(self.range_km(site, time_s))), self.slots)
        return Satellite(plane + 1, slot + 1)

    def neighbour_km(self, time_s: float) -> tuple[Array, Array]:
        """Lengths of the links east (to the next slot) and south (to the next plane), with wraps; (planes, slots)."""
        here = self.inertial_km(time_s)
        east: Array = np.linalg.norm(np.roll(here, -1, axis=1) - here, axis=-1)
        south: Array = np.linalg.norm(np.roll(here, -1, axis=0) - here, axis=-1)
        return east, south
