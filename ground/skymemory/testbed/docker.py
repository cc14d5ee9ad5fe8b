"""A constellation of containers, through the command lines of Docker and of Compose (1.29 or 2, whichever is installed)."""

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from skymemory.common.progress import Progress
from skymemory.security.constellation_keys import files_for_containers, find_satellite_files
from skymemory.sky.constellation import Constellation
from skymemory.testbed.compose import SATELLITE, Image, compose_file
from skymemory.testbed.docker_networks import PROJECT_LABEL, NetworkTakenError
from skymemory.testbed.leash import Leash, guarded, leashed_folder, own_leash
from skymemory.testbed.room_for_satellites import Engine, container_rooms, refusal
from skymemory.wire.address import Satellite

_SERVICE_LABEL = "com.docker.compose.service"


def of_project(project: str) -> str:
    """Return the filter of `docker ps` that selects the containers of a project."""
    return f"label={PROJECT_LABEL}={project}"


class DockerError(RuntimeError):
    """Docker or Compose is missing or refused; its own words are in the message."""


def compose_command() -> list[str]:
    """Return `docker compose` if that is installed, else `docker-compose`.

    Raises:
        DockerError: Neither is installed, or no engine answers.
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


def engine() -> Engine:
    """Return the engine's description of its machine.

    Raises:
        DockerError: The engine does not answer.
    """
    done = _run(["docker", "info", "--format", "{{json .}}"])
    _check(done, "docker info")
    told = json.loads(done.stdout)
    here = os.uname()
    # A virtual machine on this machine has another kernel, name or memory.
    names = (told["Name"], told["KernelVersion"]) == (here.nodename, here.release)
    own = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Engine(int(told["MemTotal"]), names and int(told["MemTotal"]) == own)


def check_room(count: int) -> None:
    """Check that the engine has room for so many satellites.

    Raises:
        DockerError: There is not enough room; the message has the number that fits.
    """
    if why := refusal(count, container_rooms(engine())):
        raise DockerError(why)


def find_checkout(start: Path | None = None) -> Path | None:
    """Return the folder with docker/Dockerfile: `start` (default: the current one) or one above it."""
    here = (start or Path.cwd()).resolve()
    return next((folder for folder in (here, *here.parents) if (folder / "docker" / "Dockerfile").is_file()), None)


_STEP = re.compile(r"(?:^Step |\[(?:\S+ )?)(\d+)/(\d+)")
"""Progress lines of the classic builder, and of BuildKit."""


def build_image(checkout: Path | None, image: Image = SATELLITE, progress: Progress | None = None) -> str:
    """Build an image from a checkout; without a checkout, the image must exist already. Return its id.

    Another user of the engine may give the name to another image at any time.

    Raises:
        DockerError: The image cannot be built, or there is neither image nor checkout.
    """
    if checkout is None:
        found = _run(["docker", "image", "inspect", "--format", "{{.Id}}", image.name])
        if found.returncode:
            raise DockerError(f"there is no image {image.name}; run this in a checkout of the project, which builds it")
        return found.stdout.strip()
    # The classic builder is taken where it exists: it needs no plug-in.
    environment = {**os.environ, "DOCKER_BUILDKIT": os.environ.get("DOCKER_BUILDKIT", "0")}
    command = ["docker", "build", "--network", "host", "--file", str(checkout / "docker" / "Dockerfile")]
    said: list[str] = []
    with leashed_folder() as folder:
        command += ["--target", image.target, "--tag", image.name, "--iidfile", str(folder / "id"), str(checkout)]
        with subprocess.Popen(
            guarded(command), stdin=own_leash().end, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        ) as child:
            assert child.stdout is not None
            try:
                for line in child.stdout:
                    said.append(line)
                    if progress is not None and (step := _STEP.search(line)):
                        progress(int(step[1]), int(step[2]))
            except BaseException:
                child.terminate()
                raise
        if child.returncode:
            raise DockerError(f"{image.name} cannot be built: {cause(said)}")
        return (folder / "id").read_text(encoding="ascii").strip()


class DockerConstellation:
    """All satellites of a constellation as containers of one Compose project.

    Containers that `up` starts end with this process, however it ends, until `detach`.
    """

    def __init__(
        self, constellation: Constellation, project: str, image: Image = SATELLITE, *, reference: str | None = None
    ) -> None:
        """Prepare the constellation, which is on the containers' network (see `in_containers`).

        Args:
            constellation: The constellation.
            project: Name of the project and of its network. What has it is ours.
            image: Image of the satellites.
            reference: Name or id of the image; None: its name.
        """
        self._constellation, self._image, self._reference = constellation, image, reference
        self.project = project
        self.text = self._text(None)
        self.total = constellation.planes * constellation.slots
        self._leash: Leash | None = None
        self._folder: Path | None = None
        """Folder of the Compose file, for as long as the containers end with this process."""

    def up(self, progress: Progress | None = None) -> None:
        """Create and start all containers. The image must exist.

        Raises:
            DockerError: Compose failed; the message has its words about the cause. What was started is taken down again.
            NetworkTakenError: Somebody else has taken the network meanwhile.
            SecretFileError: The keyring starts no satellites, or copies of the key files cannot be written.
        """
        if keyring := self._constellation.security.keyring:
            copies = files_for_containers(find_satellite_files(Path(keyring)))
            self.text = self._text(copies)
        program = compose_command()
        self._leash, self._folder = Leash(), Path(tempfile.mkdtemp(prefix="skymem-"))
        command = [*program, *self._options(self._folder)]
        # A killed client may have left the engine work: containers that came up after the first `down` go, too.
        down = shlex.join([*command, "down", "--timeout", "2"])
        listed = f"docker ps --all --quiet --filter {shlex.quote(of_project(self.project))}"
        rest = f"{listed} | xargs --no-run-if-empty docker rm --force"
        after = f"{down}; sleep 1; {rest}; {down}; rm -r {shlex.quote(str(self._folder))}"
        try:
            self._run("up", guarded([*command, "up", "-d", "--no-build"], after), self._leash.end, progress)
        except BaseException:
            with suppress(DockerError):  # the first error is the cause; all else ends with this process
                self.down()
            raise

    def detach(self) -> None:
        """Leave the containers running when this process ends."""
        if self._leash is not None:
            self._leash.let_go(1)
            self._leash = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def down(self) -> None:
        """Stop and remove all containers and their network.

        Docker 20.10 at times miscounts the endpoints of a network when many containers leave it at once, and then keeps the empty
        network until the engine starts anew. That is no failure: the next `up` uses it as it is.

        Raises:
            DockerError: One of our containers still exists.
        """
        try:
            with tempfile.TemporaryDirectory(prefix="skymem-") as folder:
                command = [*compose_command(), *self._options(Path(folder)), "down", "--timeout", "2"]
                self._run("down", command, subprocess.DEVNULL, None)
        except DockerError:
            if containers(self.project):
                raise
        self.detach()

    def _text(self, keys: Path | None) -> str:
        return compose_file(
            self._constellation, self._image, reference=self._reference, name=self.project, context=None, keys=keys
        )

    def _options(self, folder: Path) -> list[str]:
        """Write the Compose file, and return the options that name it."""
        (path := folder / "compose.yaml").write_text(self.text, encoding="utf-8")
        return ["--project-name", self.project, "--file", str(path)]

    def _run(self, what: str, command: Sequence[str], stdin: int, progress: Progress | None) -> None:
        # Compose 1.29 gives up on a busy engine after a minute.
        environment = {**os.environ, "COMPOSE_HTTP_TIMEOUT": "300"}
        with subprocess.Popen(
            command, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
        ) as child:
            assert child.stderr is not None
            said: list[str] = []
            done = 0
            try:
                for line in child.stderr:
                    said.append(line.strip())
                    done += _is_done(line)
                    if progress is not None:
                        progress(min(done, self.total), self.total)
            except BaseException:
                child.terminate()
                raise
        if child.returncode:
            told = f"Compose, {what}: {cause(said)}"
            raise NetworkTakenError(told) if "overlaps with other one" in told else DockerError(told)


@dataclass(frozen=True)
class Container:
    """A container of a satellite."""

    identity: str
    project: str
    state: str
    """State in the engine's words: `running`, `exited`, ..."""
    address: str
    """Address that the container has, or has when it runs."""


