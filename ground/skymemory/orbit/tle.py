"""TLE files: two-line elements, checked, reduced to one shell and sorted into planes and slots.

A file of a real constellation holds more than its shell: spares, satellites on their way up or down, debris. What is left
out, and what is missing in the grid, is told in `Fleet.notes`.
"""

from codecs import BOM_UTF8
from collections.abc import Sequence
from dataclasses import dataclass
from math import radians
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from sgp4.api import SGP4_ERRORS, Satrec
from sgp4.io import compute_checksum

from skymemory.config import PLANES_MAX, SLOTS_MAX
from skymemory.orbit.geometry import EARTH_RADIUS_KM
from skymemory.orbit.sky import DAY_MS, UNIX_EPOCH_JD, Array, OrbitError, Sky, julian
from skymemory.placement.torus import Satellite

BAND_KM: Final = 60.0
"""height of the band of altitudes that makes a shell; OneWeb keeps its planes some kilometres apart"""
BAND_DEG: Final = 1.0
"""likewise of inclinations"""
FRESH_DAYS: Final = 14
"""after which SGP4's positions are off by tens of kilometres, and satellites have been moved"""
_SAME_PLANE_DEG: Final = 0.1
"""nodes closer than that are never told apart"""
_PLANES_APART_DEG: Final = 2.5
"""planes of any constellation are farther apart"""
_CLEAR_JUMP: Final = 3
_STRAY: Final = 10
"""a plane with so many times fewer satellites than the largest is none, but satellites on their way to one"""
_LENGTH: Final = 69
_NAME_LENGTH: Final = 24
"""of the longest"""

_FIELDS: Final = (
    (1, 18, 20, "the epoch's year"),
    (1, 20, 32, "the epoch's day"),
    (2, 8, 16, "the inclination"),
    (2, 17, 25, "the node's right ascension"),
    (2, 26, 33, "the eccentricity"),
    (2, 34, 42, "the argument of perigee"),
    (2, 43, 51, "the mean anomaly"),
    (2, 52, 63, "the mean motion"),
)
"""what SGP4 needs as plain numbers: line, first column, column behind the last, name"""


class Element(NamedTuple):
    """One satellite of a TLE file."""

    name: str
    """of the line before, else the catalogue number"""
    satrec: Satrec

    @property
    def epoch_ms(self) -> int:
        """Unix time of the elements."""
        return round(float(self.satrec.jdsatepoch - UNIX_EPOCH_JD + self.satrec.jdsatepochF) * DAY_MS)

    @property
    def altitude_km(self) -> float:
        """Mean, above the mean earth."""
        return float(self.satrec.a * self.satrec.radiusearthkm) - EARTH_RADIUS_KM


@dataclass(frozen=True)
class Fleet:
    """The satellites of a shell, at their places in the grid."""

    planes: int
    slots: int
    star: bool
    """the last plane and the first fly against each other"""
    altitude_km: float
    """mean of all, above the mean earth"""
    inclination_deg: float
    elements: dict[Satellite, Element]
    notes: list[str]
    """what a user should know, one line each"""

    @property
    def sky(self) -> Sky:
        """The satellites, to be asked where they are."""
        return Sky({place: element.satrec for place, element in self.elements.items()})


