"""`skymem keys`: makes, shows and replaces the keys of a mission and of its hosts and satellites."""

from pathlib import Path
from typing import Any, Final

import click

from skymemory.cli.common import (
    BadInput,
    Commands,
    constellation_option,
    json_option,
    load_constellation,
    print_json,
    progress_bar,
)
from skymemory.cli.keys_in_sky import activate, forget, load
from skymemory.cli.parameters import Place
from skymemory.common import defaults
from skymemory.security.credential import told_tenants
from skymemory.security.keyring import HostRecord, MissionKeyring, Tenants, load_keyring
from skymemory.security.mission_folder import (
    MISSION_FILE,
    MOST_TOGETHER,
    add_host,
    begin_mission,
    export_satellites,
    generation_folder,
    host_file,
    load_mission,
    mission_file,
    mission_folder,
    rotate,
)
from skymemory.wire.address import Satellite

_FIRST_HOST: Final = "host"
_FOLDER: Final = click.Path(path_type=Path)


class TenantList(click.ParamType[Tenants]):
    """Tenants on the command line: numbers with commas, or `any`."""

    name = "tenants"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Tenants:
        """Read the numbers, and sort them."""
        if value == "any":
            return "any"
        words = str(value).split(",")
        if not all(word.isascii() and word.isdigit() and len(word) <= 10 for word in words):
            self.fail(f"{value!r} is no list of tenants; allowed are any, and numbers with commas such as 0,7", param, ctx)
        return tuple(sorted(int(word) for word in words))


@click.group(cls=Commands)
def keys() -> None:
    """Keys of the links: the mission's, and those of its hosts and satellites.

    A mission has a folder with its keyring, mission.json, from which all other keys follow. For each generation of keys there are
    the keyrings of hosts and the key files of satellites. All files are for their owner only. Where a command takes a MISSION, it
    takes the folder, or mission.json in it.
    """


@keys.command()
@click.argument("folder", type=_FOLDER)
@click.option("--planes", type=click.IntRange(1, defaults.MOST_PLANES), help="Planes of the constellation of a new mission.")
@click.option("--slots", type=click.IntRange(1, defaults.MOST_SLOTS), help="Slots of each plane.")
@constellation_option
@click.option("--host", "name", help=f"Name of the host, 1 to 12 letters, digits, - and _. Default: {_FIRST_HOST}.")
@click.option(
    "--tenants",
    type=TenantList(),
    help="Tenants that it may name: any, or up to 8 numbers. Default: cache.tenant for the first host, 0 for others.",
)
@json_option
def new(
    folder: Path,
    planes: int | None,
    slots: int | None,
    constellation_path: Path | None,
    name: str | None,
    tenants: Tenants | None,
    as_json: bool,
) -> None:
    """Begin a mission in a new FOLDER, with a first host; or, in the FOLDER of a mission, make the keyring of a further host.

    The size of a new mission is that of the constellation file, unless --planes and --slots say it.
    """
    folder = mission_folder(folder)
    is_mission = (folder / MISSION_FILE).exists()
    names_size = planes is not None or slots is not None or constellation_path is not None
    if (planes is None) != (slots is None):
        raise BadInput("--planes and --slots belong together")
    if is_mission and name is not None and not names_size:
        mission, path = add_host(folder, HostRecord(name=name, tenants=tenants or (0,)))
        if as_json:
            print_json({"folder": str(folder), "host": name, "file": str(path), "generation": mission.generation})
            return
        click.echo(f"{path}: keyring of host {name}, generation {mission.generation}")
        return
    if is_mission:
        raise BadInput(f"{folder} has a mission already; --host NAME without a size makes the keyring of a further host")
    if name is not None and not names_size:
        raise BadInput(f"{folder} has no {MISSION_FILE}; --planes and --slots, or --constellation, begin a mission there")
    constellation = load_constellation(constellation_path, "none")
    size = (planes, slots) if planes and slots else (constellation.planes, constellation.slots)
    host = HostRecord(name=name or _FIRST_HOST, tenants=tenants or (constellation.cache.tenant,))
    with progress_bar("making keys") as progress:
        mission = begin_mission(folder, *size, host, progress)
    _tell(folder, mission, as_json)