def containers(project: str) -> dict[Satellite, str]:
    """Return the state (`running`, `exited`, ...) of each satellite's container of a project, from the engine.

    Raises:
        DockerError: The engine does not answer.
    """
    done = _run(["docker", "ps", "--all", "--filter", of_project(project), "--format", "{{json .}}"])
    _check(done, "docker ps")
    found = {}
    for line in done.stdout.splitlines():
        entry = json.loads(line)
        labels = dict(pair.partition("=")[::2] for pair in entry["Labels"].split(","))
        _, plane, slot = labels[_SERVICE_LABEL].split("-")
        found[Satellite(int(plane), int(slot))] = entry["State"]
    return found


def remove_left(project: str) -> int:
    """Remove what is left of a project: containers, and their network. Return the number of containers.

    Raises:
        DockerError: The engine does not answer, or a container cannot be removed.
    """
    done = _run(["docker", "ps", "--all", "--quiet", "--filter", of_project(project)])
    _check(done, "docker ps")
    if found := done.stdout.split():
        _check(_run(["docker", "rm", "--force", *found]), "docker rm")
    _run(["docker", "network", "rm", project])  # there may be none, or Docker 20.10 keeps it: see DockerConstellation.down
    return len(found)


def containers_of(place: Satellite) -> list[Container]:
    """Return the containers of satellites of this place, whoever started them, for any constellation.

    Raises:
        DockerError: The engine does not answer.
    """
    service = f"label={_SERVICE_LABEL}=sat-{place.plane}-{place.slot}"
    done = _run(["docker", "ps", "--all", "--quiet", "--filter", service])
    _check(done, "docker ps")
    if not (identities := done.stdout.split()):
        return []
    told = _run(["docker", "inspect", *identities])  # one that has just gone is left out of the answer
    return [
        Container(
            one["Id"],
            one["Config"]["Labels"].get(PROJECT_LABEL, ""),
            one["State"]["Status"],
            (network.get("IPAMConfig") or {}).get("IPv4Address", ""),
        )
        for one in json.loads(told.stdout or "[]")
        for network in one["NetworkSettings"]["Networks"].values()
    ]


