"""`skymem schedule`: writes who is nearest to a site and who is in sight, for hours to come, to a file."""

import re
import time
from dataclasses import asdict
from pathlib import Path
from typing import Final

import click

from skymemory.cli.common import BadInput, json_option, print_json, progress_bar
from skymemory.common.defaults import MOST_PLANES, MOST_SLOTS
from skymemory.sky.file_sections import GridSettings, SiteSettings
from skymemory.sky.orbit.fleet import FRESH_DAYS, Fleet, Wanted, arrange
from skymemory.sky.orbit.positions import DAY_MS, OrbitError, Site
from skymemory.sky.orbit.schedule import Schedule, ScheduleError
from skymemory.sky.orbit.schedule_format import DURATION_MS_MAX, SUFFIXES, lines, unix_ms, utc
from skymemory.sky.orbit.tle import read_tle
from skymemory.sky.orbit.walker import Walker

_HOUR_MS: Final = 3_600_000
_MISTAKES: Final = 5
"""Most mistakes of a TLE file that are reported one by one."""
_HOURS_MAX: Final = DURATION_MS_MAX // _HOUR_MS
_ALTITUDES_KM: Final = (160, 2000)
_DEFAULT: Final = GridSettings()
_STDOUT: Final = Path("-")


@click.command()
@click.option("--walker", metavar="PATTERN:PxS", help="Walker star or delta of P planes x S slots: star:5x19.")
@click.option("--tle", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Two-line elements of a constellation.")
@click.option("--shell", metavar="DEG[,KM]", help="Inclination and altitude of the shell: 53.2,540. Default: the largest.")
@click.option("--strict", is_flag=True, help="Refuse elements with a bad line. Default: skip it and say so.")
@click.option("--altitude-km", type=float, help=f"Altitude, 160 to 2000. Default: {_DEFAULT.altitude_km:g}.")
@click.option("--inclination-deg", type=float, help=f"Inclination, 0 to 180. Default: {_DEFAULT.inclination_deg:g}.")
@click.option("--phasing", type=int, help="Phasing of the pattern: each plane is phasing/P slot ahead of the last. Default: 1.")
@click.option("--site", required=True, metavar="LAT,LON", help="Ground site in degrees, north and east positive: 52.5,13.4.")
@click.option(
    "--min-elevation-deg",
    type=float,
    default=SiteSettings().min_elevation_deg,
    show_default=True,
    help="Lowest elevation at which a satellite is in sight, 0 to 90.",
)
@click.option(
    "--start",
    help="Begin of the schedule in UTC, as in 2026-11-20T15:00:00Z. Default: now, or the time of the elements if they are old.",
)
@click.option("--hours", type=float, default=24.0, show_default=True, help=f"Length of the schedule, up to {_HOURS_MAX}.")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="FILE.csv or FILE.jsonl to write; - prints CSV, or JSON lines with --json.",
)
@json_option
def schedule(
    walker: str | None,
    tle: Path | None,
    shell: str | None,
    strict: bool,
    altitude_km: float | None,
    inclination_deg: float | None,
    phasing: int | None,
    site: str,
    min_elevation_deg: float,
    start: str | None,
    hours: float,
    output: Path,
    as_json: bool,
) -> None:
    """Write when the sky over a site changes.

    A change is another nearest satellite, another window, or another set of links that are down.
    """
    place = _site(site)
    _check("--min-elevation-deg", min_elevation_deg, 0, 90)
    if not 0 < hours <= _HOURS_MAX:
        raise BadInput(f"--hours is {hours:g}; allowed are more than 0, up to {_HOURS_MAX}")
    _check_output(output)
    _check_sky(walker, tle, shell is not None or strict, (altitude_km, inclination_deg, phasing) != (None, None, None))
    start_ms = _start(start)
    duration_ms = max(1, round(hours * _HOUR_MS))
    notes: list[str] = []
    began_s = time.perf_counter()
    try:
        orbits: Walker | Fleet
        if tle is not None:
            orbits, start_ms = _fleet(tle, _wanted(shell), strict, start_ms, duration_ms, notes)
        else:
            assert walker is not None
            orbits = _walker(walker, altitude_km, inclination_deg, phasing)
        source = f"walker {walker}" if tle is None else f"tle {tle.name}"
        if start_ms is None:
            start_ms = int(time.time()) * 1000
        with progress_bar("watching the sky") as progress:
            found = Schedule.compute(orbits, source, place, min_elevation_deg, start_ms, duration_ms, progress)
        if output == _STDOUT:
            for line in lines(found.header, found.changes, ".jsonl" if as_json else ".csv"):
                click.echo(line)
        else:
            found.save(output)
    except (OrbitError, ScheduleError) as error:
        raise BadInput(str(error)) from error
    summary = found.summary()
    if summary.gap_ms == duration_ms:
        what = f"nobody is ever in sight at {min_elevation_deg:g} degrees or higher"
        notes.append(f"{what}; the window follows the nearest satellite below")
    if as_json and output != _STDOUT:
        header = found.header.model_dump(exclude={"elements", "isl_down", "units"}, exclude_none=True)
        counts = {"rows": len(found.changes), **asdict(summary), "seconds": time.perf_counter() - began_s}
        print_json({"file": str(output), **header, **counts, "notes": notes})
        return
    for note in notes:
        click.echo(note, err=True)
    click.echo(_told(output, found), err=output == _STDOUT)


