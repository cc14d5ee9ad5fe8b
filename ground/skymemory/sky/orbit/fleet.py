"""Planes and slots of real satellites.

A file of a real constellation holds several shells, and satellites of no shell: spares, and those that climb, come down or drift
to another plane. `arrange` takes one shell, finds its planes and the slots in them, and leaves out satellites without a place
there. `Fleet.notes` says what it left out, and what is missing in the grid.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from sgp4.api import WGS72, Satrec

from skymemory.common.defaults import MOST_PLANES, MOST_SLOTS
from skymemory.sky.orbit.paper_distances import EARTH_RADIUS_KM
from skymemory.sky.orbit.planes import Planes, find_planes, mean_angle_deg
from skymemory.sky.orbit.positions import DAY_MS, Array, OrbitError, Sky, julian
from skymemory.sky.orbit.slots import Slots, assign, bases_deg, count_slots
from skymemory.sky.orbit.tle import Element
from skymemory.wire.address import Satellite

BAND_KM: Final = 60.0
"""Height of the band of altitudes that makes a shell; OneWeb keeps its planes some kilometres apart."""
BAND_DEG: Final = 0.1
"""Width of the band of inclinations that makes a shell; Starlink has shells at 53.05 and 53.22 degrees."""
PLANE_KM: Final = 2.0
"""Distance of a satellite from the middle altitude of its plane, at most: at 3 km it passes a slot in four days."""
FRESH_DAYS: Final = 14
"""Days after which SGP4's positions are off by tens of kilometres, and satellites have been moved."""
_SHELL_SHARE: Final = 40
"""Divisor of a file's largest shell: another shell has at least that part of its satellites."""
_SHELL_FEWEST: Final = 3
_NAMED: Final = 4
"""Satellites that a note names; more are counted."""
_LISTED: Final = 24
"""Planes whose sizes a note lists."""


class Shell(NamedTuple):
    """Satellites at about one altitude and one inclination."""

    inclination_deg: float
    """Median inclination."""
    altitude_km: float
    """Median altitude above the mean earth."""
    elements: list[Element]

    def __str__(self) -> str:
        """Return the shell as the option --shell takes it, and the number of satellites."""
        return f"{self.inclination_deg:.2f},{self.altitude_km:.0f} ({len(self.elements):,} satellites)"


class Wanted(NamedTuple):
    """A user's choice of a shell."""

    inclination_deg: float
    altitude_km: float | None


@dataclass(frozen=True)
class Fleet:
    """The satellites of a shell, at their places in the grid."""

    planes: int
    slots: int
    star: bool
    """True if the last plane and the first fly against each other."""
    altitude_km: float
    """Mean altitude of all, above the mean earth."""
    inclination_deg: float
    elements: dict[Satellite, Element]
    notes: list[str]
    """Notes for the user, one line each."""

    @property
    def sky(self) -> Sky:
        """The satellites, with their positions."""
        return Sky({place: element.satrec for place, element in self.elements.items()})


def arrange(elements: Sequence[Element], start_ms: int, end_ms: int, wanted: Wanted | None = None) -> Fleet:
    """Sort a shell's satellites into planes by the right ascension of their nodes, and into slots by argument of latitude.

    Args:
        elements: Elements of one file.
        start_ms, end_ms: Unix times between which the satellites must stay up. Planes are those of the elements' own time.
        wanted: Choice of a shell: the nearest to it is taken. None takes the largest.

    Raises:
        OrbitError: No satellite is left, there is no such shell, or it is larger than a constellation can be.
    """
    notes: list[str] = []
    flying = _flying(elements, start_ms, end_ms, notes)
    found = shells(flying)
    if not found:
        raise OrbitError("no satellite stays in orbit from the start to the end; allowed are times near the elements' epochs")
    shell = found[0] if wanted is None else _choose(found, wanted)
    if len(found) > 1:
        others = ", ".join(str(one) for one in found if one is not shell)
        notes.append(f"shell {shell} is taken; --shell takes another: {others}")
    inside = {id(element) for element in shell.elements}
    altitudes = [element.altitude_km for element in shell.elements]
    band = f"{min(altitudes):,.0f} to {max(altitudes):,.0f} km, {shell.inclination_deg:.2f} degrees"
    _note(notes, [element for element in flying if id(element) not in inside], f"off the shell at {band}")
    epoch_ms = int(np.median([element.epoch_ms for element in shell.elements]))
    age_days = (start_ms - epoch_ms) / DAY_MS
    if abs(age_days) > FRESH_DAYS:
        than = "older" if age_days > 0 else "newer"
        notes.append(f"the elements are {abs(age_days):,.0f} days {than} than the start: positions are rough")
    return _grid(shell, epoch_ms, notes)


