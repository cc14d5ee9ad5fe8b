"""`skymem kill`, `skymem restart`: end and start one satellite."""

from collections.abc import Callable
from pathlib import Path

import click

from skymemory.cli.common import find_sky, own_turn, sky_option
from skymemory.cli.parameters import require_place
from skymemory.link.other_versions import other_versions, version_words
from skymemory.sky.constellation import Constellation
from skymemory.testbed.run_record import RunRecord
from skymemory.testbed.single_satellite import kill_satellite, restart_satellite
from skymemory.wire.address import Satellite

_PLANE = click.argument("plane", type=click.IntRange(min=1))
_SLOT = click.argument("slot", type=click.IntRange(min=1))


@click.command()
@_PLANE
@_SLOT
@sky_option
def kill(plane: int, slot: int, constellation_path: Path | None) -> None:
    """End satellite PLANE SLOT at once, without warning. What it held is lost.

    The satellite is a process that `skymem up` started, or a container of this machine.
    """
    constellation = _apply(kill_satellite, plane, slot, constellation_path)
    click.echo(f"satellite {Satellite(plane, slot)} is dead")
    if words := _neighbours_versions(constellation, Satellite(plane, slot)):
        click.echo(f"{words}; `skymem restart` would start one that they do not understand", err=True)


@click.command()
@_PLANE
@_SLOT
@sky_option
def restart(plane: int, slot: int, constellation_path: Path | None) -> None:
    """Start satellite PLANE SLOT again, with an empty store.

    It comes back at its address. A replay that runs gives it the schedule again.
    """
    constellation = _apply(restart_satellite, plane, slot, constellation_path)
    click.echo(f"satellite {Satellite(plane, slot)} is up")
    if words := _neighbours_versions(constellation, Satellite(plane, slot)):
        click.echo(f"{words}; its neighbours do not understand it", err=True)


def _neighbours_versions(constellation: Constellation, place: Satellite) -> str:
    """Return in words that neighbours of a satellite speak another version than this program; '' if none does."""
    neighbours = set(constellation.torus.neighbours(place).values()) - {place}
    return version_words(other_versions(constellation, neighbours))


def _apply(
    change: Callable[[RunRecord, Constellation, Satellite], None], plane: int, slot: int, path: Path | None
) -> Constellation:
    """Change a satellite, and return its constellation."""
    state, place = RunRecord(), Satellite(plane, slot)
    with own_turn(state):
        recorded = state.load() if path is None else None
        constellation = (recorded or find_sky(path, "any")).constellation  # as recorded, even if all satellites are dead
        require_place(place, constellation.torus, f"{plane} {slot}")
        change(state, constellation, place)
    return constellation
