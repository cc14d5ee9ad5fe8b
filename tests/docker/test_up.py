"""`skymem up --docker` from the outside: what it says, how it ends, one container of it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from skymemory.sky.constellation import Constellation
from skymemory.testbed.docker import engine, of_project
from skymemory.testbed.docker_networks import PROJECT_LABEL, choose_network, taken_networks
from skymemory.testbed.run_record import RunRecord
from support.waiting import wait_until

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]
CONFIG = "[constellation]\nplanes = 2\nslots = 3\n[cache]\ncentre = [1, 1]\nservers = 4\n"
PATIENCE_S = 300.0
Docker = Callable[..., str]


class User:
    """Runs `skymem` in a folder with a constellation file of 2 x 3 satellites, inside the checkout's image."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "sky.toml").write_text(CONFIG)
        self.folder = folder

    @property
    def project(self) -> str:
        return RunRecord(self.folder / "state").project

    @property
    def state_file(self) -> Path:
        return RunRecord(self.folder / "state").path

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", "from skymemory.cli import main; main()", *words]
        environment = {**os.environ, "SKYMEM_STATE": str(self.folder / "state"), "TMPDIR": str(self.folder)}
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=environment, text=True, stdout=pipe, stderr=pipe)

    def run(self, *words: str, status: int = 0) -> tuple[str, str]:
        process = self.start(*words)
        out, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == status, f"{out}\n{err}"
        return out, err

    def up(self) -> subprocess.Popen[str]:
        return self.start("up", "--docker", "--constellation", str(self.folder / "sky.toml"))


@pytest.fixture
def user(docker: Docker, tmp_path: Path) -> Iterator[User]:
    user = User(tmp_path)
    yield user
    user.run("down")
    assert containers(user, docker) == []


def containers(user: User, docker: Docker) -> list[str]:
    return docker("ps", "--all", "--quiet", "--filter", of_project(user.project)).split()


def dead(user: User) -> list[list[int]]:
    report = json.loads(user.run("status", "--json")[0])
    return [[entry["plane"], entry["slot"]] for entry in report["satellites"] if not entry["alive"]]


def test_one_is_killed_and_comes_back(user: User, docker: Docker) -> None:
    out, err = user.up().communicate(timeout=PATIENCE_S)
    assert "6 satellites are up" in out, err
    assert err.splitlines()[0] == "building the image ..."
    assert "starting containers ..." in err
    assert dead(user) == []
    assert user.run("kill", "2", "3")[0] == "satellite [2, 3] is dead\n"
    assert dead(user) == [[2, 3]]
    time.sleep(2)  # the engine starts what ends by itself again, and this not
    assert dead(user) == [[2, 3]]
    assert "is exited" in user.run("kill", "2", "3", status=1)[1]
    assert user.run("restart", "2", "3")[0] == "satellite [2, 3] is up\n"
    wait_until(lambda: not dead(user), patience_s=PATIENCE_S)
    assert "`skymem kill 2 3`" in user.run("restart", "2", "3", status=1)[1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_containers_of_an_up_that_was_interrupted_go(user: User, docker: Docker, number: signal.Signals) -> None:
    process = user.up()

    def some_are_there() -> bool:
        assert process.poll() is None, process.communicate()
        return len(containers(user, docker)) >= 2

    wait_until(some_are_there, patience_s=PATIENCE_S)
    process.send_signal(number)
    process.communicate(timeout=PATIENCE_S)
    looks = 0

    def have_gone() -> bool:
        nonlocal looks
        looks = 0 if containers(user, docker) else looks + 1
        return looks > 25

    wait_until(have_gone, patience_s=PATIENCE_S, pause_s=0.2)  # for five seconds: and none comes later
    wait_until(lambda: not list(user.folder.glob("skymem-*")), patience_s=PATIENCE_S, pause_s=0.2)


def test_two_users_have_a_constellation_each(user: User, docker: Docker, tmp_path: Path) -> None:
    """What the second one starts, interrupts, kills and stops leaves the first one's as it was."""
    value = os.urandom(100_000)
    (user.folder / "value").write_bytes(value)
    user.run("up", "--docker", "--constellation", str(user.folder / "sky.toml"))
    user.run("put", "notes", str(user.folder / "value"))
    mine = sorted(containers(user, docker))
    other = User(tmp_path / "other")
    try:
        out, err = other.up().communicate(timeout=PATIENCE_S)
        assert f", in the network {other.project} (" in out, err
        theirs = json.loads(other.run("status", "--json")[0])["satellites"][0]["address"]
        assert theirs != json.loads(user.run("status", "--json")[0])["satellites"][0]["address"]
        (other.folder / "theirs.toml").write_text(f'{CONFIG}[network]\nnetwork = "{theirs.rpartition(".1.1")[0]}.0.0/16"\n')
        file = ("--constellation", str(other.folder / "theirs.toml"))
        said = user.run("kill", "2", "3", *file, status=1)[1]
        assert f"belongs to the project {other.project}" in said
        said = user.run("up", "--docker", *file, status=1)[1]
        assert said == "Error: a constellation is up already (docker); `skymem down` ends it\n"
        assert (
            f"belongs to the network {other.project} of the project"
            in User(tmp_path / "third").run("up", "--docker", *file, status=1)[1].splitlines()[-1]
        )
    finally:
        other.run("down")
    assert containers(other, docker) == []
    assert sorted(containers(user, docker)) == mine
    user.run("get", "notes", str(user.folder / "copy"))
    assert (user.folder / "copy").read_bytes() == value
    user.state_file.unlink()  # the record is lost
    assert f"6 containers of {user.project} were left" in user.run("down")[1]


def test_the_cause_is_told(user: User, docker: Docker) -> None:
    """Somebody else has the address of a satellite, in a network that is named as this user's."""
    subnet = choose_network(Constellation(), user.project, taken_networks(is_here=engine().is_here))
    first = IPv4Network(subnet).network_address
    network = ["--subnet", subnet, "--gateway", str(first + 1), "--opt", "com.docker.network.driver.mtu=9000"]
    labels = ["--label", f"{PROJECT_LABEL}={user.project}", "--label", "com.docker.compose.network=sky"]
    docker("network", "create", *network, *labels, user.project)
    other = ["--network", user.project, "--ip", str(first + 0x102), "debian:bookworm-slim", "sleep", "3600"]
    name = docker("run", "--detach", *other).strip()
    try:
        process = user.up()
        _, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 1
        assert "in use" in err.splitlines()[-1]
    finally:
        docker("rm", "--force", name)
        subprocess.run(["docker", "network", "rm", user.project], capture_output=True, check=False)
