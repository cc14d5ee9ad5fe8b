"""TLE files: two-line elements, read and checked.

`orbit.fleet` makes planes and slots of them.
"""

from codecs import BOM_UTF8
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from sgp4.api import SGP4_ERRORS, Satrec
from sgp4.io import compute_checksum

from skymemory.sky.orbit.paper_distances import EARTH_RADIUS_KM
from skymemory.sky.orbit.positions import DAY_MS, UNIX_EPOCH_JD, OrbitError

_LENGTH: Final = 69
_NAME_LENGTH: Final = 24
"""Characters of the longest name."""

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
"""Fields that SGP4 needs as plain numbers: line, first column, column behind the last, name."""


class Element(NamedTuple):
    """One satellite of a TLE file."""

    name: str
    """Name in the line before, else the catalogue number."""
    satrec: Satrec
    lines: tuple[str, str]
    """Both lines as they were read."""

    @property
    def epoch_ms(self) -> int:
        """Unix time of the elements."""
        return round(float(self.satrec.jdsatepoch - UNIX_EPOCH_JD + self.satrec.jdsatepochF) * DAY_MS)

    @property
    def altitude_km(self) -> float:
        """Mean altitude above the mean earth."""
        return float(self.satrec.a * self.satrec.radiusearthkm) - EARTH_RADIUS_KM


class Catalogue(NamedTuple):
    """Content of a TLE file."""

    elements: list[Element]
    skipped: list[str]
    """Mistakes, `file:line: what is wrong; what is allowed`: each is a satellite that is left out."""


def read_tle(path: Path, *, strict: bool = False) -> Catalogue:
    """Read every satellite of a file, with or without lines of names before the elements.

    Args:
        strict: Raise a mistake instead of skipping it.

    Raises:
        OrbitError: A line is wrong: `file:line: what is wrong; what is allowed`. Or there is no satellite in the file.
        OSError: The file cannot be read.
    """
    elements: list[Element] = []
    skipped: list[str] = []

    def mistake(error: OrbitError) -> None:
        if strict:
            raise error
        skipped.append(str(error))

    lines: list[tuple[int, str]] = []
    for number, content in enumerate(path.read_bytes().removeprefix(BOM_UTF8).splitlines(), 1):
        if not content.isascii():
            mistake(OrbitError(f"{path}:{number}: the line has letters that are not ASCII; TLE files have none"))
        if text := content.decode("ascii", errors="replace").rstrip():
            lines.append((number, text))
    name, at = "", 0
    while at < len(lines):
        number, text = lines[at]
        at += 1
        where = f"{path}:{number}"
        if len(text) <= _NAME_LENGTH or text[:2] not in ("1 ", "2 "):
            name = text.removeprefix("0 ").strip()
        elif text.startswith("2 "):
            mistake(OrbitError(f"{where}: line 2 of a satellite has no line 1 before it"))
            name = ""
        elif at == len(lines) or not lines[at][1].startswith("2 "):
            mistake(OrbitError(f"{where}: line 1 of a satellite has no line 2 after it"))
            name = ""
        else:
            second, second_text = lines[at]
            at += 1
            try:
                elements.append(element_of(name, (text, second_text), where, f"{path}:{second}"))
            except OrbitError as error:
                mistake(error)
            name = ""
    if not elements:
        what = f"; {skipped[0]}" if skipped else ""
        raise OrbitError(
            f"{path}: there is no satellite in the file; expected are lines of 69 characters that begin with 1 and 2{what}"
        )
    return Catalogue(elements, skipped)


def element_of(name: str, lines: tuple[str, str], where1: str, where2: str) -> Element:
    """Check both lines of a satellite.

    Args:
        name: Name of the satellite, or "".
        where1, where2: Origin of each line, for the error.

    Raises:
        OrbitError: A line is wrong; the message says what is wrong, and what is allowed.
    """
    for number, (text, where) in enumerate(zip(lines, (where1, where2), strict=True), 1):
        if len(text) != _LENGTH or not text.startswith(f"{number} "):
            raise OrbitError(
                f'{where}: this is not line {number} of a satellite; expected are 69 characters that begin with "{number} "'
            )
        if not text[-1].isdigit() or compute_checksum(text) != int(text[-1]):
            expected = compute_checksum(text)
            raise OrbitError(f"{where}: the checksum is {text[-1]}; expected is {expected}, which the line's digits add up to")
        for line, first, last, what in _FIELDS:
            digits = text[first:last].strip().replace(".", "", 1)
            if line == number and not (digits.isascii() and digits.isdigit()):
                raise OrbitError(f"{where}: {what}, columns {first + 1} to {last}, is {text[first:last]!r}; allowed are numbers")
    if lines[0][2:7] != lines[1][2:7]:
        raise OrbitError(
            f"{where2}: the catalogue number is {lines[1][2:7]!r}; allowed is {lines[0][2:7]!r}, which line 1 before it has"
        )
    try:
        satrec = Satrec.twoline2rv(*lines)
    except ValueError as error:
        raise OrbitError(f"{where1}: SGP4 does not take these elements: {error}") from error
    if satrec.error or satrec.no_kozai <= 0 or not 0 <= satrec.inclo <= np.pi:
        what = SGP4_ERRORS.get(satrec.error, "mean motion or inclination out of range")
        raise OrbitError(f"{where2}: these elements are no orbit about the earth: {what}")
    return Element(name or lines[0][2:7].strip(), satrec, lines)
