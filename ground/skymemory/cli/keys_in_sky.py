"""`skymem keys load`, `activate` and `forget`: replace the keys of satellites in the sky."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from skymemory.cli.common import BadInput, Failure, Silent, find_sky, json_option, print_json, progress_bar, sky_option
from skymemory.cli.parameters import Place, require_place
from skymemory.link.other_versions import other_versions, version_words
from skymemory.link.rekeying import ServedKeys, ask_who_serves, take_step
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
    KeyCommand.LOAD: "next: {activate}",
    KeyCommand.ACTIVATE: (
        "next: give hosts their keyrings of generation {new} (`skymem agent` and `skymem serve` take them while they run, other "
        "programs when they start again), then {forget}"
    ),
    KeyCommand.FORGET: "done: satellites that start again need their key files of generation {new}",
}
"""Words for what follows a step that all satellites took."""
_WORDS: Final = {
    "unauthenticated": "has other keys than those of this mission's generations {old} and {new}; --old names another one",
    "bad_key": "keeps its keys: the wrap is wrong, or generation {old} is its only one",
    "not_found": "has no key of generation {old}, or did not load that of {new}: `skymem keys load` first",
    "too_large": "has no room for keys with so many satellites",
    "store_full": "has two other keys; `skymem keys forget --old` makes room",
}
"""Meaning of a satellite's refusal."""
_LONELY: Final = "has no keys of generation {new} with other satellites yet"
"""Words about a satellite whose `load` has not ended."""
_Line = Callable[[KeyCommand, int | None], str]
"""Function that returns the command line of a step, with an old generation."""


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
    """Let satellites erase the keys of all generations before, and serve no host under them.

    None is told before all satellites of the constellation have shown that they serve the mission's generation, for whoever has
    the old keys alone loses its links. With --old they may all serve another one that is later: so satellites that have two
    keys already get room for those of the mission. MISSION may also be a copy of the mission's keyring. The command may be
    repeated.
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
    mission = newest = load_mission(mission_path)
    line = partial(_command_line, mission_path, constellation_path)
    old_named, old = old, _old(mission, mission_path, old)
    constellation = find_sky(constellation_path, "none").constellation
    check_keyring(mission_file(mission_path), constellation.planes, constellation.slots, constellation.cache.tenant)
    alive, places = _named_places(constellation, chosen, lost)
    forgotten: set[int] = set()
    if command is KeyCommand.FORGET:
        served = _ask_all(constellation, mission, old, alive)
        mission = _speaker(served, mission, old, alive, line, constellation, is_named=old_named is not None)
        _require_nothing_later(served, newest, old)
        _require_peer_keys(served, mission, old, line(KeyCommand.LOAD, old_named))
        forgotten = {one for place in places for one in served.stats[place].generations if one < mission.generation}
    with progress_bar(f"{command.name.lower()}: satellites") as progress:
        taken = take_step(constellation, mission, command, old, places, progress)
    lonely: list[Satellite] = []
    if command is KeyCommand.ACTIVATE and taken.done:
        lonely = _without_peer_keys(_ask_all(constellation, mission, mission.generation, taken.done), mission)
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
        if command is KeyCommand.ACTIVATE:
            report["without_peer_keys"] = lonely
        print_json(report)
    else:
        new = mission.generation
        click.echo(_TOLD[command].format(f"{len(taken.done)} of {len(places)}", new=new, old=_listed({old, *forgotten})))
        refused = {place: _WORDS.get(status, f"says {status}") for place, status in taken.refused.items()}
        told = {place: text.format(new=new, old=old) for place, text in refused.items()}
        full = [place for place, status in taken.refused.items() if status == "store_full"]
        told |= _name_room(full, constellation, mission, old, line)
        told |= dict.fromkeys(lonely, _LONELY.format(new=new))
        _name(told, taken.silent, constellation)
        if len(taken.done) == len(places) < len(alive) and not lonely:
            click.echo(
                f"next: {line(command, old_named)}, for the {len(alive) - len(places)} other satellites, unless it was done"
            )
        elif len(taken.done) == len(places) and not lonely:
            click.echo(_next(command, mission, newest, old_named, line))
    if len(taken.silent) == len(places):
        raise _none_answers(constellation, places, "; the command may be repeated")
    if len(taken.done) < len(places):
        raise Failure(f"{len(places) - len(taken.done)} of {len(places)} satellites did not do it; the command may be repeated")
    if lonely:
        raise Failure(
            f"{len(lonely)} of {len(places)} satellites cannot ask others under generation {mission.generation} yet; "
            f"{line(KeyCommand.LOAD, old_named)} gives them the keys for that"
        )


def _named_places(
    constellation: Constellation, chosen: Sequence[Satellite], lost: Sequence[Satellite]
) -> tuple[list[Satellite], list[Satellite]]:
    """Return all satellites that are not lost, and those to command."""
    for option, named in (("--satellite", chosen), ("--lost", lost)):
        for place in named:
            require_place(place, constellation.torus, f"{option} {place.plane},{place.slot}")
            if option == "--lost" and place in chosen:
                raise BadInput(f"--lost {place.plane},{place.slot} is also a --satellite; allowed is one of the two")
    alive = [place for place in constellation.torus.satellites() if place not in lost]
    if not alive:
        raise BadInput("--lost names all satellites; allowed are fewer")
    return alive, list(dict.fromkeys(chosen)) or alive


def _command_line(mission_path: Path, constellation_path: Path | None, step: KeyCommand, old: int | None) -> str:
    """Return the command line of a step, to be pasted: on the same sky, and with an old generation if there is one to name."""
    options = [] if old is None else ["--old", str(old)]
    options += [] if constellation_path is None else ["--constellation", str(constellation_path)]
    return f"`{shlex.join(['skymem', 'keys', step.name.lower(), str(mission_path), *options])}`"


def _next(command: KeyCommand, mission: MissionKeyring, newest: MissionKeyring, old: int | None, line: _Line) -> str:
    """Return what follows a step that all satellites took."""
    if mission.generation < newest.generation:
        valid = None if mission.generation + 1 == newest.generation else mission.generation
        steps = f"{line(KeyCommand.LOAD, valid)}, then {line(KeyCommand.ACTIVATE, valid)}"
        return f"next: {steps}: satellites have room for generation {newest.generation} now"
    activate, forget = (line(step, old) for step in (KeyCommand.ACTIVATE, KeyCommand.FORGET))
    return _NEXT[command].format(new=mission.generation, activate=activate, forget=forget)


def _name_room(
    places: Sequence[Satellite], constellation: Constellation, mission: MissionKeyring, old: int, line: _Line
) -> dict[Satellite, str]:
    """Return for satellites without room for new keys which ones they have, and the command that makes room."""
    if not places:
        return {}
    served = _ask_all(constellation, mission, old, places).stats
    command = {place: line(KeyCommand.FORGET, one.generations[0]) for place, one in served.items()}
    return {
        place: f"serves generations {_listed(one.generations)}, and has no room for another: {command[place]} makes room"
        for place, one in served.items()
    }


def _listed(generations: Iterable[int]) -> str:
    return " and ".join(str(one) for one in sorted(generations))


def _old(mission: MissionKeyring, path: Path, old: int | None) -> int:
    """Return the generation that satellites have."""
    if mission.generation == 1:
        raise BadInput(f"{path} is at generation 1, the first; `skymem keys rotate` makes the next one")
    if old is not None and old >= mission.generation:
        raise BadInput(f"--old is {old}; allowed are generations before that of the mission, {mission.generation}")
    return mission.generation - 1 if old is None else old


def _ask_all(constellation: Constellation, mission: MissionKeyring, old: int, places: Sequence[Satellite]) -> ServedKeys:
    """Ask satellites which keys they serve: under the mission's generation, and under those before as far as the old one."""
    with progress_bar("who has which keys: satellites") as progress:
        return ask_who_serves(constellation, mission, places, progress, oldest=old)


