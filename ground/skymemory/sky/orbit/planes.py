"""Planes of a shell, by the right ascension of the nodes of its satellites.

Satellites of a plane are close together, planes are far apart, and a few satellites are anywhere. A plane is where nodes are
dense; a satellite near no plane is a stray. Densities are tried from narrow to wide: satellites of a young constellation lie
within hundredths of a degree, those of an old one within a degree.
"""

from math import ceil
from typing import Final, NamedTuple

import numpy as np

from skymemory.sky.orbit.positions import Array

_NEAR_DEG: Final = (0.1, 0.25, 0.5, 1.0)
"""Distances within which two nodes belong together; the narrowest that shows clear planes is taken."""
_UNCLEAR_DEG: Final = 2.5
"""The same distance where no planes are clear."""
_CLEAR_SHARE: Final = 0.6
"""Share of the satellites that clear planes must have."""
_FULL: Final = 4
"""Divisor of the fullest plane's satellites: a group with at least that part of them is a plane, wherever it lies."""
_BEGUN: Final = 10
"""Divisor for a smaller group: it is a plane if its distance from other planes is a usual one there."""
_REGULAR: Final = 0.1
"""Distance of such a plane from an expected one, in distances of planes, at most."""
_ASTRAY_DEG: Final = 0.75
_ASTRAY: Final = 0.2
"""Distance of a satellite from its plane at most: in degrees, and as a share of the distance of planes."""


class Planes(NamedTuple):
    """The satellites of each plane."""

    members: list[list[int]]
    """Indices of satellites by plane, ascending from the first node behind 0 degrees, or behind a star's seam."""
    strays: list[int]
    star: bool
    """True if the last plane and the first fly against each other."""
    clear: bool
    """True if planes are much farther apart than the satellites in them."""


def find_planes(nodes_deg: Array, inclination: float) -> Planes:
    """Find the planes.

    Args:
        nodes_deg: Right ascension of each satellite's node, 0 to 360.
        inclination: Radians.
    """
    for near_deg in _NEAR_DEG:
        centres = _dense(nodes_deg, near_deg)
        members, strays = _attach(nodes_deg, centres)
        apart_deg = _gaps(centres).min()
        single = 2 * len(centres) > len(nodes_deg)  # if few satellites share a plane there may be no order at all
        wide_deg = _UNCLEAR_DEG if single else 6 * near_deg
        if len(strays) <= (1 - _CLEAR_SHARE) * len(nodes_deg) and apart_deg > wide_deg:
            return _in_order(members, strays, nodes_deg, inclination, clear=True)
    groups = _groups(nodes_deg, _UNCLEAR_DEG)
    return _in_order(groups, [], nodes_deg, inclination, clear=len(groups) == len(nodes_deg))


def mean_angle_deg(angles_deg: Array, fold: int) -> float:
    """Return the mean of angles that repeat `fold` times a turn, between 0 and 360 / fold degrees."""
    mean = float(np.angle(np.exp(1j * np.radians(angles_deg * fold)).sum(), deg=True))
    return (mean / fold) % (360 / fold)


def _groups(nodes_deg: Array, near_deg: float) -> list[list[int]]:
    """Cut the circle of nodes at every gap wider than `near_deg`, and at the widest one in any case."""
    order = np.argsort(nodes_deg, kind="stable")
    gaps = np.diff(nodes_deg[order], append=nodes_deg[order[0]] + 360)  # the last gap leads around to the first node
    cuts = np.flatnonzero(gaps > min(near_deg, gaps.max() - 1e-9))
    around = np.roll(order, -int(cuts[-1]) - 1)  # the order begins behind a cut
    ends = np.cumsum(np.diff(cuts, prepend=cuts[-1] - len(order)))
    return [part.tolist() for part in np.split(around, ends[:-1])]


def _dense(nodes_deg: Array, near_deg: float) -> Array:
    """Return the middles of the groups that are planes, ascending."""
    groups = sorted(_groups(nodes_deg, near_deg), key=len, reverse=True)
    middles = [_middle_deg(nodes_deg[group]) for group in groups]
    largest = len(groups[0])
    enough = ceil(max(largest / _FULL, 2))
    full = [middle for middle, group in zip(middles, groups, strict=True) if len(group) >= enough] or middles
    apart_deg = float(np.median(_gaps(np.sort(full)))) if len(full) > 1 else 360.0
    planes: list[float] = []
    for middle, group in zip(middles, groups, strict=True):  # the fuller of two that are too close comes first
        off_deg = min((_between(middle, other) for other in planes), default=360.0)
        regular = abs(off_deg / apart_deg - round(off_deg / apart_deg)) <= _REGULAR and len(full) > 1
        begun = len(group) * _BEGUN >= largest and regular
        if off_deg > apart_deg / 3 and (middle in full or begun):
            planes.append(middle)
    return np.sort(planes)


def _attach(nodes_deg: Array, centres: Array) -> tuple[list[list[int]], list[int]]:
    """Give each satellite to the plane that it is in."""
    off_deg = np.abs((nodes_deg[:, np.newaxis] - centres + 180) % 360 - 180)
    nearest = np.argmin(off_deg, axis=1)
    inside = off_deg.min(axis=1) <= min(_ASTRAY_DEG, _ASTRAY * _gaps(centres).min())
    members = [np.flatnonzero(inside & (nearest == plane)).tolist() for plane in range(len(centres))]
    return members, np.flatnonzero(~inside).tolist()


def _in_order(members: list[list[int]], strays: list[int], nodes_deg: Array, inclination: float, *, clear: bool) -> Planes:
    """Begin behind the widest gap if planes there fly against each other and are closer elsewhere, as in a star."""
    centres = np.array([mean_angle_deg(nodes_deg[plane], 1) for plane in members])
    order = np.argsort(centres, kind="stable")
    members, gaps = [members[one] for one in order], _gaps(centres[order])
    widest = int(np.argmax(gaps))
    # This is the cosine of the angle between the two planes' normals.
    turned = np.cos(inclination) ** 2 + np.sin(inclination) ** 2 * np.cos(np.radians(gaps[widest]))
    # Three planes of a delta are as far apart, but then all of them are.
    star = len(members) > 1 and bool(turned < 0) and gaps[widest] > 1.5 * np.median(np.delete(gaps, widest))
    if star:
        members = members[widest + 1 :] + members[: widest + 1]
    return Planes(members, strays, star, clear)


def _gaps(centres_deg: Array) -> Array:
    """Return the way from each to the next, around the circle."""
    return np.diff(centres_deg, append=centres_deg[0] + 360)


def _middle_deg(nodes_deg: Array) -> float:
    """Return the median of nodes that are close together."""
    first = float(nodes_deg[0])
    return float(first + np.median((nodes_deg - first + 180) % 360 - 180)) % 360


def _between(one_deg: float, other_deg: float) -> float:
    return abs((one_deg - other_deg + 180) % 360 - 180)
