"""`skymem keys load`, `activate` and `forget`: replace the keys of satellites in the sky."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from skymemory.cli.common import BadInput, Failure, find_sky, json_option, print_json, progress_bar, sky_option
from skymemory.cli.parameters import Place, require_place
from skymemory.link.rekeying import StepTaken, take_step
from skymemory.security.constellation_keys import check_keyring
from skymemory.security.credential import GENERATION_MAX
from skymemory.security.keyring import MissionKeyring
from skymemory.security.mission_folder import load_mission, mission_file
from skymemory.security.wrapped_keys import KeyCommand
from skymemory.wire.address import Satellite

_FOLDER: Final = click.Path(path_type=Path)
_TOLD: Final = {
    KeyCommand.LOAD: "{0} satellites have the keys of generation {new}",
    KeyCommand.ACTIVATE: "{0} satellites serve generation {new}",
    KeyCommand.FORGET: "{0} satellites serve generation {new}, and {old} no more",
}
_WORDS: Final = {
    "bad_key": "{place} keeps its keys: the wrap is wrong, or generation {old} is its only one",
    "not_found": "{place} has no key of generation {old}, or did not load that of {new}: `skymem keys load` first",
    "too_large": "{place} has no room for keys with so many satellites",
    "store_full": "{place} has two other keys; forget one of them first",
}
"""Meaning of a satellite's refusal."""


def _options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the arguments that all three have."""
    for option in (
        json_option,
        sky_option,
        click.option(
            "--satellite",
            "chosen",
            metavar="PLANE,SLOT",
            type=Place(),
            multiple=True,
            help="Satellite to command; again for others. Default: all.",
        ),
        click.option(
            "--old",
            type=click.IntRange(1, GENERATION_MAX - 1),
            help="Generation of the keys that satellites have. Default: the one before that of the mission.",
        ),
        click.argument("mission_path", metavar="MISSION", type=_FOLDER),
    ):
        command = option(command)
    return command


@click.command()
@_options
def load(**given: Any) -> None:
    """Send satellites the keys of the mission's generation, wrapped under their valid ones.

    They keep serving as before. MISSION is the mission's folder, or its keyring. The command may be repeated.
    """
    _run(KeyCommand.LOAD, **given)


@click.command()
@_options
def activate(**given: Any) -> None:
    """Let satellites serve hosts with keyrings of the mission's generation, too.

    Those with keyrings of before are still served. MISSION is the mission's folder, or its keyring. The command may be repeated.
    """
    _run(KeyCommand.ACTIVATE, **given)


@click.command()
@_options
def forget(**given: Any) -> None:
    """Let satellites erase the keys of the generation before, and serve no host under them.

    MISSION is the mission's folder, or its keyring. The command may be repeated.
    """
    _run(KeyCommand.FORGET, **given)


def _run(
    command: KeyCommand,
    mission_path: Path,
    old: int | None,
    chosen: tuple[Satellite, ...],
    constellation_path: Path | None,
    as_json: bool,
) -> None:
    mission = load_mission(mission_path)
    old = _old(mission, mission_path, old)
    constellation = find_sky(constellation_path, "none").constellation
    check_keyring(mission_file(mission_path), constellation.planes, constellation.slots, constellation.cache.tenant)
    for place in chosen:
        require_place(place, constellation.torus, f"--satellite {place.plane},{place.slot}")
    places = list(dict.fromkeys(chosen)) or mission.satellites()
    with progress_bar(f"{command.name.lower()}: satellites") as progress:
        taken = take_step(constellation, mission, command, old, places, progress)
    if as_json:
        print_json(
            {
                "command": command.name.lower(),
                "generation": mission.generation,
                "old": old,
                "satellites": len(places),
                "done": len(taken.done),
                "refused": [{"satellite": place, "status": status} for place, status in taken.refused.items()],
                "silent": taken.silent,
            }
        )
    else:
        _tell(command, mission.generation, old, len(places), taken)
    if len(taken.done) < len(places):
        raise Failure(f"{len(places) - len(taken.done)} of {len(places)} satellites did not do it; the command may be repeated")


def _old(mission: MissionKeyring, path: Path, old: int | None) -> int:
    """Return the generation that satellites have."""
    if mission.generation == 1:
        raise BadInput(f"{path} is at generation 1, the first; `skymem keys rotate` makes the next one")
    if old is not None and old >= mission.generation:
        raise BadInput(f"--old is {old}; allowed are generations before that of the mission, {mission.generation}")
    return mission.generation - 1 if old is None else old


def _tell(command: KeyCommand, new: int, old: int, count: int, taken: StepTaken) -> None:
    done = f"{len(taken.done)} of {count}"
    click.echo(_TOLD[command].format(done, new=new, old=old))
    for place, status in taken.refused.items():
        text = _WORDS.get(status, "{place} says {status}")
        click.echo(text.format(place=f"satellite {place}", status=status, new=new, old=old), err=True)
    for place in taken.silent:
        click.echo(f"satellite {place} does not answer under generation {new}{_or(command, old)}", err=True)


def _or(command: KeyCommand, old: int) -> str:
    return "" if command is KeyCommand.FORGET else f" or {old}"
