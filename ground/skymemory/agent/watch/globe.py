"""Positions of the satellites over the earth, for the page's globe."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from skymemory.sky.constellation import Constellation
from skymemory.sky.orbit.paper_distances import EARTH_RADIUS_KM
from skymemory.sky.orbit.positions import OrbitError, Site
from skymemory.sky.whereabouts import Playing
from skymemory.wire.address import Satellite

AHEAD_MS: Final = 120_000
"""Time between two instants; between them the page moves satellites along a great circle."""


class Globe:
    """The sky of one constellation, or of the schedule that it follows."""

    def __init__(self, constellation: Constellation, playing: Playing | None) -> None:
        site = constellation.site
        self._site = Site(site.latitude_deg, site.longitude_deg)
        self.min_elevation_deg = site.min_elevation_deg
        self._sky = constellation.walker().sky
        self._slots = constellation.slots
        if playing is not None and playing.schedule is not None:
            self._site = playing.schedule.site
            self.min_elevation_deg = playing.schedule.header.min_elevation_deg
            self._sky = playing.schedule.full_sky  # the page shows satellites in all places

    @property
    def site(self) -> dict[str, float]:
        """Return the place of the ground host."""
        site = self._site
        return {
            "latitude_deg": site.latitude_deg,
            "longitude_deg": site.longitude_deg,
            "min_elevation_deg": self.min_elevation_deg,
        }

    def told(self, sky_ms: int, rate: float) -> dict[str, Any] | None:
        """Return each satellite's place now and a little later, and who is in sight; None: unknown.

        Longitude and latitude are in degrees, altitude is in km.

        Args:
            sky_ms: Unix time in the sky.
            rate: Speed at which the time passes.
        """
        ahead_ms = max(AHEAD_MS, round(10_000 * rate))
        try:
            places = self._sky.positions_km(np.array([sky_ms, sky_ms + ahead_ms]))
            seen = self._sky.in_sight(self._site, sky_ms / 1000, self.min_elevation_deg)
        except OrbitError:
            return None
        now, later = _geographic(places[:, 0]), _geographic(places[:, 1])
        return {
            "sky_ms": sky_ms,
            "ahead_ms": ahead_ms,
            "rate": rate,
            "now": np.round(now, 2).ravel().tolist(),
            "ahead": np.round(later[:, :2], 2).ravel().tolist(),
            "in_sight": [self._index(one) for one in seen],
        }

    def _index(self, satellite: Satellite) -> int:
        return (satellite.plane - 1) * self._slots + satellite.slot - 1


def _geographic(position_km: NDArray[np.float64]) -> NDArray[np.float64]:
    """Longitude, geocentric latitude (0.2 degrees off the geodetic at most: nothing on a globe of this size), altitude."""
    radius = np.linalg.norm(position_km, axis=-1)
    longitude = np.degrees(np.arctan2(position_km[:, 1], position_km[:, 0]))
    latitude = np.degrees(np.arcsin(position_km[:, 2] / radius))
    return np.stack([longitude, latitude, radius - EARTH_RADIUS_KM], axis=-1)