def _check_output(output: Path) -> None:
    if output != _STDOUT and output.suffix not in SUFFIXES:
        raise BadInput(f"--output is {output}; allowed are files that end in {' or '.join(SUFFIXES)}, and -")
    if not output.parent.is_dir():
        raise BadInput(f"--output is {output}; there is no folder {output.parent}")


def _check_sky(walker: str | None, tle: Path | None, of_elements: bool, of_pattern: bool) -> None:
    """Refuse a missing sky, two skies, and options of the other kind of sky."""
    if (walker is None) == (tle is None):
        raise BadInput("which sky: allowed is one of --walker and --tle")
    if tle is not None and of_pattern:
        raise BadInput("--altitude-km, --inclination-deg and --phasing go with --walker; --tle has its own")
    if tle is None and of_elements:
        raise BadInput("--shell and --strict go with --tle")


def _told(output: Path, found: Schedule) -> str:
    header, summary = found.header, found.summary()
    every = f", one every {header.duration_ms / 1000 / summary.handovers:,.0f} s" if summary.handovers else ""
    gaps = "always somebody in sight"
    if summary.gaps:
        share, longest_s = 100 * summary.gap_ms / header.duration_ms, summary.longest_gap_ms / 1000
        gaps = f"nobody in sight {share:.3g} % of the time (gaps: {summary.gaps}, the longest {longest_s:,.0f} s)"
    grid = f"{summary.satellites} satellites in {header.planes} planes x {header.slots} slots"
    return "\n".join(
        (
            f"{output}: {len(found.changes)} changes of {grid}",
            f"from {header.epoch} to {utc(header.epoch_ms + header.duration_ms)}",
            f"handovers: {summary.handovers}{every}; {summary.plane_jumps} jump to another plane; {gaps}",
            f"links: {summary.links_down} always down, {summary.links_blocked} blocked by the earth at times",
        )
    )


def _site(text: str) -> Site:
    match = re.fullmatch(r"\s*([^,\s]+)\s*,\s*([^,\s]+)\s*", text)
    try:
        latitude, longitude = (float(part) for part in match.groups()) if match else (None, None)
    except ValueError:
        latitude = longitude = None
    if latitude is None or longitude is None:
        raise BadInput(f"--site is {text}; allowed are latitude,longitude in degrees such as 52.5,13.4")
    _check("the latitude of --site", latitude, -90, 90)
    _check("the longitude of --site", longitude, -180, 180)
    return Site(latitude, longitude)


def _wanted(text: str | None) -> Wanted | None:
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]*)?)(?:,([0-9]+(?:\.[0-9]*)?))?", text)
    if match is None:
        raise BadInput(f"--shell is {text}; allowed are inclination, or inclination,altitude, such as 53.2 and 53.2,540")
    return Wanted(float(match[1]), None if match[2] is None else float(match[2]))


def _skipped(mistakes: list[str]) -> list[str]:
    """Return what was wrong with a file: the first mistakes and the number of the others."""
    told = [f"skipped: {mistake}" for mistake in mistakes[:_MISTAKES]]
    more = len(mistakes) - _MISTAKES
    return told if more <= 0 else [*told, f"skipped: {more:,} more; see --strict"]


def _check(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:  # this refuses NaN, too
        raise BadInput(f"{name} is {value:g}; allowed are {low:g} to {high:g}")


def _start(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return unix_ms(text)
    except ValueError as error:
        raise BadInput(f"--start is {text}; allowed are times such as 2026-11-20T15:00:00Z, from 1970 to 2099") from error


def _walker(text: str, altitude_km: float | None, inclination_deg: float | None, phasing: int | None) -> Walker:
    match = re.fullmatch(r"([a-z]+):([0-9]{1,5})x([0-9]{1,5})", text)
    if match is None or match[1] not in ("star", "delta"):
        raise BadInput(f"--walker is {text}; allowed are star:PxS and delta:PxS, P planes x S slots, such as star:5x19")
    planes, slots = int(match[2]), int(match[3])
    _check("planes of --walker", planes, 1, MOST_PLANES)
    _check("slots of --walker", slots, 1, MOST_SLOTS)
    altitude_km = _DEFAULT.altitude_km if altitude_km is None else altitude_km
    inclination_deg = _DEFAULT.inclination_deg if inclination_deg is None else inclination_deg
    phasing = min(1, planes - 1) if phasing is None else phasing
    _check("--altitude-km", altitude_km, *_ALTITUDES_KM)
    _check("--inclination-deg", inclination_deg, 0, 180)
    _check("--phasing", phasing, 0, planes - 1)
    return Walker(planes, slots, altitude_km, inclination_deg, match[1] == "star", phasing)


def _fleet(
    path: Path, wanted: Wanted | None, strict: bool, start_ms: int | None, duration_ms: int, notes: list[str]
) -> tuple[Fleet, int]:
    """Return the shell of a TLE file, and the time at which its schedule starts."""
    elements, skipped = read_tle(path, strict=strict)
    notes.extend(_skipped(skipped))
    if start_ms is None:
        start_ms = int(time.time()) * 1000
        newest_ms = max(element.epoch_ms for element in elements) // 1000 * 1000
        if start_ms - newest_ms > FRESH_DAYS * DAY_MS:
            age = f"{(start_ms - newest_ms) // DAY_MS:,} days old"
            notes.append(f"the newest elements are {age}: the schedule starts at their time, {utc(newest_ms)}; see --start")
            start_ms = newest_ms
    fleet = arrange(elements, start_ms, start_ms + duration_ms, wanted)
    notes.extend(fleet.notes)
    return fleet, start_ms
