"""Distances and delays of the paper: equations (1) to (4). Kilometres and microseconds.

In equation (3) the paper's text pairs D_m (within a plane) with steps in planes, and D_n (between planes) with steps in slots.
Its authors' simulator pairs them the other way round. So do the words before the equations, and so does this file.
"""

from math import cos, hypot, pi, sqrt

EARTH_RADIUS_KM = 6371.0
"""Mean radius, as in the authors' simulator."""
LIGHT_KM_PER_S = 299_792.458


def in_plane_km(slots: int, altitude_km: float) -> float:
    """Return equation (1): the distance of neighbours in a plane with `slots` satellites. It is constant along the orbit."""
    return _chord_km(altitude_km, 2 * pi / slots)


def cross_plane_km(planes: int, altitude_km: float, star: bool = False) -> float:
    """Return equation (2): the largest distance of neighbours in different planes, which come closest near the poles.

    The equation spreads the planes over 360 degrees, as a Walker delta does. A Walker star spreads its ascending nodes over 180
    (`star`): half the angle.
    """
    return _chord_km(altitude_km, pi / planes if star else 2 * pi / planes)


def grid_km(plane_steps: int, slot_steps: int, cross_km: float, in_km: float) -> float:
    """Return equation (3): the distance of two satellites that are some planes and some slots apart on the grid."""
    return hypot(plane_steps * cross_km, slot_steps * in_km)


def ground_km(distance_km: float, altitude_km: float) -> float:
    """Return equation (4): the distance from a site under one satellite to another that is `distance_km` from the first."""
    return hypot(distance_km, altitude_km)


def delay_us(distance_km: float) -> int:
    """Return the time that light needs, rounded to whole microseconds."""
    return round(distance_km / LIGHT_KM_PER_S * 1e6)


def _chord_km(altitude_km: float, angle: float) -> float:
    # Rounding may lift the cosine of a whole turn above 1, hence max.
    return (EARTH_RADIUS_KM + altitude_km) * sqrt(max(0.0, 2 * (1 - cos(angle))))
