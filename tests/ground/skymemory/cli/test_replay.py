"""`skymem replay` as its user runs it, and what it refuses before anything starts."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from skymemory.cli import main
from skymemory.cli import replay as cli_replay
from skymemory.link.control import ControlPlane
from skymemory.sky.constellation import Constellation
from skymemory.sky.orbit.positions import Site
from skymemory.sky.orbit.schedule import Schedule
from skymemory.sky.orbit.walker import Walker
from skymemory.sky.whereabouts import Playing
from skymemory.testbed import replay as testbed_replay
from skymemory.testbed.local import free_port
from skymemory.testbed.playing_record import PlayingRecord
from skymemory.testbed.replay import ReplayError, row_now
from skymemory.testbed.run_record import RunRecord
from skymemory.wire.address import Satellite
from support.waiting import wait_until

HOUR_MS = 3_600_000
CONFIG = """
[constellation]
planes = 5
slots = 9
[network]
port = {port}
[cache]
centre = [3, 5]
servers = 6
layout = "{layout}"
"""


class User:
    """Runs `skymem` as a process, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = RunRecord(folder / "state")

    @property
    def playing(self) -> PlayingRecord:
        """Of the constellation in this folder."""
        return self.state.sky(Constellation.load(self.folder / "constellation.toml")).playing

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", "from skymemory.cli import main; main()", *words]
        environment = {**os.environ, "SKYMEM_STATE": str(self.state.folder)}
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=self.folder, env=environment, text=True, stdout=pipe, stderr=pipe)

    def run(self, *words: str, status: int = 0) -> str:
        """What it prints; with another status, what it says of the mistake."""
        process = self.start(*words)
        out, err = process.communicate(timeout=120)
        assert process.returncode == status, f"{out}\n{err}"
        return out if status == 0 else err

    def refused(self, *words: str) -> str:
        """The line that says why."""
        said = self.run("replay", *words, status=2)
        assert said.startswith("Error: ")
        assert said.count("\n") == 1
        assert self.playing.load() is None
        return said.removeprefix("Error: ").rstrip()


def save(folder: Path, name: str, *, planes: int = 5, slots: int = 9, star: bool = True, ago_ms: int = HOUR_MS) -> str:
    """A schedule of two hours that began some time ago."""
    orbits = Walker(planes, slots, 550.0, 86.4, star, 1)
    start_ms = int(time.time()) * 1000 - ago_ms
    Schedule.compute(orbits, "walker", Site(52.5, 13.4), 10.0, start_ms, 2 * HOUR_MS).save(folder / name)
    return name


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    """Beside a constellation of 5 x 9 satellites, which is stopped at the end."""
    sky = Constellation().replace(constellation={"planes": 5, "slots": 9}, cache={"centre": [3, 5]})
    (tmp_path / "constellation.toml").write_text(CONFIG.format(port=free_port(sky), layout="rotation_hop"))
    user = User(tmp_path)
    yield user
    user.run("down")
    assert user.playing.load() is None


def test_the_window_moves_and_values_stay(user: User) -> None:
    file = save(user.folder, "sky.csv")
    user.run("up")
    before = json.loads(user.run("status", "--json"))["window"]
    assert (before["centre"], before["row"]) == ([3, 5], None)
    (user.folder / "value").write_bytes(value := os.urandom(100_000))
    user.run("put", "a key", "value")

    report = json.loads(user.run("replay", file, "--speed", "600", "--hours", "0.5", "--json"))
    assert report["handovers"] == len(report["rows"]) > 1
    assert report["chunks"] == sum(row["chunks"] for row in report["rows"]) > 0

    after = json.loads(user.run("status", "--json"))["window"]
    assert after["centre"] == report["rows"][-1]["centre"]
    assert any(row["centre"] != before["centre"] for row in report["rows"])  # at some hours of the day it is back in the end
    assert (after["row"], after["rows"]) == (report["rows"][-1]["row"], report["rows"][-1]["row"])
    assert f"window around [{after['centre'][0]}, {after['centre'][1]}]" in user.run("status")
    user.run("get", "a key", "copy")
    assert (user.folder / "copy").read_bytes() == value

    told = user.run("replay", file, "--speed", "600", "--hours", "0.3", "--by", "command")
    assert " rows in " in told
    assert "handovers: " in told
    user.run("get", "a key", "copy")
    assert (user.folder / "copy").read_bytes() == value
    user.run("del", "a key")  # found by yet another process
    user.run("get", "a key", "copy", status=1)