def read_tle(path: Path) -> list[Element]:
    """Every satellite of a file, with or without lines of names before the elements.

    Raises:
        OrbitError: `file:line: what is wrong; what is allowed`.
        OSError: the file cannot be read.
    """
    lines: list[tuple[int, str]] = []
    for number, content in enumerate(path.read_bytes().removeprefix(BOM_UTF8).splitlines(), 1):
        if not content.isascii():
            raise OrbitError(f"{path}:{number}: letters that are not ASCII; TLE files have none")
        if text := content.decode("ascii").rstrip():
            lines.append((number, text))
    elements: list[Element] = []
    name, rest = "", iter(lines)
    for number, text in rest:
        where = f"{path}:{number}"
        if text.startswith("2 ") and len(text) > _NAME_LENGTH:
            raise OrbitError(f"{where}: line 2 of a satellite without its line 1 before it")
        if text.startswith("1 ") and len(text) > _NAME_LENGTH:
            second, second_text = next(rest, (number, ""))
            if not second_text.startswith("2 "):
                raise OrbitError(f"{where}: line 1 of a satellite without its line 2 after it")
            elements.append(_element(name, (text, second_text), where, f"{path}:{second}"))
            name = ""
        else:
            name = text.removeprefix("0 ").strip()
    if not elements:
        raise OrbitError(f"{path}: no satellite in it; expected are lines of 69 characters that begin with 1 and 2")
    return elements


def arrange(elements: Sequence[Element], start_ms: int, end_ms: int) -> Fleet:
    """Sort satellites into planes by the right ascension of their nodes, and into slots by argument of latitude.

    The shell is the fullest band of altitudes, and the fullest of inclinations in it. The grid has as many slots as the
    largest plane has satellites; smaller planes have empty places, where their satellites leave gaps.

    Args:
        elements: of one file.
        start_ms, end_ms: Unix times between which the satellites must stay up. Planes are those of the elements' own time.

    Raises:
        OrbitError: nothing is left, or more than a constellation can have.
    """
    notes: list[str] = []
    newest = {element.satrec.satnum: element for element in sorted(elements, key=lambda one: one.epoch_ms)}
    _note(notes, len(elements) - len(newest), "with older elements of the same catalogue number")
    distinct = {_orbit(element.satrec): element for element in reversed(elements) if newest[element.satrec.satnum] is element}
    _note(notes, len(newest) - len(distinct), "with the same elements as an earlier one")
    flying = [element for element in reversed(distinct.values()) if not _failure(element.satrec, start_ms, end_ms)]
    _note(notes, len(distinct) - len(flying), "that SGP4 brings down before the end")
    level = _fullest(flying, BAND_KM, [element.altitude_km for element in flying])
    round_ones = [one for one in level if one.satrec.ecco * (EARTH_RADIUS_KM + one.altitude_km) <= BAND_KM / 2]
    shell = _fullest(round_ones, BAND_DEG, [float(np.degrees(element.satrec.inclo)) for element in round_ones])
    if not shell:
        raise OrbitError("no satellite stays in orbit from the start to the end; allowed are times near the elements' epochs")
    altitudes = [element.altitude_km for element in shell]
    band = f"{min(altitudes):,.0f} to {max(altitudes):,.0f} km"
    _note(notes, len(flying) - len(round_ones), f"off the shell at {band}")
    _note(notes, len(round_ones) - len(shell), "with another inclination")
    epoch_ms = int(np.median([element.epoch_ms for element in shell]))
    age_days = (start_ms - epoch_ms) / DAY_MS
    if abs(age_days) > FRESH_DAYS:
        than = "older" if age_days > 0 else "newer"
        notes.append(f"the elements are {abs(age_days):,.0f} days {than} than the start: positions are rough")

    nodes, latitudes = _angles(shell, epoch_ms)
    planes, clear = _planes(nodes)
    if not clear:
        notes.append(f"the nodes show no clear planes: satellites up to {_PLANES_APART_DEG:g} degrees apart are taken for one")
    largest = max(len(plane) for plane in planes)
    kept = [plane for plane in planes if len(plane) * _STRAY >= largest]
    _note(notes, sum(map(len, planes)) - sum(map(len, kept)), "between the planes, or in planes hardly begun")
    inclination = float(np.mean([element.satrec.inclo for element in shell]))
    star = _starts_behind_the_seam(kept, nodes, inclination)
    if len(kept) > PLANES_MAX or largest > SLOTS_MAX:
        raise OrbitError(f"{len(kept)} planes of up to {largest} satellites; allowed are {PLANES_MAX} and {SLOTS_MAX}")
    if any(len(plane) < largest for plane in kept):
        sizes = ", ".join(str(len(plane)) for plane in kept)
        notes.append(f"planes are of unequal size ({sizes}): {len(kept) * largest - sum(map(len, kept))} places are empty")
    places = {
        Satellite(number + 1, slot + 1): shell[one]
        for number, plane in enumerate(kept)
        for one, slot in zip(*_slots(plane, latitudes, largest), strict=True)
    }
    altitude_km, inclination_deg = round(float(np.mean(altitudes)), 3), round(float(np.degrees(inclination)), 4)
    return Fleet(len(kept), largest, star, altitude_km, inclination_deg, places, notes)


