"""Satellites on the grid and their positions under SGP4: one model of the sky for Walker patterns and for TLE files.

Times are Unix times in whole milliseconds; positions are earth-fixed, in km. SGP4's frame (TEME) is turned by Greenwich mean
sidereal time (IAU 1982) with UTC for UT1: the two stay within 0.9 s of each other, less than 0.5 km in orbit. Polar motion, some
10 m, is left out. Sites lie on the WGS 84 ellipsoid; elevation is geometric, without refraction.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import cos, radians, sin, sqrt

import numpy as np
from numpy.typing import NDArray
from sgp4.api import SGP4_ERRORS, Satrec, SatrecArray

from skymemory.wire.address import Satellite

Array = NDArray[np.float64]
Times = NDArray[np.int64]
Indices = NDArray[np.int64]

WGS84_RADIUS_KM = 6378.137
WGS84_FLATTENING = 1 / 298.257223563
UNIX_EPOCH_JD = 2440587.5
DAY_MS = 86_400_000
_J2000_UNIX_DAYS = 10957.5


class OrbitError(ValueError):
    """Orbits that cannot be computed; the message is one line that names the satellite and the reason."""


@dataclass(frozen=True)
class Site:
    """A place on the ground, on the ellipsoid."""

    latitude_deg: float
    """Geodetic latitude, north positive."""
    longitude_deg: float
    """Longitude, east positive."""

    @property
    def up(self) -> Array:
        """Unit vector of the ellipsoid's normal, earth-fixed; shape (3,)."""
        latitude, longitude = radians(self.latitude_deg), radians(self.longitude_deg)
        return np.array([cos(latitude) * cos(longitude), cos(latitude) * sin(longitude), sin(latitude)])

    @property
    def position_km(self) -> Array:
        """Earth-fixed position; shape (3,)."""
        eccentricity2 = WGS84_FLATTENING * (2 - WGS84_FLATTENING)
        normal = WGS84_RADIUS_KM / sqrt(1 - eccentricity2 * sin(radians(self.latitude_deg)) ** 2)
        position: Array = self.up * np.array([normal, normal, normal * (1 - eccentricity2)])
        return position


class Sky:
    """Satellites at places of a grid of planes and slots. A place may be empty."""

    def __init__(self, satrecs: Mapping[Satellite, Satrec]) -> None:
        self.satellites = tuple(sorted(satrecs))
        """Satellites plane by plane, the order of all arrays."""
        self.index = {satellite: number for number, satellite in enumerate(self.satellites)}
        self._satrecs = [satrecs[satellite] for satellite in self.satellites]
        self._all = SatrecArray(self._satrecs)

    def positions_km(self, unix_ms: Times) -> Array:
        """Return the position of every satellite at every time; shape (satellites, times, 3).

        Raises:
            OrbitError: The elements of a satellite do not reach to a time.
        """
        errors, places, _ = self._all.sgp4(*julian(unix_ms))
        if errors.any():
            which, when = (int(found) for found in np.argwhere(errors)[0])
            self._refuse(which, int(errors[which, when]))
        return _earth_fixed(places, unix_ms)

    def positions_of_km(self, which: Indices, unix_ms: Times) -> Array:
        """Return where satellite `which[i]` is at `unix_ms[i]`; shape (len(which), 3). Errors are those of `positions_km`."""
        places = np.empty((len(which), 3))
        days, fractions = julian(unix_ms)
        order = np.argsort(which, kind="stable")
        satellites, starts = np.unique(which[order], return_index=True)
        for satellite, rows in zip(satellites, np.split(order, starts[1:]), strict=True):
            errors, places[rows], _ = self._satrecs[satellite].sgp4_array(days[rows], fractions[rows])
            if errors.any():
                self._refuse(int(satellite), int(errors[errors.nonzero()][0]))
        return _earth_fixed(places, unix_ms)

    def in_sight(self, site: Site, time_s: float, min_elevation_deg: float) -> list[Satellite]:
        """Return the satellites at or above an elevation at a Unix time, nearest first."""
        away = self.positions_km(np.array([round(time_s * 1000)]))[:, 0] - site.position_km
        distance = np.linalg.norm(away, axis=-1)
        seen = away @ site.up >= sin(radians(min_elevation_deg)) * distance
        return [self.satellites[number] for number in np.argsort(distance, kind="stable") if seen[number]]

    def _refuse(self, which: int, error: int) -> None:
        raise OrbitError(f"satellite {self.satellites[which]} leaves its orbit: {SGP4_ERRORS.get(error, f'error {error}')}")


def julian(unix_ms: Times) -> tuple[Array, Array]:
    """Return the Julian day in two parts, as SGP4 takes it: the midnight, and the fraction of a day since."""
    days, rest = np.divmod(unix_ms, DAY_MS)
    return days + UNIX_EPOCH_JD, rest / DAY_MS


def sidereal_rad(unix_ms: Times) -> Array:
    """Return Greenwich mean sidereal time, IAU 1982, between 0 and 2 pi."""
    days, fractions = julian(unix_ms)
    centuries = (days - UNIX_EPOCH_JD - _J2000_UNIX_DAYS + fractions) / 36525
    drift_s = (8640184.812866 + (0.093104 - 6.2e-6 * centuries) * centuries) * centuries
    # 67310.54841 s is the formula's constant at J2000, a noon; `fractions` count from midnight
    turns = (67310.54841 + drift_s) / 86400 + fractions - 0.5
    angle: Array = 2 * np.pi * (turns % 1)
    return angle


def _earth_fixed(inertial_km: Array, unix_ms: Times) -> Array:
    angle = sidereal_rad(unix_ms)
    cosine, sine = np.cos(angle), np.sin(angle)
    x, y, z = inertial_km[..., 0], inertial_km[..., 1], inertial_km[..., 2]
    return np.stack([cosine * x + sine * y, cosine * y - sine * x, z], axis=-1)
