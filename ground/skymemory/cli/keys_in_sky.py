"""`skymem keys load`, `activate` and `forget`: replace the keys of satellites in the sky."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import click

from skymemory.cli.common import BadInput, Failure, find_sky, json_option, print_json, progress_bar, sky_option
from skymemory.cli.parameters import Place, require_place
from skymemory.link.control import LinkStats
from skymemory.link.rekeying import ask_who_serves, take_step
from skymemory.security.constellation_keys import check_keyring
from skymemory.security.credential import GENERATION_MAX
from skymemory.security.keyring import MissionKeyring
from skymemory.security.mission_folder import load_mission, mission_file
from skymemory.security.wrapped_keys import KeyCommand
from skymemory.sky.constellation import Constellation
from skymemory.wire.address import Satellite

_FOLDER: Final = click.Path(path_type=Path)
_NAMED: Final = 8
"""Most satellites that are told of one by one."""
_TOLD: Final = {
    KeyCommand.LOAD: "{0} satellites have the keys of generation {new}",
    KeyCommand.ACTIVATE: "{0} satellites serve generation {new}",
    KeyCommand.FORGET: "{0} satellites serve generation {new}, and {old} no more",
}
_NEXT: Final = {
    KeyCommand.LOAD: "next: `{activate}`",
    KeyCommand.ACTIVATE: (
        "next: give hosts their keyrings of generation {new} (agents take them while they run, other programs when they start "
        "again), then `{forget}`"
    ),
    KeyCommand.FORGET: "done: satellites that start again need their key files of generation {new}",
}
"""Words for what follows a step that all satellites took."""
_WORDS: Final = {
    "unauthenticated": "has other keys than those of this mission's generations {old} and {new}; --old names another one",
    "bad_key": "keeps its keys: the wrap is wrong, or generation {old} is its only one",
    "not_found": "has no key of generation {old}, or did not load that of {new}: `skymem keys load` first",
    "too_large": "has no room for keys with so many satellites",
    "store_full": "has two other keys; forget one of them first",
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

    They keep serving as before. MISSION may also be a copy of the mission's keyring. The command may be repeated.
    """
    _run(KeyCommand.LOAD, **given)


@click.command()
@_options
def activate(**given: Any) -> None:
    """Let satellites serve hosts with keyrings of the mission's generation, too.

    Those with keyrings of before are still served. MISSION may also be a copy of the mission's keyring. The command may be
    repeated.
    """
    _run(KeyCommand.ACTIVATE, **given)


@click.command()
@_options
@click.option(
    "--lost",
    metavar="PLANE,SLOT",
    type=Place(),
    multiple=True,
    help="Satellite that is lost for good, and need not have the new keys; again for others.",
)
def forget(**given: Any) -> None:
    """Let satellites erase the keys of the generation before, and serve no host under them.

    None is told before all satellites of the constellation have shown that they serve the mission's generation, for whoever has
    the old keys alone loses its links. MISSION may also be a copy of the mission's keyring. The command may be repeated.
    """
    _run(KeyCommand.FORGET, **given)