def shells(elements: Sequence[Element]) -> list[Shell]:
    """Find the shells of a file, the largest first, without those that have hardly begun."""
    found: list[Shell] = []
    rest = [one for one in elements if one.satrec.ecco * (EARTH_RADIUS_KM + one.altitude_km) <= BAND_KM / 2]
    while rest:
        group = _fullest(rest, BAND_DEG, [float(np.degrees(one.satrec.inclo)) for one in rest])
        level = _fullest(group, BAND_KM, [one.altitude_km for one in group])
        inclinations = [float(np.degrees(one.satrec.inclo)) for one in level]
        found.append(Shell(float(np.median(inclinations)), float(np.median([one.altitude_km for one in level])), level))
        taken = {id(one) for one in level}
        rest = [one for one in rest if id(one) not in taken]
        if len(rest) * _SHELL_SHARE < len(found[0].elements):
            break
    found.sort(key=lambda shell: -len(shell.elements))
    enough = min(max(len(found[0].elements) / _SHELL_SHARE, _SHELL_FEWEST), len(found[0].elements)) if found else 0
    return [shell for shell in found if len(shell.elements) >= enough]


def _choose(found: Sequence[Shell], wanted: Wanted) -> Shell:
    """Return the shell that is nearest to the wanted one."""
    near = [
        shell
        for shell in found
        if abs(shell.inclination_deg - wanted.inclination_deg) <= 1
        and (wanted.altitude_km is None or abs(shell.altitude_km - wanted.altitude_km) <= BAND_KM)
    ]
    if not near:
        raise OrbitError(f"there is no such shell; allowed are {', '.join(map(str, found))}")

    def distance(shell: Shell) -> tuple[float, float]:
        off_km = 0.0 if wanted.altitude_km is None else abs(shell.altitude_km - wanted.altitude_km)
        return round(abs(shell.inclination_deg - wanted.inclination_deg) / BAND_DEG), off_km

    return min(near, key=distance)  # the largest of several that are equally near


def _flying(elements: Sequence[Element], start_ms: int, end_ms: int, notes: list[str]) -> list[Element]:
    """Leave out satellites that appear twice or come down."""
    newest = {element.satrec.satnum: element for element in sorted(elements, key=lambda one: one.epoch_ms)}
    _note(notes, len(elements) - len(newest), "with older elements of the same catalogue number")
    distinct = {_orbit(element.satrec): element for element in reversed(elements) if newest[element.satrec.satnum] is element}
    _note(notes, len(newest) - len(distinct), "with the same elements as an earlier one")
    ordered = list(reversed(distinct.values()))
    down = [element for element in ordered if _failure(element.satrec, start_ms, end_ms)]
    _note(notes, down, "that SGP4 brings down before the end")
    gone = {id(element) for element in down}
    return [element for element in ordered if id(element) not in gone]


def _grid(shell: Shell, epoch_ms: int, notes: list[str]) -> Fleet:
    elements = shell.elements
    nodes, latitudes = _angles(elements, epoch_ms)
    found = find_planes(nodes, float(np.radians(shell.inclination_deg)))
    if not found.clear:
        notes.append("the nodes show no clear planes: the satellites of a plane are up to some degrees apart")
    kept, moving = _level(found, elements)
    _note(notes, [elements[one] for one in found.strays], "between the planes, or in planes hardly begun")
    _note(notes, [elements[one] for one in moving], f"more than {PLANE_KM:g} km above or below the others of their planes")
    slots = count_slots([latitudes[plane] for plane in kept])
    if len(kept) > MOST_PLANES or slots.number > MOST_SLOTS:
        raise OrbitError(
            f"the shell has {len(kept)} planes of {slots.number} slots; allowed are up to {MOST_PLANES} and {MOST_SLOTS}"
        )
    places, spare = _places(kept, found, slots, nodes, latitudes, float(np.radians(shell.inclination_deg)))
    _note(notes, [elements[one] for one in spare], "between the slots of their planes")
    if len(places) < len(kept) * slots.number:
        counts = Counter(place.plane for place in places)
        sizes = ", ".join(str(counts[number]) for number in range(1, len(kept) + 1))
        if len(kept) > _LISTED:
            sizes = f"{min(counts.values())} to {max(counts.values())}"
        empty = len(kept) * slots.number - len(places)
        notes.append(f"planes are of unequal size ({sizes}): {empty} places are empty")
    here = {place: elements[one] for place, one in places.items()}
    altitude_km = round(float(np.mean([element.altitude_km for element in here.values()])), 3)
    inclination_deg = round(float(np.degrees(np.mean([element.satrec.inclo for element in here.values()]))), 4)
    return Fleet(len(kept), slots.number, found.star, altitude_km, inclination_deg, here, notes)


