"""Schedule files (docs/schedule.md): a header and one row for each change, as CSV or as JSON lines."""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, Literal, NamedTuple, TypeAlias

from pydantic import AfterValidator, Field, ValidationError

from skymemory.common.checked_toml import CheckedModel, numbers, shortened, shown, whole_numbers
from skymemory.common.defaults import MOST_PLANES, MOST_SLOTS
from skymemory.common.whole_file import write_whole
from skymemory.sky.orbit.positions import OrbitError
from skymemory.sky.orbit.tle import Element, element_of
from skymemory.sky.orbit.views import Link
from skymemory.sky.placement.torus import Direction, Torus
from skymemory.wire.address import Satellite

SUFFIXES: Final = (".csv", ".jsonl")
DURATION_MS_MAX: Final = 1000 * 3_600_000
"""1,000 hours: event times fit 32 bits on board."""
ROWS_MAX: Final = 1_000_000
"""Rows of a thousand satellites for a thousand hours."""
_LINE_BYTES_MAX: Final = 16 << 20
"""Bytes of a line, at most: the header of the largest grid, with every satellite and every link, is shorter."""
_COLUMNS: Final = ("time_ms", "time_utc", "event", "plane", "slot", "in_sight", "isl_down")
_UNITS: Final = (
    "time_ms: whole milliseconds since the epoch; time_utc: the same instant, ISO 8601; _km: kilometres, _deg: degrees; "
    "satellites: plane.slot, both from 1; links: satellite-satellite, the second east or south of the first"
)
_ROW_KEYS: Final = {"nearest": _COLUMNS[:5], "window": _COLUMNS}


class ScheduleError(ValueError):
    """A schedule file that cannot be used: `file:line: what is; what is allowed`."""


class NearestChange(NamedTuple):
    """A change of the nearest satellite in sight."""

    time_ms: int
    """Milliseconds since the epoch."""
    satellite: Satellite | None
    """Nearest satellite from now on; None if none is in sight."""


class WindowChange(NamedTuple):
    """A change of the window: of its centre, of the satellites in sight, or of the links that are down."""

    time_ms: int
    """Milliseconds since the epoch."""
    centre: Satellite
    """Nearest satellite, in sight or not."""
    in_sight: tuple[Satellite, ...]
    """Satellites in sight, by plane and slot."""
    links_down: frozenset[Link]
    """Links that are down besides those of `Header.isl_down`."""


Change: TypeAlias = NearestChange | WindowChange


