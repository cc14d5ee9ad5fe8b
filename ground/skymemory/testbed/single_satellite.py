"""One satellite of a sky on this machine: killed without warning, and started again with an empty store."""

from skymemory.sky.constellation import Constellation
from skymemory.testbed.compose import in_containers
from skymemory.testbed.docker import DockerError, container, kill_container, start_container
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
    identity, status = _container(constellation, place)
    if status != "running":
        raise SingleError(f"the container of satellite {place} is {status}")
    kill_container(identity)


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
    identity, status = _container(constellation, place)
    if status == "running":
        raise SingleError(f"the container of satellite {place} runs; `skymem kill {place.plane} {place.slot}` ends it")
    start_container(identity)


def _local(state: RunRecord, constellation: Constellation) -> Running | None:
    """Return the processes that `skymem up` has started, if they are this sky."""
    running = state.load()
    if running is None or running.kind != "local":
        return None
    return running if state.sky(running.constellation).name == state.sky(constellation).name else None


def _container(constellation: Constellation, place: Satellite) -> tuple[str, str]:
    """Return the id and the state of a satellite's container."""
    try:
        found = container(place) if in_containers(constellation).network.base == constellation.network.base else None
    except (DockerError, FileNotFoundError):  # without an engine there are no containers
        found = None
    if found is None:
        raise SingleError(
            f"satellite {place} is no process that `skymem up` started, and no container of this machine; "
            "only its own machine ends and starts it"
        )
    return found
