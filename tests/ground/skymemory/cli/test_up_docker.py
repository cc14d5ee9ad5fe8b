"""`skymem up --docker` with an engine that is a script: what is asked of it, and what is told. Real ones: tests/docker."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

DOCKER = """#!/bin/sh
echo "$*" >> "$0.log"
case "$*" in
"info --format "*) echo '{info}' ;;
*" up -d --no-build") echo 'ERROR: for sat-1-1  no space left on device' >&2; exit 1 ;;
*" down --timeout 2") echo 'error while removing network: has active endpoints' >&2; exit 1 ;;
"ps --all --filter "*) echo '{container}' ;;
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


def up(folder: Path, planes: int, slots: int) -> str:
    """Return the last line of what a refused `up --docker` says."""
    (folder / "sky.toml").write_text(f"[constellation]\nplanes = {planes}\nslots = {slots}\n[cache]\ncentre = [1, 1]\n")
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "SKYMEM_STATE": str(folder / "state"), "TMPDIR": str(folder)}
    command = [sys.executable, "-c", "from skymemory.cli import main; main()", "up", "--docker", "--constellation", "sky.toml"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 1, done
    return done.stderr.splitlines()[-1]


def test_more_than_fit_are_refused_before_anything_is_done(folder: Path) -> None:
    said = up(folder, 40, 50)
    assert said == "Error: 2,000 satellites are more than fit: a bridge has 1,023 ports, which leaves room for 1,023"
    asked = (folder / "bin" / "docker.log").read_text()
    assert "image" not in asked
    assert " up " not in asked


def test_the_cause_is_told_though_clearing_up_fails_as_well(folder: Path) -> None:
    assert up(folder, 3, 5) == "Error: Compose, up: no space left on device"
