"""`skymem replay`: lets a sky follow a schedule."""

import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, get_args

import click

from skymemory.cli.common import BadInput, Silent, find_sky, json_option, print_json, progress_bar, sky_option
from skymemory.link.control import ControlPlane
from skymemory.sky.constellation import Constellation
from skymemory.sky.orbit.schedule import Schedule, ScheduleError
from skymemory.sky.orbit.schedule_format import unix_ms, utc
from skymemory.sky.whereabouts import Playing
from skymemory.testbed.playing_record import Player
from skymemory.testbed.replay import (
    By,
    Handover,
    NobodyAnswersError,
    OvertakenError,
    ReplayError,
    follow,
    held_now,
    playing_now,
    require_all,
    row_now,
    settle,
    upload,
)
from skymemory.testbed.run_record import RunSky

_HOUR_MS: Final = 3_600_000
SPEED_MAX: Final = 1000
"""Largest speed: a window that moves more often than a few times a second has no place."""


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--speed", type=float, default=1.0, show_default=True, help=f"Speed as a multiple of real time, up to {SPEED_MAX}.")
@click.option("--from", "start", default="now", show_default=True, metavar="now|start|TIME", help="Begin in the schedule; UTC.")
@click.option("--hours", type=float, help="Hours of the schedule to play. Default: to its end.")
@click.option(
    "--by",
    type=click.Choice(get_args(By)),
    default="schedule",
    show_default=True,
    help="Who begins a handover: the satellites, by a schedule on board, or the ground, by command.",
)
@sky_option
@json_option
def replay(
    file: Path, speed: float, start: str, hours: float | None, by: By, constellation_path: Path | None, as_json: bool
) -> None:
    """Let the sky turn as in FILE.

    The window moves, and satellites hand over what they hold. Gets and puts go on.

    Ends after the last row, or by Ctrl-C; the window then stays where it is. Another replay goes on from there, and ends one
    that still runs.
    """
    _check_numbers(speed, hours)
    try:
        schedule = Schedule.load(file)
    except ScheduleError as error:
        raise BadInput(str(error)) from error
    sky = find_sky(constellation_path)
    constellation = sky.constellation
    _check_sky(file, schedule, constellation)
    from_ms = _from_ms(file, schedule, start)
    until_ms = schedule.header.duration_ms if hours is None else from_ms + round(hours * _HOUR_MS)
    before = sky.playing.load()
    try:
        playing = playing_now(constellation, schedule, from_ms, until_ms, speed, before)
    except ValueError as error:
        raise BadInput(f"{file}: {error}") from error
    done: list[Handover] = []
    interrupted: BaseException | None = None
    with ControlPlane(constellation) as control:
        _require_all(control)
        # Saved first: a store that opens from now on follows the window.
        sky.playing.save(playing, file, Player.this(by))
        if by == "command":
            _call_off(control, sky, before, file)
        try:
            if by == "schedule":  # satellites that have the schedule move by it, even if others never get it
                upload(control, playing)
            if not as_json:
                rows, real_s = len(playing.track.rows), playing.track.rows[-1][0] / 1000
                click.echo(f"{file}: {rows} rows in {real_s:,.0f} s, from {utc(schedule.header.epoch_ms + from_ms)} on")
            _look_on(control, sky, playing, by, done, quiet=as_json)
        except BaseException as reason:
            if not sky.playing.is_kept():  # somebody else has taken over the constellation
                raise
            held = held_now(playing)
            sky.playing.save(held, file)
            if isinstance(reason, OvertakenError):
                raise
            left = 0
            if by == "schedule":
                upload(control, held)
            else:
                left = settle(control, held)
            if not isinstance(reason, KeyboardInterrupt):
                raise
            but = f", but {left} satellites outside it still hold chunks" if left else ""
            click.echo(f"stopped: the window stays around {held.track.centre(row_now(held))}{but}", err=True)
            interrupted = reason
    _tell(summary(done, constellation.cache.handover_s), as_json)
    if interrupted is not None:
        raise interrupted


def _tell(report: dict[str, Any], as_json: bool) -> None:
    """Print what a replay came to."""
    if as_json:
        print_json(report)
    else:
        median = f"; {report['duration_s_median']:.2f} s each (median)" if report["chunks"] else ""
        moved = f"{report['chunks']:,} chunks, {report['bytes'] / 1e6:,.1f} MB moved"
        late = f"; {report['late']:,} late" if report["late"] else ""
        click.echo(f"{report['handovers']} handovers: {moved}{median}{late}")


