"""`skymem tables`: makes the tables of a cFS mission from a constellation file and a schedule."""

from pathlib import Path
from typing import Final

import click

from skymemory.cli.common import BadInput, json_option, print_json
from skymemory.cli.parameters import Place, require_place
from skymemory.common.secret_files import SecretFileError, replace_secret
from skymemory.common.whole_file import write_whole
from skymemory.fsw.messages import EPOCH
from skymemory.fsw.mission_tables import Moves, TablesError, key_tables
from skymemory.fsw.mission_tables import tables as all_tables
from skymemory.security.constellation_keys import KeySource
from skymemory.sky.constellation import Constellation
from skymemory.sky.orbit.schedule import Schedule, ScheduleError
from skymemory.sky.orbit.schedule_format import unix_ms
from skymemory.wire.address import Satellite

_CLOCK_EPOCH: Final = f"{EPOCH:%Y-%m-%dT%H:%M:%SZ}"
_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("constellation_file", metavar="CONSTELLATION.toml", type=_FILE)
@click.argument("schedule_file", metavar="[SCHEDULE.csv]", type=_FILE, required=False)
@click.option("-o", "--output", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder to write: defs.")
@click.option(
    "--satellite",
    "chosen",
    metavar="PLANE,SLOT",
    type=Place(),
    multiple=True,
    help="Satellite to write tables for, as cpu1; again for cpu2 and so on. Default: all, plane by plane.",
)
@click.option(
    "--clock-epoch",
    default=_CLOCK_EPOCH,
    show_default=True,
    metavar="TIME",
    help="UTC at which the satellites' clock (CFE_TIME_GetTime) shows 0; earlier by the leap seconds that it counts.",
)
@click.option("--previous-keys", is_flag=True, help="Keep the generation of keys before the newest valid, too.")
@json_option
def tables(
    constellation_file: Path,
    schedule_file: Path | None,
    output: Path,
    chosen: tuple[Satellite, ...],
    clock_epoch: str,
    previous_keys: bool,
    as_json: bool,
) -> None:
    """Write the tables of a cFS mission, as C files for its defs folder.

    Each satellite is a processor: cpuN/tables/ gets its neighbours and links. The chunk store and the schedule are the same for
    all, in tables/. skymemory_cpus.cmake names the processors for targets.cmake.

    Without a schedule no window moves. With a keyring, which is the mission's or a folder of the satellites' key files,
    cpuN/tables/ gets the satellite's keys, too, in files for their owner only.
    """
    constellation = Constellation.load(constellation_file)
    satellites = _satellites(constellation, chosen)
    try:
        clock_epoch_ms = unix_ms(clock_epoch)
    except ValueError as error:
        raise BadInput(f"--clock-epoch is {clock_epoch}; allowed are times such as {_CLOCK_EPOCH}, from 1970 to 2099") from error
    moves = None
    if schedule_file is not None:
        try:
            schedule = Schedule.load(schedule_file)
            moves = Moves.of(constellation, schedule, schedule_file.name, clock_epoch_ms)
        except (ScheduleError, TablesError) as error:
            raise BadInput(str(error)) from error
    secrets = _keys(constellation, satellites, previous_keys)
    for name, text in all_tables(constellation, satellites, moves):
        path = output / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.encode())
    for name, text in secrets.items():
        replace_secret(output / name, text.encode())
    rows, notes = 0, []
    if moves is not None:
        rows, first, centre = len(moves.track.rows), moves.track.centre(1), constellation.cache.centre
        if first != centre:
            what = f"{schedule_file} begins at {first}, cache.centre is {centre}"
            notes.append(f"{what}: until the schedule begins, only hosts with cache.centre = {first} find what they store")
    if as_json:
        cpus = [
            {"cpu": f"cpu{number}", "satellite": satellite, "address": constellation.address(*satellite)}
            for number, satellite in enumerate(satellites, start=1)
        ]
        print_json({"folder": str(output), "cpus": cpus, "rows": rows, "notes": notes})
        return
    for note in notes:
        click.echo(note, err=True)
    names = "cpu1" if len(satellites) == 1 else f"cpu1 to cpu{len(satellites)}"
    ends = " to ".join(dict.fromkeys(str(satellite) for satellite in (satellites[0], satellites[-1])))
    follows = f"{rows} rows of {schedule_file}" if rows else "no schedule"
    click.echo(f"{output}: tables of {names}, satellites {ends}; {follows}{'; with their keys' if secrets else ''}")


def _keys(constellation: Constellation, satellites: list[Satellite], previous_keys: bool) -> dict[str, str]:
    """Return the texts of the tables of keys by their paths; none without a keyring."""
    keyring = constellation.security.keyring
    found: dict[str, str] = {}
    if not keyring:
        if previous_keys:
            raise BadInput("--previous-keys needs a keyring, and security.keyring names none")
        return found
    try:
        source = KeySource(Path(keyring), previous_keys)
        for number, satellite in enumerate(satellites, start=1):
            for name, text in key_tables(source.of(satellite)):
                found[f"cpu{number}/tables/{name}"] = text
    except (SecretFileError, TablesError) as error:
        raise BadInput(str(error)) from error
    return found


def _satellites(constellation: Constellation, chosen: tuple[Satellite, ...]) -> list[Satellite]:
    for number, satellite in enumerate(chosen):
        named = f"--satellite {satellite.plane},{satellite.slot}"
        require_place(satellite, constellation.torus, f"{named} is PLANE,SLOT")
        if satellite in chosen[:number]:
            raise BadInput(f"{named} appears twice; allowed is once")
    return list(chosen) or list(constellation.torus.satellites())
