"""One satellite of a sky on this machine: killed without warning, and started again with an empty store."""

from skymemory.sky.constellation import Constellation
from skymemory.testbed.compose import PROJECT
from skymemory.testbed.docker import Container, DockerError, containers_of, kill_container, start_container
from skymemory.testbed.local import LocalConstellation
from skymemory.testbed.processes import is_alive, kill
from skymemory.testbed.run_record import Running, RunRecord
from skymemory.wire.address import Satellite


class SingleError(RuntimeError):
    """The satellite is not in the needed state: it is missing, it does not run, or it runs already."""


def kill_satellite(state: RunRecord, constellation: Constellation, place: Satellite) -> None:
    """End a satellite at once, without warning. Have a turn (`RunRecord.turn`) meanwhile.

    Raises:
        SingleError: It does not run, or not on this machine.
        DockerError: The engine refuses.
    """
    if (running := _local(state, constellation)) is not None:
        process = running.processes.get(place)
        if process is None or not kill(process):
            raise SingleError(f"satellite {place} does not run; `skymem restart {place.plane} {place.slot}` starts it")
        return
    container = _container(state, constellation, place)
    if container.state != "running":
        raise SingleError(f"the container of satellite {place} is {container.state}")
    kill_container(container.identity)


def restart_satellite(state: RunRecord, constellation: Constellation, place: Satellite) -> None:
    """Start a satellite that does not run, at its address; return when it listens. Have a turn meanwhile.

    Raises:
        SingleError: It runs, or was not started on this machine.
        StartError: It does not start; its own words are in the message.
        DockerError: The engine refuses.
    """
    if (running := _local(state, constellation)) is not None:
        if (process := running.processes.get(place)) is not None and is_alive(process):
            raise SingleError(f"satellite {place} runs; `skymem kill {place.plane} {place.slot}` ends it")
        local = LocalConstellation(running.constellation, state.log_folder)
        local.restart(place)
        try:
            state.update(Running("local", running.constellation, {**running.processes, **local.processes}))
            local.detach()
        except BaseException:
            local.stop()
            raise
        return
    container = _container(state, constellation, place)
    if container.state == "running":
        raise SingleError(f"the container of satellite {place} runs; `skymem kill {place.plane} {place.slot}` ends it")
    start_container(container.identity)


def _local(state: RunRecord, constellation: Constellation) -> Running | None:
    """Return the processes that `skymem up` has started, if they are this sky."""
    running = state.load()
    if running is None or running.kind != "local":
        return None
    return running if state.sky(running.constellation).name == state.sky(constellation).name else None


def _container(state: RunRecord, constellation: Constellation, place: Satellite) -> Container:
    """Return a satellite's container: one that this state has started, or one of a Compose file that a person started."""
    address = constellation.address(*place)
    try:
        found = next((one for one in containers_of(place) if one.address == address), None)
    except (DockerError, FileNotFoundError):  # without an engine there are no containers
        found = None
    if found is None:
        raise SingleError(
            f"satellite {place} is no process that `skymem up` started, and no container of this machine; "
            "only its own machine ends and starts it"
        )
    running = state.load()
    own = (running.project,) if running is not None and running.kind == "docker" else state.projects
    if found.project not in own and found.project.startswith(f"{PROJECT}-"):
        raise SingleError(
            f"the container of satellite {place} belongs to the project {found.project}, which `skymem up` of another user or "
            "state folder started"
        )
    return found
