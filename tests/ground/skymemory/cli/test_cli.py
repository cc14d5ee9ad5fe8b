"""The command, from the outside: a constellation goes up, holds values, is looked at and goes down."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skymemory.cli import main
from skymemory.config import Constellation
from skymemory.testbed.local import LocalConstellation, free_port
from skymemory.testbed.state import State

CONFIG = """
[constellation]
planes = 3
slots = 4

[network]
port = {port}

[cache]
servers = 6
centre = [2, 2]
"""


class Command:
    """Runs `skymem` in a folder of its own, with a state of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = State(folder / "state")
        self._runner = CliRunner()

    def __call__(self, *words: str, status: int = 0, stdin: bytes | None = None) -> Result:
        environment = {"SKYMEM_STATE": str(self.state.folder)}
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            result = self._runner.invoke(main, words, input=stdin, env=environment)
        finally:
            os.chdir(before)
        assert result.exit_code == status, f"{result.output}\n{result.exception!r}"
        return result


@pytest.fixture
def skymem(tmp_path: Path) -> Iterator[Command]:
    """The command beside a constellation.toml of 3 x 4 satellites; what it started is gone afterwards."""
    grid = {"planes": 3, "slots": 4}
    small = Constellation().replace(constellation=grid, cache={"centre": [2, 2], "servers": 6})
    (tmp_path / "constellation.toml").write_text(CONFIG.format(port=free_port(small)))
    command = Command(tmp_path)
    yield command
    command("down")
    assert command.state.load() is None


def test_a_day_in_its_life(skymem: Command) -> None:
    assert "12 satellites are up" in skymem("up").output
    value = os.urandom(200_000)
    (skymem.folder / "value").write_bytes(value)

    stored = json.loads(skymem("put", "a key", "value", "--json").stdout)
    assert stored["bytes"] == len(value)
    skymem("get", "a key", "copy")
    assert (skymem.folder / "copy").read_bytes() == value
    assert skymem("get", "a key", "-").stdout_bytes == value

    report = json.loads(skymem("status", "--json").stdout)
    assert (report["planes"], report["slots"], report["alive"]) == (3, 4, 12)
    assert report["total"]["chunks"] == stored["chunks"]
    assert sum(entry["chunks"] > 0 for entry in report["satellites"]) == 6
    grid = skymem("status").output
    assert "12 of 12 satellites answer" in grid
    assert "plane 3" in grid

    skymem("del", "a key")
    missed = skymem("get", "a key", "gone", status=1)
    assert "a key" in missed.output
    assert not (skymem.folder / "gone").exists()
    assert "12 satellites stopped" in skymem("down").output


def test_a_value_from_standard_input(skymem: Command) -> None:
    skymem("up")
    skymem("put", "k", "-", stdin=b"some text")
    assert skymem("get", "k", "-").stdout_bytes == b"some text"


def test_what_the_system_refuses_is_one_line(skymem: Command) -> None:
    skymem("up")
    skymem("put", "bad \udcff", "-", stdin=b"some text")  # a name that is no UTF-8
    assert skymem("get", "bad \udcff", "-").stdout_bytes == b"some text"
    assert skymem("get", "bad \udcff", "/dev/full", status=1).output == "Error: No space left on device\n"
    nowhere = skymem.folder / "no" / "folder"
    assert skymem("get", "bad \udcff", str(nowhere), status=1).output == f"Error: {nowhere}: No such file or directory\n"


def test_links_show_requested_and_measured_delay(skymem: Command) -> None:
    with (skymem.folder / "constellation.toml").open("a") as file:
        file.write('uplink = "nearest"\n[links]\ndelay_us = 3000\n[satellite]\nhello_s = 1\n')
    skymem("up")
    deadline = time.monotonic() + 30
    measured: list[int] = []
    while len(measured) < 4:  # satellites measure with their hellos, one a second here
        assert time.monotonic() < deadline, measured
        report = json.loads(skymem("status", "--links", "--json").stdout)
        centre = next(entry for entry in report["satellites"] if (entry["plane"], entry["slot"]) == (2, 2))
        isls = [link for name, link in centre["links"].items() if name != "ground"]
        assert [link["delay_requested_us"] for link in isls] == [3000] * 4
        measured = [link["delay_measured_us"] for link in isls if link["delay_measured_us"]]
    assert min(measured) >= 3000
    assert "3.00/" in skymem("status", "--links").output


def test_up_twice_is_refused(skymem: Command) -> None:
    skymem("up")
    assert "`skymem down`" in skymem("up", status=1).output


def test_addresses_in_use_are_named(skymem: Command) -> None:
    sky = Constellation.load(skymem.folder / "constellation.toml")
    with LocalConstellation(sky):
        result = skymem("up", status=1)
    assert f"127.18.1.1 port {sky.network.port} is in use" in result.output
    assert skymem.state.load() is None


def test_a_satellite_that_died_shows_in_the_grid(skymem: Command) -> None:
    skymem("up")
    running = skymem.state.require()
    place, process = next(iter(running.processes.items()))
    os.kill(process.pid, 9)
    report = json.loads(skymem("status", "--json").stdout)
    dead = [(entry["plane"], entry["slot"]) for entry in report["satellites"] if not entry["alive"]]
    assert dead == [place]
    assert "no answer" in skymem("status").output


@pytest.mark.parametrize("words", [("status",), ("put", "k", "constellation.toml"), ("get", "k", "f"), ("del", "k")])
def test_without_a_constellation_it_says_what_to_do(skymem: Command, words: tuple[str, ...]) -> None:
    result = skymem(*words, status=1)
    assert "`skymem up`" in result.output
    assert result.output.count("\n") == 1


def test_a_mistake_in_the_file_is_told_with_its_line(skymem: Command) -> None:
    (skymem.folder / "bad.toml").write_text("[cache]\nservers = 0\n")
    result = skymem("up", "--config", "bad.toml", status=2)
    assert "bad.toml:2: cache.servers is 0" in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    "words", [("up", "--config", "nowhere.toml"), ("put", "k", "nowhere"), ("bench", "idle", "--seconds", "x"), ("fly",)]
)
def test_bad_input_ends_with_2(skymem: Command, words: tuple[str, ...]) -> None:
    skymem(*words, status=2)


def test_compose_prints_the_file(skymem: Command) -> None:
    text = skymem("compose").stdout
    assert text.count("ipv4_address:") == 12
    skymem("compose", "--output", "compose.yaml")
    assert (skymem.folder / "compose.yaml").read_text() == text


def test_down_without_up(skymem: Command) -> None:
    assert "no constellation is up" in skymem("down").output