def _speaker(
    served: ServedKeys,
    mission: MissionKeyring,
    old: int,
    places: Sequence[Satellite],
    line: _Line,
    sky: Constellation,
    *,
    is_named: bool,
) -> MissionKeyring:
    """Return the keyring under which all satellites are told to forget older keys: one that all of them serve.

    Args:
        places: Satellites that were asked.
        is_named: A person named the old generation. Then it need not be the mission's.

    Raises:
        Silent: No satellite answers.
        Failure: There is none. Satellites that do not serve the mission's generation are named on standard error.
    """
    new = mission.generation
    newest = 0
    if len(served.stats) == len(places):
        all_have = set.intersection(*({*one.generations} for one in served.stats.values()))
        newest = max((one for one in all_have if one <= new), default=0)
    if newest == new or (is_named and newest > old):
        return mission.changed(generation=newest)
    told = dict.fromkeys(served.refused, f"answers, but does not serve generation {new}")
    told |= {
        place: f"serves generation{'s' if len(one.generations) > 1 else ''} {_listed(one.generations)}, and not {new}"
        for place, one in served.stats.items()
        if new not in one.generations
    }
    if len(served.silent) == len(places):
        raise _none_answers(sky, places, f", so none was told to forget {old}; the command may be repeated")
    _name(told, served.silent, sky)
    oldest = min((one.generations[0] for one in served.stats.values()), default=newest)
    room = (
        f" {line(KeyCommand.FORGET, oldest)} forgets {oldest} under generation {newest}, which all serve."
        if oldest < newest
        else ""
    )
    raise Failure(
        f"{len(told) + len(served.silent)} of {len(places)} satellites have not shown that they serve generation {new}, so none "
        f"was told to forget {old}: those would lose their links.{room} `skymem keys load` and `activate` may be repeated; "
        "--lost PLANE,SLOT leaves out a satellite that is lost for good"
    )