def _level(found: Planes, elements: Sequence[Element]) -> tuple[list[list[int]], list[int]]:
    """Leave satellites out of a plane whose altitude they do not have: those that climb or come down move through the slots."""
    kept: list[list[int]] = []
    moving: list[int] = []
    for plane in found.members:
        altitudes = np.array([elements[one].altitude_km for one in plane])
        level = np.abs(altitudes - np.median(altitudes)) <= PLANE_KM
        if not level.any():  # there are two groups, far from their middle
            level[:] = True
        kept.append([one for one, stays in zip(plane, level, strict=True) if stays])
        moving += [one for one, stays in zip(plane, level, strict=True) if not stays]
    return kept, moving


def _places(
    kept: Sequence[Sequence[int]], found: Planes, slots: Slots, nodes: Array, latitudes: Array, inclination: float
) -> tuple[dict[Satellite, int], list[int]]:
    centres = np.array([mean_angle_deg(nodes[list(plane)], 1) for plane in kept])
    bases = bases_deg([latitudes[list(plane)] for plane in kept], centres, slots.number, inclination, closed=not found.star)
    places: dict[Satellite, int] = {}
    spare: list[int] = []
    for number, (plane, base_deg) in enumerate(zip(kept, bases, strict=True), 1):
        taken = assign(latitudes[list(plane)], base_deg, slots)
        for one, slot in zip(plane, taken, strict=True):
            if slot is None:
                spare.append(one)
            else:
                places[Satellite(number, slot + 1)] = one
    return places, spare


def filled(elements: dict[Satellite, Element], planes: int, slots: int) -> Sky:
    """Return a sky with a satellite in every place: an empty place gets a copy of its plane's nearest, moved along the orbit.

    Args:
        elements: Elements of at least one satellite in each plane.
    """
    satrecs = {place: element.satrec for place, element in elements.items()}
    for plane in range(1, planes + 1):
        here = [place.slot for place in elements if place.plane == plane]
        for slot in range(1, slots + 1):
            if slot not in here:
                near = min(here, key=lambda other: min((other - slot) % slots, (slot - other) % slots))
                ahead = 2 * np.pi * (slot - near) / slots
                satrecs[Satellite(plane, slot)] = _moved(elements[Satellite(plane, near)].satrec, ahead)
    return Sky(satrecs)


def _moved(satrec: Satrec, ahead: float) -> Satrec:
    """Return a satellite that flies ahead by so many radians on the same orbit."""
    other = Satrec()
    days = satrec.jdsatepoch - 2433281.5 + satrec.jdsatepochF
    drag = satrec.bstar, satrec.ndot, satrec.nddot
    anomaly = (satrec.mo + ahead) % (2 * np.pi)
    other.sgp4init(WGS72, "i", 0, days, *drag, satrec.ecco, satrec.argpo, satrec.inclo, anomaly, satrec.no_kozai, satrec.nodeo)
    return other


def _orbit(satrec: Satrec) -> tuple[float, ...]:
    """Return all that SGP4 knows of a satellite; two satellites with the same are the same."""
    when = satrec.jdsatepoch, satrec.jdsatepochF
    angles = satrec.inclo, satrec.nodeo, satrec.argpo, satrec.mo
    return (*when, *angles, satrec.ecco, satrec.no_kozai, satrec.bstar)


def _note(notes: list[str], out: int | Sequence[Element], why: str) -> None:
    """Note how many satellites were left out, with their names if they are few."""
    count = out if isinstance(out, int) else len(out)
    if count:
        names = "" if isinstance(out, int) or count > _NAMED else f": {', '.join(element.name for element in out)}"
        notes.append(f"left out: {count:,} {why}{names}")


def _failure(satrec: Satrec, start_ms: int, end_ms: int) -> bool:
    """Return True if SGP4 gives up on a satellite at the start, at the end, or at an hour between."""
    hours = np.append(np.arange(start_ms, end_ms, DAY_MS // 24, dtype=np.int64), end_ms)
    errors, _, _ = satrec.sgp4_array(*julian(hours))
    return bool(errors.any())


def _fullest(elements: Sequence[Element], width: float, values: Sequence[float]) -> list[Element]:
    """Return the elements whose values lie in the fullest band of a width."""
    ordered = np.sort(values)
    counts = np.searchsorted(ordered, ordered + width, side="right") - np.arange(len(ordered))
    low = ordered[int(np.argmax(counts))]
    return [element for element, value in zip(elements, values, strict=True) if low <= value <= low + width]


def _angles(elements: Sequence[Element], unix_ms: int) -> tuple[Array, Array]:
    """Return the mean right ascension of the node and the mean argument of latitude at a time; degrees, shape (elements,)."""
    (day,), (fraction,) = julian(np.array([unix_ms]))
    angles = []
    for element in elements:
        element.satrec.sgp4(day, fraction)  # this leaves the mean elements of that time
        angles.append((element.satrec.Om, element.satrec.om + element.satrec.mm))
    both = np.degrees(np.array(angles)) % 360
    return both[:, 0], both[:, 1]
