"""`skymem kill` and `skymem restart`, from the outside."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skymemory.cli import main
from skymemory.sky.constellation import Constellation
from skymemory.testbed.local import LocalConstellation, free_port
from skymemory.testbed.processes import is_alive
from skymemory.testbed.run_record import RunRecord
from skymemory.wire.address import Satellite
from support.waiting import PATIENCE_S

CONFIG = "[constellation]\nplanes = 2\nslots = 3\n[network]\nport = {port}\n[cache]\ncentre = [1, 1]\nservers = 4\n"
Skymem = Callable[..., Result]


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A constellation file of 2 x 3 satellites."""
    grid = {"planes": 2, "slots": 3}
    sky = Constellation().replace(constellation=grid, cache={"centre": [1, 1], "servers": 4})
    (path := tmp_path / "sky.toml").write_text(CONFIG.format(port=free_port(sky)))
    return str(path)


@pytest.fixture
def skymem(tmp_path: Path) -> Iterator[Skymem]:
    """Run the command with a state folder of its own; what it started is gone afterwards."""

    def run(*words: str, status: int = 0) -> Result:
        state = {"SKYMEM_STATE": str(tmp_path / "state")}
        result = CliRunner().invoke(main, words, env=state, prog_name="skymem")
        assert result.exit_code == status, f"{result.output}\n{result.exception!r}"
        return result

    yield run
    run("down")


def dead(skymem: Skymem) -> list[tuple[int, int]]:
    report = json.loads(skymem("status", "--json").stdout)
    return [(entry["plane"], entry["slot"]) for entry in report["satellites"] if not entry["alive"]]


def test_one_is_killed_and_comes_back(skymem: Skymem, file: str, tmp_path: Path) -> None:
    skymem("up", "--constellation", file)
    before = RunRecord(tmp_path / "state").require().processes
    assert skymem("kill", "2", "3").output == "satellite [2, 3] is dead\n"
    assert dead(skymem) == [(2, 3)]
    assert [place for place, process in before.items() if not is_alive(process)] == [Satellite(2, 3)]
    assert "`skymem restart 2 3`" in skymem("kill", "2", "3", status=1).output
    assert skymem("restart", "2", "3").output == "satellite [2, 3] is up\n"
    assert dead(skymem) == []
    assert "`skymem kill 2 3`" in skymem("restart", "2", "3", status=1).output
    after = RunRecord(tmp_path / "state").require()
    assert len(after.alive()) == 6
    assert {place for place in before if before[place] != after.processes[place]} == {Satellite(2, 3)}
    assert skymem("down").output == "6 satellites stopped\n"


def test_the_file_names_the_same_sky(skymem: Skymem, file: str) -> None:
    skymem("up", "--constellation", file)
    skymem("kill", "1", "1", "--constellation", file)
    assert dead(skymem) == [(1, 1)]
    skymem("restart", "1", "1", "--constellation", file)
    assert dead(skymem) == []


def test_all_of_them_one_by_one(skymem: Skymem, file: str) -> None:
    skymem("up", "--constellation", file)
    for place in Constellation.load(file).torus.satellites():
        skymem("kill", *map(str, place))
    assert "no constellation is up" in skymem("status", status=1).output
    skymem("restart", "1", "2")
    assert len(dead(skymem)) == 5


def test_satellites_of_others_are_left_alone(skymem: Skymem, file: str) -> None:
    with LocalConstellation(Constellation.load(file)) as theirs:
        said = skymem("kill", "1", "1", "--constellation", file, status=1).output
        assert "no process that `skymem up` started" in said
        assert said.count("\n") == 1
        skymem("restart", "1", "1", "--constellation", file, status=1)
        assert all(map(is_alive, theirs.processes.values()))


@pytest.mark.parametrize("words", [("3", "1"), ("1", "4")])
def test_outside_of_the_sky(skymem: Skymem, file: str, words: tuple[str, str]) -> None:
    assert "planes are 1 to 2, slots 1 to 3" in skymem("kill", *words, "--constellation", file, status=2).output
    assert "no constellation is up" in skymem("kill", "1", "1", status=1).output


def test_a_satellite_whose_address_is_taken_does_not_come_back(skymem: Skymem, file: str, tmp_path: Path) -> None:
    skymem("up", "--constellation", file)
    skymem("kill", "1", "1")
    sky = Constellation.load(file)
    with LocalConstellation(
        sky.replace(constellation={"planes": 1, "slots": 1}, cache={"centre": [1, 1], "servers": 1, "parity": 0})
    ):
        assert "in use" in skymem("restart", "1", "1", status=1).output
    assert Satellite(1, 1) not in RunRecord(tmp_path / "state").require().alive()
    skymem("restart", "1", "1")


def test_commands_that_start_and_end_satellites_take_turns(skymem: Skymem, file: str, tmp_path: Path) -> None:
    environment = {**os.environ, "SKYMEM_STATE": str(tmp_path / "state")}

    def start(*words: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", "from skymemory.cli import main; main(prog_name='skymem')", *words]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    for words, told in (
        (("up", "--constellation", file), "6 satellites are up after "),
        (("kill", "1", "1"), "satellite [1, 1] is dead"),
        (("restart", "1", "1"), "satellite [1, 1] is up"),
        (("down",), "6 satellites stopped"),
    ):
        with RunRecord(tmp_path / "state").turn("skymem other", print):
            child = start(*words)
            assert child.stderr is not None
            assert child.stderr.readline().startswith(f"`skymem other` (pid {os.getpid()}) is at work in {tmp_path / 'state'}: ")
        out, _ = child.communicate(timeout=PATIENCE_S)
        assert child.returncode == 0
        assert out.startswith(told)


def test_of_two_that_start_a_constellation_one_does(skymem: Skymem, file: str, tmp_path: Path) -> None:
    environment = {**os.environ, "SKYMEM_STATE": str(tmp_path / "state")}
    command = [sys.executable, "-c", "from skymemory.cli import main; main()", "up", "--constellation", file]
    children = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = {child.wait(PATIENCE_S): child.communicate()[1] for child in children}
    assert sorted(said) == [0, 1]
    assert said[1].endswith("Error: a constellation is up already (local); `skymem down` ends it\n")
    assert len(RunRecord(tmp_path / "state").require().alive()) == 6
