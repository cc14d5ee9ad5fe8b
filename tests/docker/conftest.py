"""Constellations in containers, for the tests of this folder."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from skymemory.sky.constellation import Constellation
from skymemory.testbed.compose import SATELLITE, Image, in_containers
from skymemory.testbed.docker import (
    DockerConstellation,
    DockerError,
    build_image,
    compose_command,
    containers,
    engine,
    find_checkout,
    remove_left,
)
from skymemory.testbed.docker_networks import choose_network, taken_networks
from skymemory.testbed.several_machines import AGENT

Docker = Callable[..., str]
StartContainers = Callable[..., AbstractContextManager[Constellation]]


@pytest.fixture(scope="session")
def docker() -> Docker:
    """Run `docker WORD...` and return what it prints. Skips without an engine; in CI that is a failure."""
    try:
        compose_command()
    except DockerError as error:
        if os.environ.get("CI"):
            pytest.fail(f"CI leaves nothing out: {error}")
        pytest.skip(str(error))

    def run(*words: str) -> str:
        done = subprocess.run(["docker", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def agent_image(docker: Docker) -> str:
    """The agent's image, built from wheels; its name."""
    checkout = find_checkout()
    assert checkout is not None
    # It computes for minutes, and tests of engines may run beside it
    wheels = ["nice", "-n", "19", checkout / "docker" / "agent-wheels"]
    subprocess.run(wheels, env={**os.environ, "PYTHON": sys.executable}, check=True)
    build_image(checkout, AGENT)
    return AGENT.name


@pytest.fixture(scope="session")
def project() -> str:
    """Project of the containers that `start_containers` starts, and name of their network."""
    return "skymemory-tests"


@pytest.fixture(scope="session")
def start_containers(docker: Docker, project: str) -> StartContainers:
    """`with start_containers(constellation, image) as sky`: all its satellites are up, and gone afterwards."""

    @contextmanager
    def start(constellation: Constellation, image: Image = SATELLITE) -> Iterator[Constellation]:
        checkout = find_checkout()
        assert checkout is not None
        reference = build_image(checkout, image)
        remove_left(project)  # what an interrupted run has left
        network = choose_network(constellation, project, taken_networks(is_here=engine().is_here))
        made = DockerConstellation(inside := in_containers(constellation, network), project, image, reference=reference)
        made.up()
        try:
            yield inside
        finally:
            made.down()
            assert containers(project) == {}
            if project in docker("network", "ls", "--format", "{{.Name}}").split():  # see DockerConstellation.down
                assert docker("network", "inspect", "--format", "{{.Containers}}", project).strip() == "map[]"

    return start
