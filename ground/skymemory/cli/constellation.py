"""`skymem up`, `skymem down`, `skymem compose`."""

import time
from pathlib import Path

import click

from skymemory.cli.common import Failure, config_option, load_constellation, progress_bar
from skymemory.config import Constellation
from skymemory.testbed.compose import compose_file, in_containers
from skymemory.testbed.docker import DockerConstellation, build_image, compose_command, find_checkout
from skymemory.testbed.local import LocalConstellation
from skymemory.testbed.processes import stop
from skymemory.testbed.state import Running, State


@click.command()
@click.option("--docker", "in_docker", is_flag=True, help="As containers instead of local processes.")
@config_option
def up(in_docker: bool, config_path: Path | None) -> None:
    """Start the constellation."""
    constellation = load_constellation(config_path)
    state = State()
    running = state.load()
    if running is not None and (running.kind == "docker" or running.alive()):
        raise Failure(f"a constellation is up already ({running.kind}); `skymem down` ends it")
    start = time.monotonic()
    if in_docker:
        _up_docker(constellation, state)
    else:
        _up_local(constellation, state)
    count = constellation.planes * constellation.slots
    click.echo(f"{count} satellites are up after {time.monotonic() - start:.1f} s")


def _up_local(constellation: Constellation, state: State) -> None:
    local = LocalConstellation(constellation, state.log_folder)
    with progress_bar("starting satellites") as progress:
        local.start(progress)
    try:
        state.save(Running("local", constellation, dict(local.processes)))
    except BaseException:
        local.stop()
        raise
    local.detach()


def _up_docker(constellation: Constellation, state: State) -> None:
    compose_command()  # says what is missing before an image is built
    click.echo("building the image ...", err=True)
    build_image(find_checkout())
    containers = DockerConstellation(constellation)
    with progress_bar("starting containers") as progress:
        containers.up(progress)
    state.save(Running("docker", in_containers(constellation), {}))


@click.command()
def down() -> None:
    """Stop the constellation; what it held is gone."""
    state = State()
    running = state.load()
    if running is None:
        click.echo("no constellation is up")
        return
    if running.kind == "docker":
        DockerConstellation(running.constellation).down()
        count = running.constellation.planes * running.constellation.slots
    else:
        alive = running.alive()
        stop(alive.values())
        count = len(alive)
    state.clear()
    click.echo(f"{count} satellites stopped")


@click.command()
@config_option
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="File to write; default: standard output.")
def compose(config_path: Path | None, output: Path | None) -> None:
    """Print the Compose file of the constellation: one container a satellite, (p, s) at 198.18.p.s."""
    text = compose_file(load_constellation(config_path))
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