def test_an_interrupted_replay_holds_the_window(user: User) -> None:
    file = save(user.folder, "sky.jsonl")
    user.run("up")
    process = user.start("replay", file, "--speed", "300")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.readline()  # a handover
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert "stopped: the window stays around [" in err
    assert process.returncode == 130
    first, second = (json.loads(user.run("status", "--json"))["window"] for _ in range(2))
    assert first["row"] == second["row"] > 1
    assert first["row"] < first["rows"]
    assert first["stays"]
    assert f"row {first['row']} of {first['rows']} (stopped: it stays)" in user.run("status")


@pytest.mark.parametrize("by", ["schedule", "command"])
def test_a_killed_replay_is_stopped_by_the_next_command(user: User, by: str) -> None:
    file = save(user.folder, "sky.csv")
    user.run("up")
    (user.folder / "value").write_bytes(value := os.urandom(100_000))
    user.run("put", "notes", "value")
    process = user.start("replay", file, "--from", "start", "--speed", "60", "--by", by)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.readline()  # a handover
    process.kill()
    process.communicate(timeout=60)
    next_command = user.start("status", "--json")
    out, err = next_command.communicate(timeout=120)
    first = json.loads(out)["window"]
    centre = f"[{first['centre'][0]}, {first['centre'][1]}]"
    assert err == f"the replay that moved this sky (pid {process.pid}) was killed: the window stays around {centre}\n"
    assert first["stays"]
    assert 1 < first["row"] < first["rows"]
    again = user.start("get", "notes", "copy")
    assert again.communicate(timeout=120)[1] == ""
    assert (user.folder / "copy").read_bytes() == value
    assert json.loads(user.run("status", "--json"))["window"] == first  # the sky's time as well


def test_the_sky_of_a_stopped_replay_has_a_time_that_stands_still(user: User) -> None:
    file = save(user.folder, "sky.csv")
    user.run("up")
    process = user.start("replay", file, "--speed", "60")
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    first, second = (json.loads(user.run("status", "--json"))["window"]["sky_time"] for _ in range(2))
    assert first == second
    assert (playing := user.playing.load()) is not None
    assert playing.stopped_ms == playing.end_ms


def test_a_replay_from_another_state_folder_ends_the_first(user: User) -> None:
    file = save(user.folder, "sky.csv")
    user.run("up")
    first = user.start("replay", file, "--from", "start", "--speed", "60")
    assert first.stdout is not None
    first.stdout.readline()
    first.stdout.readline()
    other = User(user.folder)
    other.state = RunRecord(user.folder / "other")
    second = other.start("replay", file, "--speed", "300", "--constellation", "constellation.toml", "--hours", "0.5")
    _, err = first.communicate(timeout=120)
    assert err == "Error: another replay, of another user or state folder, has ended this one\n"
    assert first.returncode == 1
    _, err = second.communicate(timeout=120)  # the first one gives satellites nothing any more
    assert (second.returncode, err) == (0, "")


@pytest.mark.parametrize("reason", [KeyboardInterrupt, ReplayError])
def test_what_moved_is_found_when_half_of_the_satellites_have_the_schedule(
    user: User, monkeypatch: pytest.MonkeyPatch, reason: type[BaseException]
) -> None:
    file = save(user.folder, "sky.csv")
    user.run("up")
    (user.folder / "value").write_bytes(value := os.urandom(300_000))
    user.run("put", "notes", "value")
    uploads: list[Playing | None] = []

    def upload(control: ControlPlane, playing: Playing | None) -> None:
        uploads.append(playing)
        if len(uploads) > 1:
            testbed_replay.upload(control, playing)
            return
        assert playing is not None
        testbed_replay.upload(control, playing, list(control.constellation.torus.satellites())[::2])
        wait_until(lambda: row_now(playing) >= 3)  # the first is where the window was
        raise reason("in between")

    monkeypatch.setenv("SKYMEM_STATE", str(user.state.folder))
    monkeypatch.chdir(user.folder)
    monkeypatch.setattr(cli_replay, "upload", upload)  # nothing else ends it at this moment, every time
    result = CliRunner().invoke(main, ["replay", file, "--speed", "300"])
    assert result.exit_code == (130 if reason is KeyboardInterrupt else 1), result.output
    first, second = (json.loads(user.run("status", "--json"))["window"] for _ in range(2))
    assert first["row"] == second["row"] > 1
    user.run("get", "notes", "back")
    assert (user.folder / "back").read_bytes() == value


