"""`skymem kill`, `skymem restart`: end and start one satellite."""

from collections.abc import Callable
from pathlib import Path

import click

from skymemory.cli.common import find_sky, own_turn, sky_option
from skymemory.cli.parameters import require_place
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
    _apply(kill_satellite, plane, slot, constellation_path)
    click.echo(f"satellite {Satellite(plane, slot)} is dead")


@click.command()
@_PLANE
@_SLOT
@sky_option
def restart(plane: int, slot: int, constellation_path: Path | None) -> None:
    """Start satellite PLANE SLOT again, with an empty store.

    It comes back at its address. A replay that runs gives it the schedule again.
    """
    _apply(restart_satellite, plane, slot, constellation_path)
    click.echo(f"satellite {Satellite(plane, slot)} is up")


def _apply(change: Callable[[RunRecord, Constellation, Satellite], None], plane: int, slot: int, path: Path | None) -> None:
    state, place = RunRecord(), Satellite(plane, slot)
    with own_turn(state):
        recorded = state.load() if path is None else None
        constellation = (recorded or find_sky(path, "any")).constellation  # as recorded, even if all satellites are dead
        require_place(place, constellation.torus, f"{plane} {slot}")
        change(state, constellation, place)