def utc(unix_ms: int) -> str:
    """Return a time in ISO 8601 with milliseconds, 2026-11-20T15:00:00.000Z."""
    seconds, milliseconds = divmod(unix_ms, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{milliseconds:03d}Z"


def unix_ms(text: str) -> int:
    """Return the Unix time of an instant in ISO 8601; without an offset it is UTC.

    Raises:
        ValueError: The text is no instant, or not between 1970 and 2099.
    """
    instant = datetime.fromisoformat(text)
    try:
        instant = instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
    except OverflowError as error:  # the date is beyond the first or the last possible day
        raise ValueError("the year is not between 1970 and 2099") from error
    if not 1970 <= instant.year <= 2099:
        raise ValueError("the year is not between 1970 and 2099")
    since = instant - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def _epoch(text: str) -> str:
    if utc(unix_ms(text)) != text:
        raise ValueError("not in this form")  # the field's own text replaces this one
    return text


class Header(CheckedModel):
    """Header of a schedule: its sky, its site and its time."""

    format: Literal["skymemory-schedule"] = Field(default="skymemory-schedule", description='"skymemory-schedule"')
    version: Literal[2] = Field(default=2, description="2")
    source: str = Field(description="texts")
    epoch: Annotated[str, AfterValidator(_epoch)] = Field(description='UTC as in "2026-11-20T15:00:00.000Z", 1970 to 2099')
    duration_ms: int = whole_numbers(..., 1, DURATION_MS_MAX)
    planes: int = whole_numbers(..., 1, MOST_PLANES)
    slots: int = whole_numbers(..., 1, MOST_SLOTS)
    pattern: Literal["star", "delta"] = Field(description='"star" and "delta"')
    phasing: int | None = Field(
        default=None, ge=0, lt=MOST_PLANES, description=f"null, whole numbers from 0 to {MOST_PLANES - 1}"
    )
    """Phasing of a Walker pattern."""
    altitude_km: float = numbers(..., 100, 40_000)
    inclination_deg: float = numbers(..., 0, 180)
    latitude_deg: float = numbers(..., -90, 90)
    longitude_deg: float = numbers(..., -180, 180)
    min_elevation_deg: float = numbers(..., 0, 90)
    isl_down: tuple[str, ...] = Field(strict=False, description='lists of links such as ["5.1-1.1"]')
    """Links that are always down: at the seam, and behind the earth."""
    elements: dict[str, Annotated[tuple[str, str], Field(strict=False)]] | None = Field(
        default=None, description='null, two-line elements by satellite, {"1.1": ["1 44057U ...", "2 44057 ..."]}'
    )
    """Two-line elements of a TLE file, by place; places that are not named are empty. None: a satellite in every place."""
    units: str = Field(default=_UNITS, description="texts")

    @cached_property
    def epoch_ms(self) -> int:
        """Unix time of the epoch."""
        return unix_ms(self.epoch)

    @property
    def torus(self) -> Torus:
        """The grid with links over the seam: whether they are down is in the schedule."""
        return Torus(self.planes, self.slots)


class _FileHeader(Header):
    """The header in a file, which has all fields: a lost field must not look like one that never was."""

    rows: int = whole_numbers(..., 2, ROWS_MAX)
    """Number of rows that follow: a file that was cut short has fewer."""


def write(path: Path, header: Header, changes: Sequence[Change]) -> None:
    """Write a schedule file, CSV or JSON lines by its suffix.

    Raises:
        ScheduleError: The suffix is another one, or there are more changes than a file may have.
        OSError: The file cannot be written.
    """
    suffix = _suffix(path)
    if len(changes) > ROWS_MAX:
        raise ScheduleError(f"{path}: there are {len(changes):,} changes; allowed are {ROWS_MAX:,}, and fewer hours have fewer")
    write_whole(path, "".join(f"{line}\n" for line in lines(header, changes, suffix)).encode())


def lines(header: Header, changes: Sequence[Change], suffix: str) -> Iterator[str]:
    """Return the lines of a schedule file.

    Args:
        suffix: One of `SUFFIXES`, which selects the form.
    """
    fields = {**header.model_dump(), "rows": len(changes)}
    rows = (_fields(header, change) for change in changes)
    if suffix == ".csv":
        head = (f"# {name}: {json.dumps(value)}" for name, value in fields.items())
        return chain(head, [",".join(_COLUMNS)], map(_csv_line, rows))
    return map(json.dumps, chain([fields], rows))


def read(path: Path) -> tuple[Header, list[Change]]:
    """Read and check a schedule file.

    Raises:
        ScheduleError: The file is wrong; the message has file, line and what is allowed.
        OSError: The file cannot be read.
    """
    suffix = _suffix(path)
    with path.open("rb") as file:
        found = _Lines(path, file)
        header, rows = _read_csv(found) if suffix == ".csv" else _read_json_lines(found)
        changes: list[Change] = []
        places, state = _Places(header), _State()
        last = found.number
        for fields in rows:
            try:
                change = places.change(fields)
                state.check_time(change)
            except ScheduleError as error:
                raise found.mistake(str(error)) from None
            if change.time_ms > state.time_ms:
                state.check(found, last)
            if len(changes) == header.rows:
                raise found.mistake(f"more rows than the header says; allowed are {header.rows}")
            state.take(change)
            changes.append(change)
            last = found.number
        if len(changes) < header.rows:
            raise found.mistake(f"the file ends after {len(changes)} rows; the header says {header.rows}")
        state.check(found, last)
    return Header.model_validate(header.model_dump(exclude={"rows"})), changes


def _suffix(path: Path) -> str:
    if path.suffix not in SUFFIXES:
        raise ScheduleError(
            f"{path}: the suffix {path.suffix!r} names no form of a schedule; allowed are {' and '.join(SUFFIXES)}"
        )
    return path.suffix


# --- writing ------------------------------------------------------------------------------------------------------------------


def _name(satellite: Satellite) -> str:
    return f"{satellite.plane}.{satellite.slot}"


def _fields(header: Header, change: Change) -> dict[str, Any]:
    common = {"time_ms": change.time_ms, "time_utc": utc(header.epoch_ms + change.time_ms)}
    if isinstance(change, NearestChange):
        plane, slot = change.satellite or (None, None)
        return {**common, "event": "nearest", "plane": plane, "slot": slot}
    lists = {"in_sight": [_name(one) for one in change.in_sight], "isl_down": [str(link) for link in sorted(change.links_down)]}
    return {**common, "event": "window", "plane": change.centre.plane, "slot": change.centre.slot, **lists}


def _csv_line(fields: dict[str, Any]) -> str:
    values = (fields.get(column) for column in _COLUMNS)
    return ",".join("" if value is None else " ".join(value) if isinstance(value, list) else str(value) for value in values)


# --- reading ------------------------------------------------------------------------------------------------------------------


class _Lines:
    """The lines of a file that are not empty, one at a time."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file
        self.number = 0
        """Number of the line that was read last, from 1."""

    def __iter__(self) -> Iterator[str]:
        """Yield the lines. Raise ScheduleError if a line is too long, not UTF-8, or has no end."""
        while line := self._file.readline(_LINE_BYTES_MAX):
            self.number += 1
            if len(line) == _LINE_BYTES_MAX:
                raise self.mistake(f"the line is too long; allowed are less than {_LINE_BYTES_MAX:,} bytes")
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise self.mistake(f"byte {error.start + 1} of the line is not UTF-8; allowed is UTF-8") from error
            if not text.endswith("\n"):
                raise self.mistake("the file ends within the line; allowed are lines that end with a newline, the last as well")
            if text := text.strip():
                yield text

    def mistake(self, what: str, number: int | None = None) -> ScheduleError:
        """Return an error about a line, by default the line that was read last."""
        return ScheduleError(f"{self._path}:{max(1, self.number) if number is None else number}: {what}")


def _read_csv(lines: _Lines) -> tuple[_FileHeader, Iterator[dict[str, Any]]]:
    raw: dict[str, Any] = {}
    at: dict[str, int] = {}
    rows = iter(lines)
    line = ""
    for line in rows:
        if not line.startswith("#"):
            break
        name, _, value = line.removeprefix("#").partition(":")
        name = name.strip()
        _check_name(lines, name)
        if name in raw:
            raise lines.mistake(f"{name} appears twice, in line {at[name]} before; allowed is once")
        raw[name] = _json(lines, value, 'not a line of the header; allowed are "# name: value", the value as in JSON')
        at[name] = lines.number
    header = _header(lines, raw, at)
    if line != ",".join(_COLUMNS):
        raise lines.mistake(f"the columns are {shown(line)}; allowed are {','.join(_COLUMNS)}")

    def fields() -> Iterator[dict[str, Any]]:
        for line in rows:
            values = line.split(",")  # no value has a comma or quotes
            if len(values) != len(_COLUMNS):
                raise lines.mistake(f"{len(values)} columns; allowed are {len(_COLUMNS)}: {','.join(_COLUMNS)}")
            row: dict[str, Any] = dict(zip(_COLUMNS, values, strict=True))
            for column in ("time_ms", "plane", "slot"):
                row[column] = int(row[column]) if re.fullmatch(r"[0-9]{1,15}", row[column]) else row[column] or None
            for column in ("in_sight", "isl_down"):
                row[column] = row[column].split()
            if row["event"] == "nearest" and not row["in_sight"] and not row["isl_down"]:
                del row["in_sight"], row["isl_down"]
            yield row

    return header, fields()


def _read_json_lines(lines: _Lines) -> tuple[_FileHeader, Iterator[dict[str, Any]]]:
    def objects() -> Iterator[dict[str, Any]]:
        for line in lines:
            value = _json(lines, line, "not JSON; allowed is one object a line")
            if not isinstance(value, dict):
                raise lines.mistake(f"{shown(value)} is no object; allowed is one object a line")
            yield value

    rows = objects()
    return _header(lines, next(rows, {}), {}), rows


def _json(lines: _Lines, text: str, what: str) -> Any:
    """Return the value of a JSON text. `what` is the error if it is not JSON."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:
                raise lines.mistake(f"{shown(name)} appears twice; allowed is once")
            found[name] = value
        return found

    try:
        return json.loads(text, object_pairs_hook=once)
    except ScheduleError:
        raise
    except (ValueError, RecursionError) as error:  # not JSON, numbers of thousands of digits, or deeply nested lists
        raise lines.mistake(what) from error


def _check_name(lines: _Lines, name: str) -> None:
    if name not in _FileHeader.model_fields:
        raise lines.mistake(f"{shown(name)} is unknown; allowed are {', '.join(_FileHeader.model_fields)}")


def _header(lines: _Lines, raw: dict[str, Any], at: dict[str, int]) -> _FileHeader:
    """Check the header. `at` has the lines of names; a name without a line is in the line that was read last."""
    if raw.get("format") != "skymemory-schedule":
        what = 'not a schedule; allowed are files whose header has the format "skymemory-schedule"'
        raise lines.mistake(what, at.get("format", 1))
    for name in raw:
        _check_name(lines, name)
    for name, field in _FileHeader.model_fields.items():
        if name not in raw:
            raise lines.mistake(f"{name} is missing; allowed are {field.description}")
    try:
        header = _FileHeader.model_validate(raw)
    except ValidationError as error:
        name = str(error.errors(include_url=False)[0]["loc"][0])
        allowed = _FileHeader.model_fields[name].description
        raise lines.mistake(f"{name} is {shown(raw[name])}; allowed are {allowed}", at.get(name)) from error
    name = "elements"
    try:
        _Places(header)
        header_elements(header)
        name = "isl_down"
        header_links(header)
    except ScheduleError as error:
        raise lines.mistake(f"{name}: {error}", at.get(name)) from None
    return header


class _State:
    """State of the sky while rows are read one after the other; they must not contradict each other."""

    def __init__(self) -> None:
        self.time_ms = 0
        self._nearest: NearestChange | None = None
        self._window: WindowChange | None = None

    def check_time(self, change: Change) -> None:
        """Raise ScheduleError, without file and line, if a row cannot follow those before it."""
        before = self._nearest if isinstance(change, NearestChange) else self._window
        low = self.time_ms if before is None else max(self.time_ms, before.time_ms + 1)
        if change.time_ms < low:
            raise ScheduleError(f"time_ms is {change.time_ms}; allowed after the rows before it are times from {low} on")

    def check(self, lines: _Lines, number: int) -> None:
        """Check that the rows of an instant agree; all of them must have been taken, and the last is in line `number`."""
        if self._nearest is None or self._window is None:
            what = "the first rows are missing; allowed are files with rows nearest and window at time_ms 0"
            raise lines.mistake(what, number)
        _, centre, in_sight, _ = self._window
        if in_sight and centre not in in_sight:
            raise lines.mistake(f"the centre, {_name(centre)}, is not in sight, others are; allowed are those in sight", number)
        expected = centre if in_sight else None
        if self._nearest.satellite != expected:
            satellite = "empty" if self._nearest.satellite is None else _name(self._nearest.satellite)
            allowed = f"the window's centre, {_name(centre)}" if in_sight else "nobody, as nobody is in sight"
            raise lines.mistake(f"nearest is {satellite} from {self._nearest.time_ms} ms on; allowed is {allowed}", number)

    def take(self, change: Change) -> None:
        """Take the next row."""
        self.time_ms = change.time_ms
        if isinstance(change, NearestChange):
            self._nearest = change
        else:
            self._window = change


class _Places:
    """The places of a grid, for turning the fields of rows into changes."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self._torus = header.torus
        self._empty: frozenset[Satellite] = frozenset()
        if header.elements is not None:
            present = {self.satellite(name) for name in header.elements}
            self._empty = frozenset(self._torus.satellites()) - present

    def change(self, fields: dict[str, Any]) -> Change:
        """Return the change of a row. Raise ScheduleError, without file and line, if the row is wrong."""
        event = fields.get("event")
        if not isinstance(event, str) or event not in _ROW_KEYS:
            raise ScheduleError(f"event is {shown(event)}; allowed are nearest and window")
        if fields.keys() != set(_ROW_KEYS[event]):
            raise ScheduleError(f"a {event} row has {shortened(', '.join(fields))}; allowed are {', '.join(_ROW_KEYS[event])}")
        time_ms = fields["time_ms"]
        duration_ms = self._header.duration_ms
        if not _is_whole(time_ms) or not 0 <= time_ms <= duration_ms:
            raise ScheduleError(f"time_ms is {shown(time_ms)}; allowed are whole numbers from 0 to duration_ms, {duration_ms}")
        expected = utc(self._header.epoch_ms + time_ms)
        if fields["time_utc"] != expected:
            raise ScheduleError(f"time_utc is {shown(fields['time_utc'])}; time_ms makes it {expected}")
        place = fields["plane"], fields["slot"]
        if event == "nearest":
            return NearestChange(time_ms, None if place == (None, None) else self._at(*place))
        return WindowChange(
            time_ms,
            self._at(*place),
            tuple(sorted({self.satellite(name) for name in _list(fields, "in_sight")})),
            frozenset(self.link(name) for name in _list(fields, "isl_down")),
        )

    def satellite(self, name: Any) -> Satellite:
        """Return the satellite of a name such as 3.10."""
        if not isinstance(name, str) or not (match := re.fullmatch(r"([1-9][0-9]{0,2})\.([1-9][0-9]{0,2})", name)):
            raise ScheduleError(f"{shown(name)} is no satellite; allowed are plane.slot such as 3.10")
        return self._at(int(match[1]), int(match[2]))

    def link(self, name: Any) -> Link:
        """Return the link of a name such as 3.10-3.11."""
        first, dash, second = name.partition("-") if isinstance(name, str) else ("", "", "")
        if not dash:
            raise ScheduleError(f"{shown(name)} is no link; allowed are satellite-satellite such as 3.10-3.11")
        link = Link(self.satellite(first), self.satellite(second))
        ends = [self._torus.neighbour(link.origin, direction) for direction in (Direction.EAST, Direction.SOUTH)]
        if link.target not in ends:
            allowed = ", ".join(f"{first}-{_name(end)}" for end in ends if end is not None) or "none"
            raise ScheduleError(f"there is no link {name}; allowed from {first} are {allowed}")
        return link

    def _at(self, plane: Any, slot: Any) -> Satellite:
        if not _is_whole(plane) or not _is_whole(slot) or (plane, slot) not in self._torus:
            last = f"{self._torus.planes} and {self._torus.slots}"
            raise ScheduleError(f"plane and slot are {shown(plane)} and {shown(slot)}; allowed are 1 and 1 to {last}")
        satellite = Satellite(plane, slot)
        if satellite in self._empty:
            raise ScheduleError(f"there is no satellite {_name(satellite)}; allowed are those of the header's elements")
        return satellite


def header_elements(header: Header) -> dict[Satellite, Element] | None:
    """Read the two-line elements of `Header.elements`; None if there are none.

    Raises:
        ScheduleError: A key is no place, or its elements are wrong.
    """
    if header.elements is None:
        return None
    places = _Places(header)
    found: dict[Satellite, Element] = {}
    for name, lines in header.elements.items():
        try:
            found[places.satellite(name)] = element_of("", lines, f"{name}, line 1", f"{name}, line 2")
        except OrbitError as error:
            raise ScheduleError(str(error)) from None
    for plane in range(1, header.planes + 1):
        if not any(place.plane == plane for place in found):
            raise ScheduleError(f"plane {plane} has no satellite; allowed are planes with one or more")
    return found


def header_links(header: Header) -> frozenset[Link]:
    """Return the links of `Header.isl_down`."""
    places = _Places(header)
    return frozenset(places.link(name) for name in header.isl_down)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _list(fields: dict[str, Any], name: str) -> list[Any]:
    value = fields[name]
    if not isinstance(value, list):
        raise ScheduleError(f"{name} is {shown(value)}; allowed are lists of texts")
    return value