def _element(name: str, lines: tuple[str, str], where1: str, where2: str) -> Element:
    for number, (text, where) in enumerate(zip(lines, (where1, where2), strict=True), 1):
        if len(text) != _LENGTH or not text.startswith(f"{number} "):
            raise OrbitError(f'{where}: not a line {number} of elements; expected are 69 characters that begin with "{number} "')
        if not text[-1].isdigit() or compute_checksum(text) != int(text[-1]):
            expected = compute_checksum(text)
            raise OrbitError(f"{where}: the checksum is {text[-1]}; expected is {expected}, which the line's digits add up to")
        for line, first, last, what in _FIELDS:
            digits = text[first:last].strip().replace(".", "", 1)
            if line == number and not (digits.isascii() and digits.isdigit()):
                raise OrbitError(f"{where}: {what}, columns {first + 1} to {last}, is {text[first:last]!r}; allowed are numbers")
    if lines[0][2:7] != lines[1][2:7]:
        raise OrbitError(f"{where2}: catalogue number {lines[1][2:7]!r}; line 1 before it has {lines[0][2:7]!r}")
    try:
        satrec = Satrec.twoline2rv(*lines)
    except ValueError as error:
        raise OrbitError(f"{where1}: elements that SGP4 does not take: {error}") from error
    if satrec.error or satrec.no_kozai <= 0 or not 0 <= satrec.inclo <= np.pi:
        what = SGP4_ERRORS.get(satrec.error, "mean motion or inclination out of range")
        raise OrbitError(f"{where2}: no orbit about the earth: {what}")
    return Element(name or lines[0][2:7].strip(), satrec)


def _orbit(satrec: Satrec) -> tuple[float, ...]:
    """All that SGP4 knows of a satellite; who shares it is nowhere else."""
    when = satrec.jdsatepoch, satrec.jdsatepochF
    angles = satrec.inclo, satrec.nodeo, satrec.argpo, satrec.mo
    return (*when, *angles, satrec.ecco, satrec.no_kozai, satrec.bstar)


def _note(notes: list[str], count: int, why: str) -> None:
    if count:
        notes.append(f"left out: {count} {why}")


