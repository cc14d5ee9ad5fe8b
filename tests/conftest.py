"""Constellations that tests share: real satellites, real sockets, at ports of their own."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest
from hypothesis import settings

from skymemory.common.state_folder import SECRET_VARIABLE
from skymemory.common.tenant_secrets import made_secret
from skymemory.sky.constellation import Constellation
from skymemory.sky.tenant_secret import secret_file
from skymemory.testbed.local import LocalConstellation, free_port
from skymemory.wire.address import Satellite

# No test is timed against an absolute; a busy machine is no failure.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# What a shell starts in its background ignores Ctrl-C, and so do all processes from there on; tests interrupt some
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# The same with the end of a terminal under nohup
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A state folder of the tests' own, and one tenant secret for all programs that they start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKYMEM_STATE", str(tmp_path_factory.mktemp("state")))
        made_secret(secret := secret_file(Constellation()))
        patch.setenv(SECRET_VARIABLE, str(secret))
        yield


def at_free_port(constellation: Constellation) -> Constellation:
    """The same constellation at a UDP port that nobody uses."""
    return constellation.replace(network={"port": free_port(constellation)})


@pytest.fixture(scope="session")
def full_sky() -> Iterator[LocalConstellation]:
    """The paper's 5 planes x 19 slots, once for the whole session. Use keys of your own; do not kill its satellites."""
    with LocalConstellation(at_free_port(Constellation())) as local:
        yield local


@pytest.fixture
def start_sky() -> Iterator[Callable[..., LocalConstellation]]:
    """Start a constellation for one test: `start_sky(constellation={"planes": 3, "slots": 3}, ...)`, sections by TOML name.

    The default is 3 planes x 5 slots with nine servers around [2, 3], two of them with parity. `logs` is a folder for what the
    satellites print.
    """
    with ExitStack() as stack:

        def start(logs: Path | None = None, **sections: dict[str, object]) -> LocalConstellation:
            grid = {"planes": 3, "slots": 5, **sections.pop("constellation", {})}
            cache = {"servers": 9, "centre": [2, 3], **sections.pop("cache", {})}
            base = Constellation.model_validate({"constellation": grid, "cache": cache, **sections}, strict=False)
            return stack.enter_context(LocalConstellation(at_free_port(base), logs))

        yield start


@pytest.fixture
def stopped() -> Callable[..., AbstractContextManager[None]]:
    """`stopped(local, satellite, ...)`: within, these satellites (none named: all) take packets and say nothing."""

    @contextmanager
    def stop(local: LocalConstellation, *satellites: Satellite) -> Iterator[None]:
        processes = [process for place, process in local.processes.items() if place in satellites or not satellites]
        for process in processes:
            os.kill(process.pid, signal.SIGSTOP)
        for task in (task for process in processes for task in Path(f"/proc/{process.pid}/task").iterdir()):
            while task.joinpath("stat").read_text().rpartition(")")[2].split()[0] != "T":  # the signal takes its time
                os.sched_yield()
        try:
            yield
        finally:
            for process in processes:
                os.kill(process.pid, signal.SIGCONT)

    return stop
