"""Commands of a host whose keys satellites refuse: they say so, and do not say that nobody answers."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skymemory.cli import main
from skymemory.security.keyring import HostRecord
from skymemory.security.mission_folder import add_host, begin_mission, host_file, rotate
from skymemory.sky.constellation import KEYRING_VARIABLE
from skymemory.sky.orbit.positions import Site
from skymemory.sky.orbit.schedule import Schedule
from skymemory.sky.orbit.walker import Walker
from skymemory.testbed.local import LocalConstellation
from skymemory.testbed.run_record import RunRecord
from skymemory.wire.address import Satellite
from support.ports import free_ports

StartSky = Callable[..., LocalConstellation]
WIDE = 1000
"""Columns with room for any line."""
WANTED = "answer, but want keys, and this host has no keyring: name it as security.keyring in the constellation file, or "


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    begin_mission(tmp_path / "keys", 3, 5, HostRecord(name="host", tenants=(0,)))
    return tmp_path / "keys"


@pytest.fixture
def local(keys: Path, start_sky: StartSky) -> LocalConstellation:
    return start_sky(security={"keyring": str(keys / "mission.json")})


@pytest.fixture
def skymem(local: LocalConstellation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run a command on these satellites with a keyring of this host's own: `skymem(keyring, ...)`; None: without one."""
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path / "state"))
    (file := tmp_path / "sky.toml").write_text(
        "[constellation]\nplanes = 3\nslots = 5\n[cache]\nservers = 9\ncentre = [2, 3]\n"
        f"[network]\nport = {local.constellation.network.port}\n"
    )

    def run(keyring: Path | None, *words: object, status: int = 0, width: int = 80) -> Result:
        environment = {KEYRING_VARIABLE: None if keyring is None else str(keyring), "SKYMEM_CONSTELLATION": str(file)}
        environment["COLUMNS"] = str(width)
        result = CliRunner().invoke(main, [str(word) for word in words], input="text", env=environment, prog_name="skymem")
        assert result.exit_code == status, f"{result.output}\n{result.exception!r}"
        return result

    return run


@pytest.fixture
def process(skymem: Callable[..., Result], tmp_path: Path) -> Callable[..., str]:
    """Return what the same command as a process says on standard error, with the log's warnings; it has to fail."""

    def run(keyring: Path | None, *words: str) -> str:
        environment = {name: value for name, value in os.environ.items() if name != KEYRING_VARIABLE}
        environment |= {"SKYMEM_CONSTELLATION": str(tmp_path / "sky.toml")}
        environment |= {} if keyring is None else {KEYRING_VARIABLE: str(keyring)}
        command = [sys.executable, "-c", "from skymemory.cli import main; main()", *words]
        done = subprocess.run(command, env=environment, input="text", capture_output=True, text=True, check=False)
        assert done.returncode == 1
        return done.stderr

    return run


def test_a_keyring_of_another_mission(
    skymem: Callable[..., Result], process: Callable[..., str], keys: Path, tmp_path: Path
) -> None:
    begin_mission(tmp_path / "others", 3, 5, HostRecord(name="gpu-1", tenants=(0,)))
    right, wrong = host_file(keys, 1, "host"), host_file(tmp_path / "others", 1, "gpu-1")
    skymem(right, "put", "k", "-")
    told = f"answer, but refuse this host's keys: keyring {wrong}, host gpu-1 of generation 1, is of another mission, or of a"
    for words in (("get", "k", "-"), ("put", "k", "-"), ("del", "k")):
        said = process(wrong, *words)
        assert said.count(told) == 1, said
        assert said.splitlines()[-1].startswith("Error: 'k' was not ")
        assert "no satellite answers" not in said
    shown = skymem(wrong, "status", width=WIDE).output
    assert f"15 satellites {told}" in shown
    assert shown.count("refuses") == 15
    assert "0 of 15 satellites answer" in shown
    report = json.loads(skymem(wrong, "status", "--json").stdout)
    assert (report["alive"], report["refusal"]) == (0, next(line for line in shown.splitlines() if told in line))
    assert all(one["refuses"] for one in report["satellites"])
    assert skymem(right, "get", "k", "-").stdout == "text"
    assert json.loads(skymem(right, "status", "--json").stdout)["refusal"] == ""


def test_a_relay_says_so_at_its_start(
    skymem: Callable[..., Result], local: LocalConstellation, keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It also tells of a satellite that does not answer."""
    begin_mission(tmp_path / "others", 3, 5, HostRecord(name="gpu-1", tenants=(0,)))
    wrong = tmp_path / "others" / "mission.json"
    monkeypatch.setenv("SKYMEM_CONSTELLATION", str(tmp_path / "sky.toml"))
    local.kill(Satellite(3, 5))

    def relay(keyring: Path, plane: int) -> Iterator[str]:
        """What it says on standard error: its first line, then the rest."""
        monkeypatch.setenv(KEYRING_VARIABLE, str(keyring))
        (port,) = free_ports(1)
        words = ["relay", str(plane), "5", "--commands", f"127.0.0.1:{port}"]
        command = [sys.executable, "-c", "from skymemory.cli import main; main()", *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            assert child.stderr is not None
            assert child.stdout.readline().startswith(f"satellite [{plane}, 5]: commands at ")
            yield child.stderr.readline()
            child.terminate()
            yield child.stderr.read()

    told = f"1 satellite answers, but refuses this host's keys: keyring {wrong}, the mission of generation 1, is of "
    first, rest = relay(wrong, 1)
    assert f" WARNING skymemory.cli.relay: {told}" in first
    assert rest == ""
    first, rest = relay(keys / "mission.json", 3)
    assert first.endswith("satellite [3, 5] does not answer yet\n")
    assert rest == ""


def test_no_keyring(skymem: Callable[..., Result], process: Callable[..., str]) -> None:
    for words in (("get", "k", "-"), ("put", "k", "-"), ("del", "k")):
        assert process(None, *words).count(WANTED) == 1
    assert f"15 satellites {WANTED}" in skymem(None, "status", width=WIDE).output


def test_a_generation_that_satellites_do_not_know_yet(
    skymem: Callable[..., Result], keys: Path, tmp_path: Path, local: LocalConstellation
) -> None:
    rotate(keys)
    told = f"15 satellites answer, but refuse this host's keys: keyring {keys / 'mission.json'}, the mission of generation 2, is "
    walker = Walker(3, 5, 550.0, 86.4, True, 1)
    Schedule.compute(walker, "walker", Site(52.5, 13.4), 10.0, 0, 3_600_000).save(tmp_path / "sky.csv")
    said = skymem(keys / "mission.json", "replay", tmp_path / "sky.csv", "--from", "start", status=1).stderr
    assert said.startswith(f"Error: {told}")
    assert said.endswith("; nothing moves\n")
    assert not RunRecord().sky(local.constellation).playing.load()


def test_one_satellite_that_refuses_is_told_of(skymem: Callable[..., Result], keys: Path, local: LocalConstellation) -> None:
    """It was started again with keys of before, and the others have gone on."""
    add_host(keys, HostRecord(name="second", tenants=(0,)))
    rotate(keys)
    for step in ("load", "activate", "forget"):
        skymem(None, "keys", step, keys)
    place = next(iter(local.processes))
    local.kill(place)
    local.restart(place)
    shown = skymem(host_file(keys, 2, "second"), "status", width=WIDE).output
    assert "14 of 15 satellites answer" in shown
    assert "1 satellite answers, but refuses this host's keys: keyring " in shown
