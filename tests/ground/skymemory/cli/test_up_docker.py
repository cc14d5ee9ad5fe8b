"""`skymem up --docker` with an engine that is a script: what is asked of it, and what is told. Real ones: tests/docker."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from skymemory.testbed.run_record import RunRecord

DOCKER = """#!/bin/sh
echo "$*" >> "$0.log"
case "$*" in
"info --format "*) echo '{info}' ;;
*" up -d --no-build") echo 'ERROR: for sat-1-1  no space left on device' >&2; exit 1 ;;
*" down --timeout 2") echo 'error while removing network: has active endpoints' >&2; exit 1 ;;
"ps --all --filter "*) echo '{container}' ;;
"ps --all --quiet --filter "*) left="$0.left-${{5##*=}}"; cat "$left" 2>/dev/null; rm -f "$left" ;;
"network ls --quiet") test -e "$0.networks" && echo 1 ;;
"network inspect 1") cat "$0.networks" ;;
esac
"""
INFO = {"Name": "elsewhere", "KernelVersion": "6.1", "MemTotal": 64 << 30}
CONTAINER = {"Labels": "com.docker.compose.service=sat-1-1", "State": "created"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With an engine of another machine, on which Compose fails and leaves a container."""
    (tmp_path / "bin").mkdir()
    docker = tmp_path / "bin" / "docker"
    docker.write_text(DOCKER.format(info=json.dumps(INFO), container=json.dumps(CONTAINER)))
    docker.chmod(0o755)
    return tmp_path


def skymem(folder: Path, *words: str, state: str = "state") -> "subprocess.CompletedProcess[str]":
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "SKYMEM_STATE": str(folder / state), "TMPDIR": str(folder)}
    command = [sys.executable, "-c", "from skymemory.cli import main; main()", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300)


def up(folder: Path, planes: int, slots: int, more: str = "", state: str = "state") -> str:
    """Return the last line of what a refused `up --docker` says."""
    grid = f"[constellation]\nplanes = {planes}\nslots = {slots}\n[cache]\ncentre = [1, 1]\n"
    (folder / "sky.toml").write_text(grid + more)
    done = skymem(folder, "up", "--docker", "--constellation", "sky.toml", state=state)
    assert done.returncode == 1, done
    return done.stderr.splitlines()[-1]


def asked(folder: Path) -> str:
    return (folder / "bin" / "docker.log").read_text()


def project(folder: Path, state: str = "state") -> str:
    return RunRecord(folder / state).project


def have_networks(folder: Path, *networks: tuple[str, str, str]) -> None:
    """Give the engine networks: name, addresses, project."""
    told = [
        {"Name": name, "IPAM": {"Config": [{"Subnet": subnet}]}, "Labels": {"com.docker.compose.project": owner}}
        for name, subnet, owner in networks
    ]
    (folder / "bin" / "docker.networks").write_text(json.dumps(told))


def test_more_than_fit_are_refused_before_anything_is_done(folder: Path) -> None:
    said = up(folder, 40, 50)
    assert said == "Error: 2,000 satellites are more than fit: a bridge has 1,023 ports, which leaves room for 1,023"
    assert "image" not in asked(folder)
    assert " up " not in asked(folder)


def test_the_cause_is_told_though_clearing_up_fails_as_well(folder: Path) -> None:
    assert up(folder, 3, 5) == "Error: Compose, up: no space left on device"


def test_each_state_folder_has_a_project_of_its_own(folder: Path) -> None:
    for state in ("state", "other"):
        up(folder, 3, 5, state=state)
        assert f"--project-name {project(folder, state)} " in asked(folder)
    assert project(folder) != project(folder, "other")
    assert project(folder) == RunRecord(folder / "other" / ".." / "state").project
    assert f"docker ps --all --filter label=com.docker.compose.project={project(folder)} " in "docker " + asked(folder).replace(
        "\n", "\ndocker "
    )


def test_addresses_that_are_taken_are_named_with_who_has_them(folder: Path) -> None:
    have_networks(folder, ("skymemory", "198.18.0.0/15", "docker"))
    said = up(folder, 3, 5, '[network]\nnetwork = "198.19.0.0/16"\n')
    assert said == (
        "Error: 198.19.0.0/16, the constellation's network.network, is taken: 198.18.0.0/15 belongs to the network skymemory of "
        "the project docker; choose another one"
    )
    assert " up " not in asked(folder)


@pytest.mark.parametrize("number", [0, 1], ids=["now", "an older version"])
def test_containers_of_which_the_record_is_lost_are_removed(folder: Path, number: int) -> None:
    project = RunRecord(folder / "state").projects[number]
    (folder / "bin" / f"docker.left-{project}").write_text("abc\ndef\n")
    done = skymem(folder, "down")
    assert (done.returncode, done.stdout) == (0, "2 satellites stopped\n")
    assert done.stderr == f"2 containers of {project} were left, without a record, and are removed\n"
    assert "rm --force abc def" in asked(folder)
    assert skymem(folder, "down").stdout == "no constellation is up\n"
