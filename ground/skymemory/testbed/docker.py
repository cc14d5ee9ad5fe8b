"""A constellation of containers, through the command lines of Docker and of Compose (1.29 or 2, whichever is there)."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from skymemory.config import Constellation
from skymemory.placement.torus import Satellite
from skymemory.progress import Progress
from skymemory.testbed.compose import PROJECT, SATELLITE, Image, compose_file

OF_PROJECT = f"label=com.docker.compose.project={PROJECT}"
"""what `docker ps --filter` knows our containers by"""


class DockerError(RuntimeError):
    """Docker or Compose is missing or refused; its own words are in the message."""


def compose_command() -> list[str]:
    """`docker compose` if that is installed, else `docker-compose`.

    Raises:
        DockerError: neither is there, or no engine answers.
    """
    if shutil.which("docker") is None:
        raise DockerError("docker is not installed; `skymem up` without --docker runs local processes")
    if _run(["docker", "info"]).returncode:
        raise DockerError("no Docker engine answers (`docker info` says why); `skymem up` without --docker needs none")
    if _run(["docker", "compose", "version"]).returncode == 0:
        return ["docker", "compose"]
    if shutil.which("docker-compose") is not None:
        return ["docker-compose"]
    raise DockerError("Docker Compose is not installed: neither `docker compose` nor `docker-compose` works")


def find_checkout(start: Path | None = None) -> Path | None:
    """The folder with docker/Dockerfile: `start` (default: the current one) or one above it."""
    here = (start or Path.cwd()).resolve()
    return next((folder for folder in (here, *here.parents) if (folder / "docker" / "Dockerfile").is_file()), None)


def build_image(checkout: Path | None, image: Image = SATELLITE) -> None:
    """Build an image from a checkout; without one, the image must be there already.

    Raises:
        DockerError: it cannot be built, or there is neither image nor checkout.
    """
    if checkout is None:
        if _run(["docker", "image", "inspect", image.name]).returncode:
            raise DockerError(f"there is no image {image.name}; run this in a checkout of the project, which builds it")
        return
    # The classic builder wherever there is one: it needs no plug-in.
    environment = {**os.environ, "DOCKER_BUILDKIT": os.environ.get("DOCKER_BUILDKIT", "0")}
    command = ["docker", "build", "--quiet", "--network", "host", "--file", str(checkout / "docker" / "Dockerfile")]
    done = _run([*command, "--target", image.target, "--tag", image.name, str(checkout)], environment=environment)
    _check(done, f"building {image.name}")


class DockerConstellation:
    """All satellites of a constellation as containers of one Compose project."""

    def __init__(self, constellation: Constellation, image: Image = SATELLITE) -> None:
        """`constellation`: as in the file; it is moved to the containers' network (see `in_containers`)."""
        self.text = compose_file(constellation, image)
        self.total = constellation.planes * constellation.slots

    def up(self, progress: Progress | None = None) -> None:
        """Create and start all containers. The image must be there.

        Raises:
            DockerError: with the last line of what Compose said. What was started is taken down again.
        """
        try:
            self._compose(["up", "-d", "--no-build"], progress)
        except BaseException:
            self.down()
            raise

    def down(self) -> None:
        """Stop and remove all containers and their network.

        Docker 20.10 at times miscounts the endpoints of a network when many containers leave it at once, and then keeps the
        empty network until the engine starts anew. That is no failure: the next `up` uses it as it is.

        Raises:
            DockerError: something of ours is still there.
        """
        try:
            self._compose(["down", "--timeout", "2"], None)
        except DockerError:
            if containers():
                raise

    def _compose(self, words: Sequence[str], progress: Progress | None) -> None:
        with tempfile.TemporaryDirectory(prefix="skymem-") as folder:
            path = Path(folder) / "compose.yaml"
            path.write_text(self.text, encoding="utf-8")
            program = compose_command()
            command = [*program, "--project-name", PROJECT, "--file", str(path), *words]
            # Compose 1.29 gives up on a busy engine after a minute.
            environment = {**os.environ, "COMPOSE_HTTP_TIMEOUT": "300"}
            with subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
            ) as child:
                assert child.stderr is not None
                said: list[str] = []
                done = 0
                for line in child.stderr:
                    said.append(line.strip())
                    done += _is_done(line)
                    if progress is not None:
                        progress(min(done, self.total), self.total)
            if child.returncode:
                raise DockerError(f"{' '.join([*program, words[0]])}: {_last(said)}")


def containers() -> dict[Satellite, str]:
    """State (`running`, `exited`, ...) of each satellite's container, from the engine.

    Raises:
        DockerError: the engine does not answer.
    """
    done = _run(["docker", "ps", "--all", "--filter", OF_PROJECT, "--format", "{{json .}}"])
    _check(done, "docker ps")
    found = {}
    for line in done.stdout.splitlines():
        entry = json.loads(line)
        labels = dict(pair.partition("=")[::2] for pair in entry["Labels"].split(","))
        _, plane, slot = labels["com.docker.compose.service"].split("-")
        found[Satellite(int(plane), int(slot))] = entry["State"]
    return found


def _is_done(line: str) -> bool:
    """A line of Compose that tells of a container that has started: 1.29 says `... done`, 2 says `Started`."""
    return line.rstrip().endswith(("done", "Started"))


def _run(command: Sequence[str], environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def _check(done: subprocess.CompletedProcess[str], what: str) -> None:
    if done.returncode:
        raise DockerError(f"{what}: {_last((done.stderr or done.stdout).splitlines())}")


def _last(lines: Sequence[str]) -> str:
    """The last line that says something."""
    return next((line.strip() for line in reversed(lines) if line.strip()), "no message")