@keys.command()
@click.argument("file", type=_FOLDER)
@json_option
def show(file: Path, as_json: bool) -> None:
    """Show what a keyring is, and no secret of it. FILE is a keyring, or the folder of a mission."""
    keyring = load_keyring(mission_file(file))
    report: dict[str, Any] = {
        "role": keyring.role.name.lower(),
        "name": keyring.name,
        "tenants": "any" if keyring.tenants is None else list(keyring.tenants),
        "generation": keyring.generation,
        "planes": keyring.planes,
        "slots": keyring.slots,
        "fingerprint": keyring.fingerprint,
    }
    if isinstance(keyring, MissionKeyring):
        report["hosts"] = [host.model_dump(mode="json") for host in keyring.hosts]
        report["revoked"] = list(keyring.revoked)
    if as_json:
        print_json(report)
        return
    click.echo(f"{report['role']} {keyring.name}, tenants {told_tenants(keyring.tenants)}")
    click.echo(
        f"generation {keyring.generation}, {keyring.planes} planes x {keyring.slots} slots, fingerprint {keyring.fingerprint}"
    )
    for host in keyring.hosts if isinstance(keyring, MissionKeyring) else ():
        click.echo(f"host {host.name}, tenants {told_tenants(None if host.tenants == 'any' else host.tenants)}")
    if isinstance(keyring, MissionKeyring) and keyring.revoked:
        click.echo(f"revoked: {', '.join(keyring.revoked)}")


@keys.command("rotate")
@click.argument("path", metavar="MISSION", type=_FOLDER)
@json_option
def rotate_keys(path: Path, as_json: bool) -> None:
    """Begin the next generation of keys: new files for all satellites and hosts, beside the old ones."""
    folder = mission_folder(path)
    with progress_bar("making keys") as progress:
        mission = rotate(folder, progress=progress)
    _tell(folder, mission, as_json)
    if not as_json:
        _tell_next(path, mission)


@keys.command()
@click.argument("path", metavar="MISSION", type=_FOLDER)
@click.argument("name")
@json_option
def revoke(path: Path, name: str, as_json: bool) -> None:
    """Begin the next generation of keys without the host NAME.

    Its old keyring opens satellites until they have forgotten the old keys (`load`, `activate`, `forget`).
    """
    folder = mission_folder(path)
    with progress_bar("making keys") as progress:
        mission = rotate(folder, name, progress)
    _tell(folder, mission, as_json)
    if not as_json:
        click.echo(f"satellites serve {name} until `skymem keys forget`")
        _tell_next(path, mission)


@keys.command()
@click.argument("mission_path", metavar="MISSION", type=_FOLDER)
@click.argument("folder", type=_FOLDER)
@click.option(
    "--satellite",
    "chosen",
    metavar="PLANE,SLOT",
    type=Place(),
    multiple=True,
    help="Satellite to write the file of; again for others. Default: all.",
)
@json_option
def satellites(mission_path: Path, folder: Path, chosen: tuple[Satellite, ...], as_json: bool) -> None:
    """Write the key files of satellites into a new FOLDER, PLANE-SLOT.key, one for each: a satellite gets no other.

    MISSION may also be a copy of the mission's keyring.
    """
    mission = load_mission(mission_path)
    count = mission.planes * mission.slots
    for place in chosen:
        if not (1 <= place.plane <= mission.planes and 1 <= place.slot <= mission.slots):
            named = f"--satellite {place.plane},{place.slot}"
            raise BadInput(f"{named}: planes are 1 to {mission.planes}, slots 1 to {mission.slots}")
    places = list(dict.fromkeys(chosen)) or mission.satellites()
    if len(places) > MOST_TOGETHER:
        raise BadInput(f"{count:,} satellites are too many at once; allowed are {MOST_TOGETHER:,}, named by --satellite")
    with progress_bar("making keys") as progress:
        export_satellites(mission, folder, places, progress)
    if as_json:
        print_json({"folder": str(folder), "generation": mission.generation, "satellites": places})
        return
    click.echo(f"{folder}: key files of {len(places)} satellites, generation {mission.generation}")


def _tell_next(path: Path, mission: MissionKeyring) -> None:
    """Say what follows when a new generation was made."""
    new = mission.generation
    click.echo(f"next: `skymem keys load {path}`, which gives satellites that run generation {new} beside {new - 1}")


for command in (load, activate, forget):
    keys.add_command(command)


def _tell(folder: Path, mission: MissionKeyring, as_json: bool) -> None:
    """Tell of a generation that was made."""
    count = mission.planes * mission.slots
    has_files = count <= MOST_TOGETHER
    if as_json:
        files = {host.name: str(host_file(folder, mission.generation, host.name)) for host in mission.hosts}
        print_json(
            {
                "folder": str(folder),
                "generation": mission.generation,
                "planes": mission.planes,
                "slots": mission.slots,
                "hosts": files,
                "satellites": has_files,
                "fingerprint": mission.fingerprint,
            }
        )
        return
    where = generation_folder(folder, mission.generation)
    hosts = ", ".join(host.name for host in mission.hosts) or "none"
    click.echo(f"{folder / MISSION_FILE}: the mission's keyring; keep it from all others, and keep a copy")
    click.echo(f"{where / 'hosts'}: keyrings of hosts: {hosts}")
    if has_files:
        click.echo(f"{where / 'satellites'}: key files of {count:,} satellites")
    else:
        click.echo(
            f"{count:,} satellites are too many for files of all; `skymem keys satellites --satellite` makes those that you name"
        )
