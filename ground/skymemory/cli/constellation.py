"""`skymem up`, `skymem down`, `skymem compose`: start and stop a constellation, or write its container files."""

import os
import shutil
import time
from contextlib import suppress
from hmac import compare_digest
from pathlib import Path
from typing import Final

import click

from skymemory.cli.common import (
    BadInput,
    Failure,
    constellation_option,
    load_constellation,
    own_turn,
    progress_bar,
    progress_lines,
    up_option,
)
from skymemory.common.machine import free_memory_bytes
from skymemory.common.secret_files import Kept
from skymemory.common.state_folder import SECRET_VARIABLE
from skymemory.common.tenant_secrets import give_secret, read_tenant_secret
from skymemory.common.whole_file import write_whole
from skymemory.security.constellation_keys import files_for_containers, find_satellite_files
from skymemory.sky.constellation import CONFIG_FILE, Constellation
from skymemory.sky.tenant_secret import begin_secret, secret_of
from skymemory.testbed.compose import compose_file, in_containers
from skymemory.testbed.docker import (
    DockerConstellation,
    DockerError,
    build_image,
    check_room,
    compose_command,
    containers,
    engine,
    find_checkout,
    remove_left,
)
from skymemory.testbed.docker_networks import NetworkTakenError, choose_network, taken_networks
from skymemory.testbed.local import LocalConstellation
from skymemory.testbed.processes import stop
from skymemory.testbed.run_record import DamagedStateError, Running, RunRecord
from skymemory.testbed.several_machines import TENANT_FILE, KeyFiles, kubernetes_file, stack_file


@click.command()
@click.option("--docker", "in_docker", is_flag=True, help="As containers instead of local processes.")
@up_option
def up(in_docker: bool, constellation_path: Path | None) -> None:
    """Start the constellation."""
    constellation = load_constellation(constellation_path, "satellites")
    state = RunRecord()
    with own_turn(state):
        running = state.load()
        if running is not None and (running.kind == "docker" or running.alive()):
            raise Failure(f"a constellation is up already ({running.kind}); `skymem down` ends it")
        start = time.monotonic()
        where = ""
        if in_docker:
            network = _up_docker(constellation, state)
            where = f", in the network {state.project} ({network})"
        else:
            _up_local(constellation, state)
    count = constellation.planes * constellation.slots
    click.echo(f"{count} satellites are up after {time.monotonic() - start:.1f} s{where}")


def _up_local(constellation: Constellation, state: RunRecord) -> None:
    count, free = constellation.planes * constellation.slots, free_memory_bytes()
    stores = count * constellation.satellite.store_mib << 20
    if free is not None and stores > free:
        sizes = f"{stores / 2**30:,.1f} GiB, {free / 2**30:,.1f} GiB are free"
        click.echo(f"stores take memory as they fill; full stores would take {sizes} (satellite.store_mib)", err=True)
    local = LocalConstellation(constellation, state.log_folder)
    with progress_bar("starting satellites") as progress:
        local.start(progress)
    try:
        _begin_secret(constellation)
        state.save(Running("local", constellation, dict(local.processes)))
        local.detach()
    except BaseException:
        if local.processes:  # without processes all have started
            local.stop()
            state.clear()
        raise


def _begin_secret(constellation: Constellation) -> None:
    """Make a tenant secret that is missing, once all satellites are up: a start that fails replaces none that was lost."""
    if (made := begin_secret(constellation)) is not None:
        click.echo(f"{made}: a tenant secret was made. Other hosts of this sky need it, too; keep a copy", err=True)


_CHOICES: Final = 3
"""Networks that are tried: another user may take the one that was free."""


def _up_docker(constellation: Constellation, state: RunRecord) -> str:
    """Start containers, and return their network."""
    compose_command()  # this says what is missing before an image is built
    check_room(constellation.planes * constellation.slots)
    _remove_left(state)
    choose_network(constellation, state.project, taken_networks(is_here=engine().is_here))
    with progress_lines("building the image") as progress:
        reference = build_image(find_checkout(), progress=progress)
    for left in reversed(range(_CHOICES)):
        network = choose_network(constellation, state.project, taken_networks(is_here=engine().is_here))
        inside = in_containers(constellation, network)
        made = DockerConstellation(inside, state.project, reference=reference)
        try:
            with progress_lines("starting containers") as progress:
                made.up(progress)
            break
        except NetworkTakenError:
            if not left:
                raise
    try:
        if ended := [place for place, status in containers(state.project).items() if status != "running"]:
            raise Failure(f"{len(ended)} containers of {made.total} do not run; the first is that of satellite {ended[0]}")
        _begin_secret(inside)
        state.save(Running("docker", inside, {}, state.project))
    except BaseException:
        made.down()
        raise
    made.detach()
    return network