def _run(
    command: KeyCommand,
    mission_path: Path,
    old: int | None,
    chosen: tuple[Satellite, ...],
    constellation_path: Path | None,
    as_json: bool,
    lost: tuple[Satellite, ...] = (),
) -> None:
    mission = load_mission(mission_path)
    commands = {step: _command_line(step, mission_path, old, constellation_path) for step in KeyCommand}
    old = _old(mission, mission_path, old)
    constellation = find_sky(constellation_path, "none").constellation
    check_keyring(mission_file(mission_path), constellation.planes, constellation.slots, constellation.cache.tenant)
    for option, named in (("--satellite", chosen), ("--lost", lost)):
        for place in named:
            require_place(place, constellation.torus, f"{option} {place.plane},{place.slot}")
            if option == "--lost" and place in chosen:
                raise BadInput(f"--lost {place.plane},{place.slot} is also a --satellite; allowed is one of the two")
    alive = [place for place in mission.satellites() if place not in lost]
    if not alive:
        raise BadInput("--lost names all satellites; allowed are fewer")
    places = list(dict.fromkeys(chosen)) or alive
    forgotten: set[int] = set()
    if command is KeyCommand.FORGET:
        served = _require_new_keys(constellation, mission, old, alive)
        forgotten = {one for place in places for one in served[place].generations if one < mission.generation}
    with progress_bar(f"{command.name.lower()}: satellites") as progress:
        taken = take_step(constellation, mission, command, old, places, progress)
    if as_json:
        report: dict[str, Any] = {
            "command": command.name.lower(),
            "generation": mission.generation,
            "old": old,
            "satellites": len(places),
            "done": len(taken.done),
            "refused": [{"satellite": place, "status": status} for place, status in taken.refused.items()],
            "silent": taken.silent,
        }
        if command is KeyCommand.FORGET:
            report["forgotten"] = sorted(forgotten)
        print_json(report)
    else:
        new = mission.generation
        no_more = " and ".join(str(one) for one in sorted({old, *forgotten}))
        click.echo(_TOLD[command].format(f"{len(taken.done)} of {len(places)}", new=new, old=no_more))
        refused = {place: _WORDS.get(status, f"says {status}") for place, status in taken.refused.items()}
        _name({place: text.format(new=new, old=old) for place, text in refused.items()}, taken.silent)
        if len(taken.done) == len(places):
            following = {step.name.lower(): line for step, line in commands.items()}
            click.echo(_NEXT[command].format(new=new, **following))
    if len(taken.done) < len(places):
        raise Failure(f"{len(places) - len(taken.done)} of {len(places)} satellites did not do it; the command may be repeated")


def _command_line(step: KeyCommand, mission_path: Path, old: int | None, constellation_path: Path | None) -> str:
    """Return the command line of a step, to be pasted: on the same sky, and with the same old generation if one was named."""
    options = [] if old is None else ["--old", str(old)]
    options += [] if constellation_path is None else ["--constellation", str(constellation_path)]
    return shlex.join(["skymem", "keys", step.name.lower(), str(mission_path), *options])


def _old(mission: MissionKeyring, path: Path, old: int | None) -> int:
    """Return the generation that satellites have."""
    if mission.generation == 1:
        raise BadInput(f"{path} is at generation 1, the first; `skymem keys rotate` makes the next one")
    if old is not None and old >= mission.generation:
        raise BadInput(f"--old is {old}; allowed are generations before that of the mission, {mission.generation}")
    return mission.generation - 1 if old is None else old


def _require_new_keys(
    constellation: Constellation, mission: MissionKeyring, old: int, places: Sequence[Satellite]
) -> dict[Satellite, LinkStats]:
    """Require that satellites serve the mission's generation, and none later, before any forgets those of before.

    Returns:
        For each satellite what it says of its keys.

    Raises:
        Failure: Some do not; they are named on standard error.
    """
    with progress_bar("who has the new keys: satellites") as progress:
        found = ask_who_serves(constellation, mission, places, progress)
    new = mission.generation
    if len(found.stats) < len(places):
        _name(dict.fromkeys(found.refused, f"answers, but does not serve generation {new}"), found.silent)
        without = f"{len(places) - len(found.stats)} of {len(places)} satellites"
        raise Failure(
            f"{without} have not shown that they serve generation {new}, so none was told to forget {old}: those would lose "
            "their links. `skymem keys load` and `activate` may be repeated; --lost PLANE,SLOT leaves out a satellite that is "
            "lost for good"
        )
    newest = {place: one.generations[-1] for place, one in found.stats.items()}
    if later := {place: f"also serves generation {one}" for place, one in newest.items() if one > new}:
        _name(later)
        raise Failure(
            f"{len(later)} of {len(places)} satellites serve a generation later than {new}, so none was told to forget {old}; "
            "allowed is the keyring of the mission's newest generation"
        )
    return found.stats


def _name(told: dict[Satellite, str], silent: Sequence[Satellite] = ()) -> None:
    """Tell of satellites what is wrong with them, and who is silent, but not of so many that they fill the screen."""
    for place, text in list(told.items())[:_NAMED]:
        click.echo(f"satellite {place} {text}", err=True)
    for place in silent[:_NAMED]:
        click.echo(f"satellite {place} does not answer", err=True)
    if (more := max(len(told) - _NAMED, 0) + max(len(silent) - _NAMED, 0)) > 0:
        click.echo(f"and {more} other satellites", err=True)