def _require_nothing_later(served: ServedKeys, mission: MissionKeyring, old: int) -> None:
    """Require that no satellite serves a generation later than the mission's, before any forgets those of before.

    Raises:
        Failure: Some do; they are named on standard error.
    """
    newest = {place: one.generations[-1] for place, one in served.stats.items()}
    if later := {place: f"also serves generation {one}" for place, one in newest.items() if one > mission.generation}:
        _name(later)
        raise Failure(
            f"{len(later)} of {len(newest)} satellites serve a generation later than {mission.generation}, so none was told to "
            f"forget {old}; allowed is the keyring of the mission's newest generation"
        )


def _without_peer_keys(served: ServedKeys, mission: MissionKeyring) -> list[Satellite]:
    """Return the satellites that ask others under keys of a generation before that of a keyring: `load` has not ended there."""
    return [place for place, one in served.stats.items() if one.generation_peers < mission.generation]


def _require_peer_keys(served: ServedKeys, mission: MissionKeyring, old: int, load_line: str) -> None:
    """Require that satellites have the new keys with each other, before any forgets those of before.

    Raises:
        Failure: Some do not; they are named on standard error.
    """
    new = mission.generation
    if lonely := _without_peer_keys(served, mission):
        _name(dict.fromkeys(lonely, _LONELY.format(new=new)))
        raise Failure(
            f"{len(lonely)} of {len(served.stats)} satellites cannot ask others under generation {new} yet, so none was told to "
            f"forget {old}: those would lose their links. {load_line} gives them the keys for that"
        )


def _none_answers(sky: Constellation, places: Sequence[Satellite], what_now: str) -> click.ClickException:
    """Return the failure of a command that none of its satellites has answered as this program does."""
    if words := version_words(other_versions(sky, places)):
        return Failure(words + what_now)
    return Silent("none of the satellites answers" + what_now)


def _name(told: dict[Satellite, str], silent: Sequence[Satellite] = (), sky: Constellation | None = None) -> None:
    """Tell of satellites what is wrong with them, and who is silent, but not of so many that they fill the screen.

    Args:
        told: Fault of each satellite that has answered.
        silent: Satellites that have not answered.
        sky: Constellation of those, which are asked whether they speak another version.
    """
    versions = other_versions(sky, silent) if sky is not None else {}
    told = told | {place: f"speaks version {version} of the packets" for place, version in versions.items()}
    silent = [place for place in silent if place not in versions]
    for place, text in list(told.items())[:_NAMED]:
        click.echo(f"satellite {place} {text}", err=True)
    for place in silent[:_NAMED]:
        click.echo(f"satellite {place} does not answer", err=True)
    if (more := max(len(told) - _NAMED, 0) + max(len(silent) - _NAMED, 0)) > 0:
        click.echo(f"and {more} other satellites", err=True)
    if words := version_words(versions):
        click.echo(words, err=True)