def _require_all(control: ControlPlane) -> None:
    try:
        require_all(control)
    except NobodyAnswersError as error:
        raise Silent(str(error)) from error


def _check_numbers(speed: float, hours: float | None) -> None:
    if not 0 < speed <= SPEED_MAX:
        raise BadInput(f"--speed is {speed:g}; allowed are numbers above 0, up to {SPEED_MAX}")
    if hours is not None and not hours > 0:  # this refuses NaN, too
        raise BadInput(f"--hours is {hours:g}; allowed are numbers above 0")


def _check_sky(file: Path, schedule: Schedule, constellation: Constellation) -> None:
    header, cache = schedule.header, constellation.cache
    ours = f"this constellation has {constellation.planes} planes x {constellation.slots} slots"
    if (header.planes, header.slots) != (constellation.planes, constellation.slots):
        raise BadInput(f"{file} is for {header.planes} planes x {header.slots} slots; {ours}")
    if header.pattern != constellation.grid.geometry:
        raise BadInput(f"{file} is for a {header.pattern}; this constellation is a {constellation.grid.geometry}")
    if cache.layout == "hop":
        raise BadInput(
            'cache.layout is "hop", which never moves; allowed for a replay are "rotation", "rotation_hop" and "all_planes"'
        )


def _from_ms(file: Path, schedule: Schedule, start: str) -> int:
    """Return the millisecond of the schedule at which the replay begins."""
    header = schedule.header
    first, last = header.epoch, utc(header.epoch_ms + header.duration_ms)
    if start == "start":
        return 0
    try:
        at_ms = (int(time.time() * 1000) if start == "now" else unix_ms(start)) - header.epoch_ms
    except ValueError as error:
        raise BadInput(f"--from is {start}; allowed are now, start and times such as {first}") from error
    if at_ms > header.duration_ms:
        when = "now" if start == "now" else start
        raise BadInput(f"{file} ends at {last}, before {when}; --from start replays it from its beginning")
    if at_ms < 0:
        raise BadInput(f"{file} begins at {first}, after {start}; --from start replays it from its beginning")
    return at_ms


def _call_off(control: ControlPlane, sky: RunSky, before: Playing | None, file: Path) -> None:
    """Stop all satellites from moving by themselves. If some refuse, restore everything: nothing has moved yet."""
    try:
        upload(control, None)
    except BaseException:
        if not sky.playing.is_kept():
            raise
        if before is None:
            sky.playing.clear()
        else:
            sky.playing.save(before, file)
        with suppress(ReplayError):
            upload(control, before)
        raise


def _look_on(control: ControlPlane, sky: RunSky, playing: Playing, by: By, done: list[Handover], *, quiet: bool) -> None:
    last_ms = playing.track.rows[-1][0]
    with progress_bar("the sky turns") as progress:

        def tell(now_ms: int) -> None:
            if not sky.playing.is_kept():  # two replays at a time would tear blocks apart
                raise ReplayError("another replay, or `skymem down`, has ended this one")
            sky.playing.beat()
            progress(min(now_ms, last_ms), last_ms)

        for handover in follow(control, playing, by, tell=tell):
            done.append(handover)
            if not quiet:
                click.echo(handover_line(handover, control.constellation.cache.handover_s))


def handover_line(handover: Handover, expected_s: float) -> str:
    """Return what is said of a handover."""
    text = f"row {handover.row}: window around {handover.centre}; "
    if handover.chunks or handover.left:
        text += f"{handover.chunks:,} chunks, {handover.bytes / 1e6:.1f} MB, in {handover.duration_s:.2f} s"
    else:
        text += "nothing to move"
    if handover.left:
        text += f"; LATE: {handover.left:,} chunks were left when the row ended"
    elif handover.late(expected_s):
        text += f"; LATE: longer than cache.handover_s = {expected_s:g} s"
    return text


def summary(done: list[Handover], handover_s: float) -> dict[str, Any]:
    """Return all handovers of a replay, and what they come to together."""
    moves = [handover for handover in done if handover.chunks]
    durations_s = sorted(handover.duration_s for handover in moves)
    return {
        "handovers": len(done),
        "chunks": sum(handover.chunks for handover in done),
        "bytes": sum(handover.bytes for handover in done),
        "late": sum(handover.late(handover_s) for handover in done),
        "duration_s_median": durations_s[len(durations_s) // 2] if durations_s else 0.0,
        "rows": [asdict(handover) for handover in done],
    }