def test_another_replay_ends_the_first(user: User) -> None:
    file = save(user.folder, "sky.csv")
    user.run("up")
    (user.folder / "value").write_bytes(value := os.urandom(100_000))
    user.run("put", "a key", "value")
    first = user.start("replay", file, "--from", "start", "--speed", "60")
    assert first.stdout is not None
    first.stdout.readline()
    second = json.loads(user.run("replay", file, "--speed", "600", "--hours", "0.3", "--json"))
    _, err = first.communicate(timeout=60)
    assert err == "Error: another replay, or `skymem down`, has ended this one\n"
    assert first.returncode == 1
    after = json.loads(user.run("status", "--json"))["window"]
    assert (after["row"], after["centre"]) == (second["rows"][-1]["row"], second["rows"][-1]["centre"])
    user.run("get", "a key", "copy")
    assert (user.folder / "copy").read_bytes() == value


def test_a_replay_ends_with_its_constellation(user: User) -> None:
    file = save(user.folder, "sky.csv")
    user.run("up")
    process = user.start("replay", file, "--speed", "300")
    assert process.stdout is not None
    process.stdout.readline()
    user.run("down")
    user.run("up")
    _, err = process.communicate(timeout=60)
    assert err == "Error: another replay, or `skymem down`, has ended this one\n"
    assert process.returncode == 1
    assert user.playing.load() is None
    assert json.loads(user.run("status", "--json"))["window"]["row"] is None


def test_the_sky_stays_when_a_replay_is_over(user: User) -> None:
    file = save(user.folder, "sky.csv")
    user.run("up")
    user.run("replay", file, "--speed", "600", "--hours", "0.2")
    first, second = (json.loads(user.run("status", "--json"))["window"] for _ in range(2))
    assert first == second
    assert "(the last: it stays)" in user.run("status")


@pytest.mark.parametrize("speed", ["0", "-1", "nan", "1001"])
def test_speeds_that_are_refused(user: User, speed: str) -> None:
    file = save(user.folder, "sky.csv")
    assert user.refused(file, "--speed", speed) == f"--speed is {speed}; allowed are numbers above 0, up to 1000"


def test_schedules_that_are_refused(user: User) -> None:
    user.run("up")
    over = save(user.folder, "over.csv", ago_ms=3 * HOUR_MS)
    assert "over.csv ends at " in (said := user.refused(over))
    assert ", before now; --from start replays it from its beginning" in said
    later = save(user.folder, "later.csv", ago_ms=-HOUR_MS)
    assert ", after now; --from start replays it" in user.refused(later)
    other = save(user.folder, "other.csv", slots=8)
    expected = "other.csv is for 5 planes x 8 slots; this constellation has 5 planes x 9 slots"
    assert user.refused(other) == expected
    delta = save(user.folder, "delta.csv", star=False)
    assert user.refused(delta) == "delta.csv is for a delta; this constellation is a star"
    (user.folder / "broken.csv").write_text("nonsense\n")
    assert user.refused("broken.csv").startswith("broken.csv:1: ")
    good = save(user.folder, "good.csv")
    assert "--from is yesterday; allowed are now, start and times such as " in user.refused(good, "--from", "yesterday")
    assert user.refused(good, "--hours", "0") == "--hours is 0; allowed are numbers above 0"
    assert "rows; satellites" not in user.refused(good, "--speed", "0.0001")


def test_a_satellite_that_does_not_answer_leaves_all_as_it_was(user: User) -> None:
    user.run("up")
    (user.folder / "value").write_bytes(bytes(100_000))
    user.run("put", "notes", "value")
    running = user.state.load()
    assert running is not None
    os.kill(running.processes[Satellite(1, 2)].pid, signal.SIGKILL)  # none of the servers
    said = user.run("replay", save(user.folder, "sky.csv"), "--speed", "60", status=1)
    assert said == "Error: 1 satellites do not answer: [1, 2]; nothing moves\n"
    assert user.playing.load() is None
    user.run("get", "notes", "back")
    assert (user.folder / "back").read_bytes() == bytes(100_000)


def test_a_layout_that_never_moves(user: User) -> None:
    text = (user.folder / "constellation.toml").read_text()
    (user.folder / "constellation.toml").write_text(text.replace("rotation_hop", "hop"))
    user.run("up")
    assert 'cache.layout is "hop", which never moves' in user.refused(save(user.folder, "sky.csv"))


def test_nothing_is_up(user: User) -> None:
    file = save(user.folder, "sky.csv")
    assert "no constellation is up; `skymem up` starts one" in user.run("replay", file, status=1)