def _remove_left(state: RunRecord) -> int:
    """Remove containers that this state has started and of which it has no record; say so. Return their number."""
    total = 0
    for project in state.projects:
        total += (count := remove_left(project))
        if count:
            click.echo(f"{count} containers of {project} were left, without a record, and are removed", err=True)
    return total


@click.command()
def down() -> None:
    """Stop the constellation and lose what it holds.

    Satellites without a record, or with a damaged one, are found by the logs that they write.
    """
    state = RunRecord()
    with own_turn(state):
        _down(state)


def _down(state: RunRecord) -> None:
    running = damaged = None
    try:
        running = state.load()
    except DamagedStateError as error:
        damaged = error
    processes = state.find_satellites()
    count = 0
    if running is not None and running.kind == "docker":
        count = len(containers(running.project))
        DockerConstellation(running.constellation, running.project).down()
    elif running is not None:
        processes |= set(running.alive().values())
    stop(processes)
    state.clear()
    if damaged is not None:
        click.echo(f"{state.path} was damaged ({damaged.why}) and is removed")
    if running is None and shutil.which("docker"):
        with suppress(DockerError):  # without an engine there are no containers
            count += _remove_left(state)
    count += len(processes)
    nothing = running is None and damaged is None and not count
    click.echo("no constellation is up" if nothing else f"{count} satellites stopped")


@click.command()
@constellation_option
@click.option("--swarm", "form", flag_value="swarm", help="A stack for Docker Swarm: planes on machines.")
@click.option("--kubernetes", "form", flag_value="kubernetes", help="Manifests for Kubernetes: the same.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    help="File to write. Default: -, standard output.",
)
def compose(constellation_path: Path | None, form: str | None, output: Path | None) -> None:
    """Print the Compose file of the constellation: one container for each satellite, (p, s) at 198.18.p.s.

    The file builds the image from the checkout around FILE, or around the current folder. Outside of a checkout it expects the
    image to be there. Store the output in docker/ of the checkout. Addresses are those of FILE, unless it has them in
    127.0.0.0/8: then 198.18.0.0/15, as in docker/constellation.toml. Packets are at most 8,972 bytes.

    With --swarm or --kubernetes packets are as in FILE. The tenant secret that all agents share is written beside the output as
    `tenant.secret`, with mode 0600: it is this user's for the constellation.
    """
    output = None if output == Path("-") else output
    constellation = load_constellation(constellation_path, "satellites")
    file = constellation_path or (CONFIG_FILE if CONFIG_FILE.is_file() else None)
    if form is None:
        _tell_of_ground(constellation)
        text = _compose_text(constellation, str(file or "the defaults"), output)
    elif file is None:
        raise BadInput(f"--{form}: ground hosts need the constellation file; name one with --constellation")
    else:
        folder = Path("docker") if output is None else output.parent
        source = os.path.relpath(file, folder)
        keyring = constellation.security.keyring
        keys = KeyFiles.find(Path(keyring), folder) if keyring else None
        if form == "swarm":
            text = stack_file(constellation, source=source, keys=keys)
        else:
            generation = None if keys is None else keys.generation
            text = kubernetes_file(constellation, file.read_text(encoding="utf-8"), source=source, generation=generation)
    if output is None:
        click.echo(text, nl=False)
    else:
        if form is not None:
            _give_tenant_secret(constellation, output.parent / TENANT_FILE)
        write_whole(output, text.encode(errors="surrogateescape"))


def _give_tenant_secret(constellation: Constellation, path: Path) -> None:
    """Write the tenant secret of the agents, unless it is there."""
    secret = secret_of(constellation)
    if not give_secret(path, secret) and not compare_digest(read_tenant_secret(path, Kept.PRIVATE), secret):
        named = f"{SECRET_VARIABLE}={path}"
        raise Failure(
            f"{path} has another tenant secret than this user's for the constellation, and is left as it was; with {named} this "
            "command and all others take that one"
        )


def _tell_of_ground(constellation: Constellation) -> None:
    """Say what the ground's constellation file must contain, if this one differs."""
    inside = in_containers(constellation)
    if inside != constellation:
        needed = f'network = "{inside.network.network}" and mtu = {inside.network.mtu}'
        click.echo(f"put {needed} into [network] of the constellation file that commands on the ground use", err=True)


def _compose_text(constellation: Constellation, source: str, output: Path | None) -> str:
    folder = Path() if output is None else output.parent
    checkout = find_checkout(folder) or find_checkout()
    context = None
    if checkout is not None:
        context = os.path.relpath(checkout, checkout / "docker" if output is None else folder.resolve())
    keys = None
    if keyring := constellation.security.keyring:
        copies = files_for_containers(find_satellite_files(Path(keyring)))
        click.echo(f"{copies}: key files that containers can read; only you can enter the folder", err=True)
        keys = Path(os.path.relpath(copies, "docker" if output is None else folder))
    return compose_file(constellation, source=source, context=context, keys=keys)
