"""`skymem twin`: runs a constellation in virtual time, with faults from a seed or a file; or a thousand of them."""

import shlex
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.table import Table

from skymemory.cli.common import BadInput, Failure, json_option, print_json, print_table, progress_bar
from skymemory.sky.constellation import CONFIG_FILE, Constellation
from skymemory.sky.file_sections import Cache
from skymemory.sky.orbit.positions import OrbitError
from skymemory.sky.orbit.schedule import Schedule, ScheduleError
from skymemory.twin import VIOLATIONS_MAX

if TYPE_CHECKING:
    from skymemory.twin.single_run import Report, Violation

_HOUR_MS: Final = 3_600_000
_SEEDS_MAX: Final = 1_000_000
_SEED_MAX: Final = 2**63 - 1
_OF_ONE_RUN: Final = ("seed", "digest", "first", "stopped")
"""Entries that a report of many seeds does not add up."""


@click.command()
@click.argument(
    "schedule_path", metavar="[SCHEDULE]", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the workload and the faults.")
@click.option("--faults", "faults_path", type=click.Path(dir_okay=False, path_type=Path), help="File of faults to inject.")
@click.option("--hours", type=float, help="Hours of virtual time. Default: all of the schedule.")
@click.option(
    "--constellation",
    "constellation_path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Constellation file. Default: constellation.toml of this folder if there is one, else the schedule's grid.",
)
@click.option("--seeds", type=int, metavar="N", help="Run N short runs from --seed on, instead of a schedule.")
@click.option(
    "--lost",
    is_flag=True,
    help="With --seeds: each loses as many satellites of its window as hold parity, for good, and nothing else happens.",
)
@click.option(
    "--violations-max",
    type=int,
    metavar="N",
    default=VIOLATIONS_MAX,
    show_default=True,
    help="Violations at which a run stops; 0: none. A livelock stops it in any case.",
)
@json_option
def twin(
    schedule_path: Path | None,
    seed: int,
    faults_path: Path | None,
    hours: float | None,
    constellation_path: Path | None,
    seeds: int | None,
    lost: bool,
    violations_max: int,
    as_json: bool,
) -> None:
    """Run a constellation in virtual time.

    All of its flight code runs in one process, with faults, and what must always hold is checked all the while. After a
    violation the exit status is 1, and the command that repeats the run is printed.
    """
    if (schedule_path is None) == (seeds is None):
        raise BadInput("what to run: allowed is one of SCHEDULE and --seeds")
    _check("--seed", seed, 0, _SEED_MAX)
    _check("--violations-max", violations_max, 0, _SEEDS_MAX)
    if seeds is None:
        assert schedule_path is not None
        if lost:
            raise BadInput("--lost goes with --seeds; with a schedule --faults has what is lost")
        _one(schedule_path, seed, faults_path, hours, constellation_path, violations_max, as_json)
        return
    if (faults_path, hours, constellation_path) != (None, None, None):
        raise BadInput("--faults, --hours and --constellation go with a schedule; --seeds has its own")
    _check("--seeds", seeds, 1, _SEEDS_MAX)
    _many(seed, seeds, lost, violations_max, as_json)


def _check(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise BadInput(f"{name} is {value}; allowed are {low} to {high}")


def _one(
    path: Path,
    seed: int,
    faults_path: Path | None,
    hours: float | None,
    constellation_path: Path | None,
    violations_max: int,
    as_json: bool,
) -> None:
    from skymemory.twin.faults import FaultError, Faults
    from skymemory.twin.native_twin import TwinError
    from skymemory.twin.single_run import Setup, Twin, with_keys, with_links

    command = ["skymem", "twin", str(path), "--seed", str(seed)]
    try:
        schedule = Schedule.load(path)
        constellation = _constellation(constellation_path, schedule)
        most_h = schedule.header.duration_ms / _HOUR_MS
        if hours is not None and not 0 < hours <= most_h:
            raise BadInput(f"--hours is {hours:g}; allowed are more than 0, up to {most_h:g}, the schedule's")
        duration_ms = schedule.header.duration_ms if hours is None else max(1, round(hours * _HOUR_MS))
        setup = replace(Setup.of(constellation, schedule, duration_ms), violations_max=violations_max)
        _tell_empty(schedule)
        faults = Faults() if faults_path is None else Faults.load(faults_path, setup.torus)
        setup = with_keys(setup, faults)
        for option, value in (("--faults", faults_path), ("--hours", hours), ("--constellation", constellation_path)):
            command += [] if value is None else [option, str(value)]
        command += _violations_option(violations_max)
        began_s = time.perf_counter()
        with Twin(setup, seed, with_links(faults, constellation)) as run, progress_bar("virtual time, ms") as progress:
            report = run.run(progress)
    except TwinError as error:
        raise BadInput(f"{path}: {error}") from error
    except (FaultError, OrbitError, ScheduleError) as error:
        raise BadInput(str(error)) from error
    if as_json:
        print_json({"schedule": str(path), **report.as_json(), "replay": shlex.join(command)})
    else:
        print_table(_table(report.as_json()))
    _tell_speed(report.events, began_s)
    if report.violated:
        for violation in report.first:
            click.echo(str(violation), err=True)
        if report.stopped:
            click.echo(_stopped(report), err=True)
        raise Failure(f"{report.violated} violations; this replays them: {shlex.join(command)}")


def _violations_option(violations_max: int) -> list[str]:
    """Return the options with which the replay command stops where this run did."""
    return [] if violations_max == VIOLATIONS_MAX else ["--violations-max", str(violations_max)]


def _stopped(report: "Report") -> str:
    """Return why and when a run ended before its time."""
    why = {"violations": f"the first {report.violated} violations", "livelock": "a livelock"}[report.stopped]
    return f"stopped at {report.virtual_s:,.3f} s of virtual time: {why}"


def _tell_empty(schedule: Schedule) -> None:
    """Say where the twin differs from the sky: it has a satellite in every place."""
    header = schedule.header
    empty = 0 if header.elements is None else header.planes * header.slots - len(header.elements)
    if empty:
        places = f"{empty:,} of {header.planes * header.slots:,} places have no satellite"
        click.echo(f"{places}; in the twin one flies there, in the order of its plane", err=True)


def _constellation(constellation_path: Path | None, schedule: Schedule) -> Constellation:
    """Return the constellation of the named or local file, else the defaults on the grid of the schedule."""
    if constellation_path is not None:
        return Constellation.load(constellation_path)
    if CONFIG_FILE.is_file():
        return Constellation.load(CONFIG_FILE)
    header, default = schedule.header, Cache()
    servers = min(default.servers, header.planes * header.slots)
    return Constellation().replace(
        constellation={"planes": header.planes, "slots": header.slots, "geometry": header.pattern},
        cache={
            "centre": list(header.torus.middle),
            "servers": servers,
            "parity": min(default.parity, servers - 1),
        },
    )


def _many(first: int, count: int, lost: bool, violations_max: int, as_json: bool) -> None:
    from concurrent.futures.process import BrokenProcessPool

    from skymemory.twin.seeds import run_seeds

    total: dict[str, Any] = {}
    failed: list[Report] = []
    stopped: dict[str, int] = {}
    digests: dict[int, str] = {}
    handovers_s = 0.0
    began_s = time.perf_counter()
    try:
        with progress_bar("seeds") as progress:
            for done, report in enumerate(run_seeds(first, count, violations_max=violations_max, lost=lost), 1):
                told = report.as_json()
                _add(total, {name: value for name, value in told.items() if name not in _OF_ONE_RUN})
                handovers_s += report.handovers * report.handover_mean_s
                digests[report.seed] = report.digest
                if report.violated:
                    failed.append(report)
                    stopped[report.stopped] = stopped.get(report.stopped, 0) + 1
                progress(done, count)
    except BrokenProcessPool as error:
        raise Failure(
            "the flight core ended a process of the twin. If an assertion failed, the line above names its seed, "
            f"and `skymem twin --seeds 1 --seed SEED{' --lost' if lost else ''}` replays it"
        ) from error
    total["seeds"] = count
    total["handover_mean_s"] = handovers_s / max(total["handovers"], 1)
    total["digest"] = f"{_joined(digests):016x}"
    total["stopped"] = {why: number for why, number in stopped.items() if why}
    options = [*(["--lost"] if lost else []), *_violations_option(violations_max)]
    commands = [shlex.join(["skymem", "twin", "--seeds", "1", "--seed", str(one.seed), *options]) for one in failed]
    if as_json:
        told_failed = [{"seed": one.seed, "first": str(_worst(one)), "stopped": one.stopped} for one in failed]
        print_json({"seed": first, **total, "failed": told_failed, "replay": commands})
    else:
        print_table(_table(total))
    _tell_speed(total["events"], began_s)
    for one, command in zip(failed, commands, strict=True):
        told_stop = f"; {_stopped(one)}" if one.stopped else ""
        click.echo(f"seed {one.seed}: {_worst(one)}{told_stop}; this replays it: {command}", err=True)
    if failed:
        raise Failure(f"{len(failed)} of {count} seeds violate what must always hold")


def _worst(report: "Report") -> "Violation":
    """Return the violation to show: a livelock if one is kept, else the first."""
    return next((one for one in report.first if one.invariant == "livelock"), report.first[0])


def _tell_speed(events: int, began_s: float) -> None:
    """Print how long the run took, on standard error: standard output is the same for every run of a seed."""
    took_s = time.perf_counter() - began_s
    click.echo(f"{events:,} events in {took_s:,.1f} s, {events / max(took_s, 1e-9):,.0f} a second", err=True)


def _joined(digests: dict[int, str]) -> int:
    """Return one digest for all runs."""
    total = 0
    for seed, digest in digests.items():
        total = (total * 0x100000001B3 + int(digest, 16) + seed) % 2**64
    return total


def _add(total: dict[str, Any], more: dict[str, Any]) -> None:
    for name, value in more.items():
        if isinstance(value, dict):
            _add(total.setdefault(name, {}), value)
        elif name in ("packets_on_way_most", "handover_most_s"):
            total[name] = max(total.get(name, 0), value)
        else:
            total[name] = total.get(name, 0) + value


def _table(told: dict[str, Any]) -> Table:
    def listed(counts: dict[str, int]) -> str:
        return ", ".join(f"{name} {count:,}" for name, count in counts.items() if count) or "none"

    def stops(why: str | dict[str, int]) -> str:
        return (listed(why) if isinstance(why, dict) else why) or "no"

    table = Table(show_header=False, box=None)
    rows = [
        ("seeds", f"{told['seeds']:,}") if "seeds" in told else ("seed", f"{told['seed']}"),
        ("virtual time", f"{told['virtual_s'] / 3600:,.2f} h"),
        ("events", f"{told['events']:,}"),
        ("packets", f"{told['packets']:,}, {told['packet_bytes'] / 1e6:,.1f} MB; {told['packets_on_way_most']:,} at once"),
        ("puts", f"{told['puts']:,}, of which {told['puts_failed']:,} failed"),
        ("gets", f"{told['gets']:,}"),
        ("hits", f"{told['hits']:,}, of which {told['fallback_hits']:,} at a second place"),
        ("misses", listed(told["misses"])),
        ("purges", f"{told['purges']:,}"),
        ("touches", f"{told['touches']:,}, of {told['touched']:,} blocks"),
        ("prefetches", f"{told['prefetches']:,}, of which {told['prefetches'] - told['prefetched']:,} failed"),
        ("put again", f"{told['mends']:,} blocks of which a get lacked shares"),
        ("handovers", f"{told['handovers']:,}; until the last chunk {told['handover_mean_s']:,.1f} s"),
        ("longest handover", f"{told['handover_most_s']:,.1f} s"),
        ("migrated", f"{told['migrated_chunks']:,} chunks, {told['migrated_bytes'] / 1e6:,.1f} MB"),
        ("evicted", f"{told['evicted_chunks']:,} chunks"),
        ("blocks in the end", f"{told['blocks_checked']:,} to be there, {told['blocks_misplaced']:,} not in their place"),
        ("faults", listed(told["faults"])),
        ("keys", f"{told['session_keys']:,} have sealed {told['sealed']:,} packets" if told["sealed"] else "none"),
        ("commands", f"{told['commands']:,} obeyed"),
        ("attacks", listed(told["attacks"])),
        ("in vain because", listed(told["refusals"])),
        ("violations", listed(told["violations"]) if any(told["violations"].values()) else "0"),
        ("stopped", stops(told["stopped"])),
        ("digest", told["digest"]),
    ]
    for name, value in rows:
        table.add_row(name, value)
    return table
