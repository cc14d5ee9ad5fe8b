"""The units of systemd: what they start does start, tells that it is ready, and ends in time."""

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from skymemory.agent.service import CLOSE_S
from skymemory.agent.settings import load_file
from skymemory.sky.constellation import Constellation
from skymemory.testbed.local import free_port
from support.waiting import PATIENCE_S

FOLDER = Path(__file__).parents[4] / "ground" / "systemd"
UNIT = FOLDER / "skymem-agent.service"
SATELLITES = FOLDER / "skymem-satellites.service"


def entries(name: str, unit: Path = UNIT) -> list[str]:
    lines = (line.partition("=") for line in unit.read_text().splitlines())
    return [value for key, _, value in lines if key == name]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """What stands for /usr/bin/skymem."""
    script = tmp_path / "skymem"
    script.write_text(f"#!{sys.executable}\nfrom skymemory.cli import main\nmain()\n")
    script.chmod(0o755)
    return script


def test_what_it_starts_tells_that_it_is_ready(program: Path, tmp_path: Path) -> None:
    settings = (FOLDER / "agent.toml").read_text()
    folders = {"/run/skymemory": str(tmp_path), "/etc/skymemory": str(tmp_path)}
    for here, there in (folders | dict.fromkeys(("8090", "6390", "6391"), "0")).items():
        settings = settings.replace(here, there)
    (tmp_path / "agent.toml").write_text(settings)
    (tmp_path / "constellation.toml").write_text("")
    (command,) = entries("ExecStart")
    words = shlex.split(command.replace("/usr/bin/skymem", str(program)).replace("/etc/skymemory", str(tmp_path)))
    environment = dict(one.partition("=")[::2] for one in entries("Environment"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(PATIENCE_S)
        environment |= {"SKYMEM_STATE": str(tmp_path), "NOTIFY_SOCKET": str(tmp_path / "notify"), "PATH": os.environ["PATH"]}
        with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
            assert listener.recv(100) == b"READY=1"
            assert (tmp_path / "agent.sock").is_socket()
            child.send_signal(signal.SIGTERM)
            assert listener.recv(100) == b"STOPPING=1"
            assert child.wait(PATIENCE_S) == 0
    assert entries("Type") == ["notify"]


def test_it_is_given_more_time_than_it_takes_to_end() -> None:
    assert int(entries("TimeoutStopSec")[0]) > CLOSE_S


def test_its_settings_are_known() -> None:
    assert load_file(FOLDER / "agent.toml") == tomllib.loads((FOLDER / "agent.toml").read_text())


def test_satellites_start_and_stop_by_their_unit(program: Path, tmp_path: Path) -> None:
    planned = Constellation().replace(constellation={"planes": 3, "slots": 3}, cache={"centre": [2, 2], "servers": 4})
    text = (
        f"[constellation]\nplanes = 3\nslots = 3\n[cache]\nservers = 4\ncentre = [2, 2]\n[network]\nport = {free_port(planned)}\n"
    )
    (tmp_path / "constellation.toml").write_text(text)
    environment = {"SKYMEM_STATE": str(tmp_path / "state"), "PATH": os.environ["PATH"]}

    def run(name: str) -> str:
        (command,) = entries(name, SATELLITES)
        words = shlex.split(command.replace("/usr/bin/skymem", str(program)).replace("/etc/skymemory", str(tmp_path)))
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout

    assert "9 satellites are up" in run("ExecStart")
    assert run("ExecStop") == "9 satellites stopped\n"
    assert (entries("Type", SATELLITES), entries("RemainAfterExit", SATELLITES)) == (["oneshot"], ["yes"])
    shared = ("User", "StateDirectory", "Environment")
    assert all(set(entries(name, SATELLITES)) <= set(entries(name)) for name in shared)  # one tenant secret for both


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
@pytest.mark.parametrize("unit", [UNIT, SATELLITES], ids=["agent", "satellites"])
def test_systemd_understands_it(unit: Path, program: Path, tmp_path: Path) -> None:
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace("/usr/bin/skymem", str(program)))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(copy)], capture_output=True, text=True, check=False)
    about_it = [line for line in done.stderr.splitlines() if unit.name in line]
    assert (done.returncode, about_it) == (0, [])
