"""Slots of a plane, by argument of latitude.

Satellites that keep station are at multiples of one angle, in every plane; that angle makes the slots, and a hole stays a hole.
Where they do not keep station, there are as many slots as the fullest plane has satellites, and only the order of flight is kept.
"""

from collections.abc import Sequence
from math import ceil
from typing import Final, NamedTuple

import numpy as np

from skymemory.sky.orbit.planes import mean_angle_deg
from skymemory.sky.orbit.positions import Array

_REGULAR: Final = 0.8
"""Least mean length of the satellites' phases, as unit vectors, at which they keep station."""
_BEST: Final = 0.95
"""Part of the best fit from which a number of slots is good; multiples of it are as good, so the smallest is taken."""
_OFF: Final = 0.3
"""Distance from the middle of a slot, in slots, within which a satellite keeps station."""


class Slots(NamedTuple):
    """Division of a plane."""

    number: int
    regular: bool
    """True if satellites keep station in the slots."""


def count_slots(planes_deg: Sequence[Array]) -> Slots:
    """Find the number of slots of a plane.

    Args:
        planes_deg: Argument of latitude of each satellite, plane by plane.
    """
    sizes = sorted(len(plane) for plane in planes_deg)
    largest = sizes[-1]
    usual = float(np.median([size for size in sizes if 4 * size >= largest]))
    candidates = range(max(1, ceil(0.75 * usual)), 2 * largest + 1)
    fits = [
        sum(float(np.abs(np.exp(1j * np.radians(plane) * count).sum())) for plane in planes_deg) / sum(sizes)
        for count in candidates
    ]
    best = max(fits)
    if best < _REGULAR:
        return Slots(largest, regular=False)
    return Slots(next(count for count, fit in zip(candidates, fits, strict=True) if fit >= _BEST * best), regular=True)


def bases_deg(planes_deg: Sequence[Array], nodes_deg: Array, slots: int, inclination: float, *, closed: bool) -> list[float]:
    """Return the place of slot 1 of each plane: beside slot 1 of the plane before.

    Two satellites fly side by side if one is behind the other by the cosine of the inclination times the angle between the nodes.
    Around a delta that adds up to whole slots, which no grid can show: they are spread over all planes.

    Args:
        planes_deg: Argument of latitude of each satellite, plane by plane.
        nodes_deg: Right ascension of each plane.
        inclination: Radians.
        closed: True if the last plane has the first one for a neighbour.
    """
    width_deg = 360 / slots
    phases = [mean_angle_deg(plane, slots) for plane in planes_deg]
    behind = np.cos(inclination) * ((np.roll(nodes_deg, -1) - nodes_deg + 180) % 360 - 180)
    bases = [phases[0]]
    for phase, step in zip([*phases[1:], phases[0]], behind, strict=True):
        beside = bases[-1] - float(step)
        bases.append(phase + width_deg * round((beside - phase) / width_deg))
    if not closed:
        return bases[:-1]
    twist = round((bases[-1] - bases[0]) / width_deg)
    twist -= slots * round(twist / slots)
    return [base - width_deg * round(number * twist / len(phases)) for number, base in enumerate(bases[:-1])]


def assign(latitudes_deg: Array, base_deg: float, slots: Slots) -> list[int | None]:
    """Return the slot of each satellite of a plane, from 0; None if it is between the slots, or another one has its slot.

    Args:
        base_deg: Middle of the first slot.
    """
    ideal = ((latitudes_deg - base_deg) % 360) * slots.number / 360
    if not slots.regular:
        return _in_order(ideal, slots.number)
    off = np.abs(ideal - np.rint(ideal))
    taken: dict[int, int] = {}
    for one in np.argsort(off, kind="stable").tolist():
        if off[one] <= _OFF:
            taken.setdefault(int(np.rint(ideal[one])) % slots.number, one)
    places: list[int | None] = [None] * len(ideal)
    for slot, one in taken.items():
        places[one] = slot
    return places


def _in_order(ideal: Array, slots: int) -> list[int | None]:
    """Assign slots in the order of flight; two in one slot move apart."""
    ideal = np.where(ideal > slots - 0.5, ideal - slots, ideal)
    order = np.argsort(ideal, kind="stable").tolist()
    taken: list[int] = []
    for one in ideal[order]:
        taken.append(max(round(float(one)), taken[-1] + 1 if taken else 0))
    for back in range(1, len(taken) + 1):  # satellites that were moved beyond the end move back
        taken[-back] = min(taken[-back], slots - back)
    places: list[int | None] = [None] * len(ideal)
    for one, slot in zip(order, taken, strict=True):
        places[one] = slot
    return places