def kill_container(identity: str) -> None:
    """End a container without warning; the engine does not start it again.

    Raises:
        DockerError: The engine refuses.
    """
    _check(_run(["docker", "kill", identity]), "docker kill")


def start_container(identity: str) -> None:
    """Start a container that has ended.

    Raises:
        DockerError: The engine refuses.
    """
    _check(_run(["docker", "start", identity]), "docker start")


def _is_done(line: str) -> bool:
    """Return True if a line of Compose reports a container that has started: 1.29 says `... done`, 2 says `Started`."""
    return line.rstrip().endswith(("done", "Started"))


def _run(command: Sequence[str], environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def _check(done: subprocess.CompletedProcess[str], what: str) -> None:
    if done.returncode:
        raise DockerError(f"{what}: {_last((done.stderr or done.stdout).splitlines())}")


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
CAUSES_MAX = 3
CAUSE_CHARACTERS = 300


def cause(lines: Sequence[str]) -> str:
    """Return the words of Compose or a build about the cause, shortened; the last line alone says only that something went wrong.

    Compose reports every container that it gave up, mostly with the same text: each text appears once, without the container.
    """
    said = [_COLOUR.sub("", line).strip() for line in lines if "error" in line.lower()]
    errors = [line for line in said if not line.startswith("Encountered errors") and not line.endswith("... error")]
    texts = dict.fromkeys(re.sub(r"^(ERROR: )?(for \S+ +)?|^\S*sat-\d+-\d+\S* ", "", line) for line in errors)
    texts = {text: None for text in texts if text} or {_last(lines): None}
    told = "; ".join(text[:CAUSE_CHARACTERS] for text in list(texts)[:CAUSES_MAX])
    return f"{told}; and {len(texts) - CAUSES_MAX} more" if len(texts) > CAUSES_MAX else told


def _last(lines: Sequence[str]) -> str:
    """Return the last line that is not empty."""
    return next((line.strip() for line in reversed(lines) if line.strip()), "no message")