def _failure(satrec: Satrec, start_ms: int, end_ms: int) -> bool:
    """Whether SGP4 gives up on a satellite at the start, at the end, or in an hour between."""
    hours = np.append(np.arange(start_ms, end_ms, DAY_MS // 24, dtype=np.int64), end_ms)
    errors, _, _ = satrec.sgp4_array(*julian(hours))
    return bool(errors.any())


def _fullest(elements: Sequence[Element], width: float, values: Sequence[float]) -> list[Element]:
    """Those whose values lie in the band of a width that holds most."""
    if not elements:
        return []
    ordered = np.sort(values)
    counts = np.searchsorted(ordered, ordered + width, side="right") - np.arange(len(ordered))
    low = ordered[int(np.argmax(counts))]
    return [element for element, value in zip(elements, values, strict=True) if low <= value <= low + width]


def _angles(elements: Sequence[Element], unix_ms: int) -> tuple[Array, Array]:
    """Mean right ascension of the node, and mean argument of latitude, at a time; degrees, shape (elements,)."""
    (day,), (fraction,) = julian(np.array([unix_ms]))
    angles = []
    for element in elements:
        element.satrec.sgp4(day, fraction)  # leaves the mean elements of that time
        angles.append((element.satrec.Om, element.satrec.om + element.satrec.mm))
    both = np.degrees(np.array(angles)) % 360
    return both[:, 0], both[:, 1]


def _planes(nodes_deg: Array) -> tuple[list[list[int]], bool]:
    """Indices of satellites by plane, ascending from the first node behind 0 degrees; and whether there is no doubt.

    Nodes are cut where the gaps between them, by size, make their greatest jump: from those within planes, hundredths of a
    degree, to those between planes, degrees. Without a clear jump they are cut at every gap of some degrees.
    """
    order = np.argsort(nodes_deg, kind="stable")
    gaps = np.diff(nodes_deg[order], append=nodes_deg[order[0]] + 360)  # the last leads around to the first
    sizes = np.maximum(np.sort(gaps), _SAME_PLANE_DEG)
    jumps = sizes[1:] / sizes[:-1]
    if len(jumps) and sizes[-2] > _PLANES_APART_DEG:
        jumps = jumps[:-1]  # the widest gap is a star's seam, or what a constellation lacks
    clear = len(jumps) > 0 and float(jumps.max()) >= _CLEAR_JUMP
    cuts = np.flatnonzero(gaps >= (sizes[int(np.argmax(jumps)) + 1] if clear else min(_PLANES_APART_DEG, sizes[-1])))
    around = np.roll(order, -int(cuts[-1]) - 1)  # begins behind a cut
    ends = np.cumsum(np.diff(cuts, prepend=cuts[-1] - len(order)))
    return [part.tolist() for part in np.split(around, ends[:-1])], clear or float(sizes[0]) > _PLANES_APART_DEG


def _starts_behind_the_seam(planes: list[list[int]], nodes_deg: Array, inclination: float) -> bool:
    """Rotate the list so that the widest gap lies behind the last plane, if planes there fly against each other.

    Returns:
        Whether they do: a star.
    """
    centres = np.array([_mean_angle(nodes_deg[plane], 1) for plane in planes])
    gaps = (np.roll(centres, -1) - centres) % 360
    widest = int(np.argmax(gaps))
    # cosine of the angle between the two planes' normals
    turned = np.cos(inclination) ** 2 + np.sin(inclination) ** 2 * np.cos(radians(gaps[widest]))
    if len(planes) < 2 or turned >= 0:
        return False
    planes[:] = planes[widest + 1 :] + planes[: widest + 1]
    return True


def _slots(plane: Sequence[int], latitudes_deg: Array, slots: int) -> tuple[list[int], list[int]]:
    """Satellites of a plane in the order of their flight, and the slot, from 0, of each.

    Slots are 360/slots degrees long; where the first begins is what fits the plane's satellites best. Two in one slot move
    apart, in order.
    """
    phase = _mean_angle(latitudes_deg[list(plane)], slots) % (360 / slots)
    ideal = ((latitudes_deg[list(plane)] - phase) % 360) * slots / 360
    ideal = np.where(ideal > slots - 0.5, ideal - slots, ideal)
    order = np.argsort(ideal, kind="stable")
    taken: list[int] = []
    for one in ideal[order]:
        taken.append(max(round(float(one)), taken[-1] + 1 if taken else 0))
    for back in range(1, len(taken) + 1):  # what was moved beyond the end
        taken[-back] = min(taken[-back], slots - back)
    return [plane[one] for one in order], taken


def _mean_angle(angles_deg: Array, fold: int) -> float:
    """Mean of angles that repeat `fold` times a turn; between 0 and 360 / fold degrees."""
    mean = float(np.angle(np.exp(1j * np.radians(angles_deg * fold)).sum(), deg=True))
    return (mean / fold) % (360 / fold)
