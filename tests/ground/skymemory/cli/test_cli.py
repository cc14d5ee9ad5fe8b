"""The command, from the outside: a constellation goes up, holds values, is looked at and goes down."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skymemory.cli import main
from skymemory.common.state_folder import SECRET_VARIABLE
from skymemory.sky.constellation import Constellation
from skymemory.testbed.local import LocalConstellation, free_port
from skymemory.testbed.processes import identify, is_alive
from skymemory.testbed.run_record import Running, RunRecord
from skymemory.wire.address import Satellite
from support.waiting import wait_until

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
        self.state = RunRecord(folder / "state")
        self._runner = CliRunner()

    def __call__(self, *words: str, status: int = 0, stdin: bytes | None = None) -> Result:
        environment = {"SKYMEM_STATE": str(self.state.folder)}
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            result = self._runner.invoke(main, words, input=stdin, env=environment, prog_name="skymem")
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
    fetched = json.loads(skymem("get", "a key", "copy", "--json").stdout)
    assert fetched | {"seconds": 0} == stored | {"seconds": 0}
    assert fetched["seconds"] > 0
    assert (skymem.folder / "copy").read_bytes() == value
    assert skymem("get", "a key", "copy").output == ""
    assert skymem("get", "a key", "-").stdout_bytes == value

    report = json.loads(skymem("status", "--json").stdout)
    assert (report["planes"], report["slots"], report["alive"]) == (3, 4, 12)
    assert report["total"]["chunks"] == stored["chunks"]
    assert sum(entry["chunks"] > 0 for entry in report["satellites"]) == 6
    grid = skymem("status").output
    assert "12 of 12 satellites answer" in grid
    assert [line.split()[0] for line in grid.splitlines() if line[:7].strip().isdigit()] == ["1", "2", "3"]  # planes

    deleted = json.loads(skymem("del", "a key", "--json").stdout)
    assert deleted["key"] == "a key"
    assert skymem("del", "a key", "--json", status=1).stdout == ""
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
    assert skymem("get", "bad \udcff", "/dev/full", status=1).output == "Error: /dev/full: No space left on device\n"
    nowhere = skymem.folder / "no" / "folder"
    assert skymem("get", "bad \udcff", str(nowhere), status=1).output == f"Error: {nowhere}: No such file or directory\n"


def test_links_show_requested_least_and_mean_delay(skymem: Command) -> None:
    with (skymem.folder / "constellation.toml").open("a") as file:
        file.write('uplink = "nearest"\n[links]\ndelay_us = 3000\n[satellite]\nhello_s = 1\n')
    skymem("up")

    def all_are_measured() -> bool:
        report = json.loads(skymem("status", "--links", "--json").stdout)
        centre = next(entry for entry in report["satellites"] if (entry["plane"], entry["slot"]) == (2, 2))
        isls = [link for name, link in centre["links"].items() if name != "ground"]
        assert [link["delay_requested_us"] for link in isls] == [3000] * 4
        measured = [link for link in isls if link["delay_min_us"]]
        assert all(3000 <= link["delay_min_us"] <= link["delay_mean_us"] for link in measured)
        return len(measured) == 4

    wait_until(all_are_measured)  # satellites measure with their hellos, one a second here
    assert " 3.00 " in skymem("status", "--links").output


def test_tenants_are_listed_with_their_quotas(skymem: Command) -> None:
    with (skymem.folder / "constellation.toml").open("a") as file:
        file.write("tenant = 7\n[[tenants]]\nnumber = 7\nreserved_percent = 25\nmost_percent = 50\n")
    skymem("up")
    stored = json.loads(skymem("put", "k", "-", "--json", stdin=bytes(300_000)).stdout)
    report = json.loads(skymem("status", "--json").stdout)
    own, others = report["tenants"]
    slot_bytes = Constellation().slot_bytes
    assert (own["tenant"], own["refused"]) == (7, 0)
    assert own["used_bytes"] == (stored["chunks"] + 6) * slot_bytes  # a slot of entries on each server
    assert (others["tenant"], others["used_bytes"], others["reserved_bytes"]) == ("others", 0, 0)
    store_bytes = sum(entry["store"]["store_bytes"] for entry in report["satellites"])
    assert others["most_bytes"] == store_bytes
    assert own["reserved_bytes"] + 12 * slot_bytes >= store_bytes / 4 >= own["reserved_bytes"]
    assert [one["tenant"] for one in report["satellites"][0]["tenants"]] == ["others", 7]
    rows = [line.split() for line in skymem("status").output.splitlines()]
    shown = [f"{own[name] / 1e6:,.1f}" for name in ("reserved_bytes", "most_bytes", "used_bytes")]
    assert ["7", *shown, f"{own['blocks']:,}", "0", "0"] in rows


def test_what_is_not_measured_has_no_delay(skymem: Command) -> None:
    with (skymem.folder / "constellation.toml").open("a") as file:
        file.write("[[links.override]]\nfrom = [2, 2]\nto = [2, 3]\ncut = true\n")
    skymem("up")
    report = json.loads(skymem("status", "--json").stdout)
    links = next(entry["links"] for entry in report["satellites"] if (entry["plane"], entry["slot"]) == (2, 2))
    assert links["ground"]["delay_mean_us"] is links["ground"]["delay_min_us"] is None
    assert (links["east"]["up"], links["east"]["delay_min_us"]) == (0, None)
    rows = [line.split() for line in skymem("status", "--links").output.splitlines()]
    assert ["[2,", "2]", "east", "[2,", "3]", "down", "0.00", "-", "-", "0", "0", "0"] in rows
    assert sum(row[2:4] == ["ground", "hosts"] and row[6] == "-" for row in rows) == 12


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_all_that_is_shown_fits_the_terminal(skymem: Command, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    skymem("up")
    skymem("put", "k", "-", stdin=bytes(300_000))
    lines = skymem("status").output.splitlines()
    headings = [line for line in lines if line.startswith("plane ↓")]
    assert [word for line in headings for word in line.split() if word.isdigit()] == ["1", "2", "3", "4"]
    assert all(len(line.rstrip()) <= columns for line in lines)
    assert columns < 80 or "…" not in skymem("status", "--links").output
    assert all(any(line.startswith(f"{plane:>7} ") for line in lines) for plane in range(1, 4))


def test_up_makes_the_tenant_secret_and_nobody_makes_it_anew(skymem: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SECRET_VARIABLE)
    file = skymem.state.folder / "tenant-127.18.0.0.secret"
    assert skymem("up").stderr.startswith(
        f"{file}: a tenant secret was made. Other hosts of this sky need it, too; keep a copy\n"
    )
    skymem("put", "k", "-", stdin=b"text")
    file.rename(kept := skymem.folder / "kept")
    for words in (("get", "k", "-"), ("put", "k", "-"), ("del", "k")):
        assert f"Error: tenant secret {file} is missing, and without it nothing is found" in skymem(*words, status=1).stderr
    assert not file.exists()
    kept.rename(file)
    assert skymem("get", "k", "-").stdout == "text"
    skymem("down")
    assert skymem("up").stderr == ""
    skymem("down")
    file.unlink()
    with LocalConstellation(Constellation.load(skymem.folder / "constellation.toml")):
        assert "is in use" in skymem("up", status=1).stderr  # who has a copy can still put it there
    assert not file.exists()
    assert skymem("up").stderr.startswith(f"{file}: a tenant secret was made.")  # the sky that starts is empty
    skymem("put", "k", "-", stdin=b"text")
    assert skymem("get", "k", "-").stdout == "text"


def test_up_twice_is_refused(skymem: Command) -> None:
    skymem("up")
    assert "`skymem down`" in skymem("up", status=1).output


def test_a_constellation_of_another_state_folder_is_named(skymem: Command, tmp_path_factory: pytest.TempPathFactory) -> None:
    skymem("up")
    file = str(skymem.folder / "constellation.toml")
    other = {"SKYMEM_STATE": str(tmp_path_factory.mktemp("other"))}
    result = CliRunner().invoke(main, ["up", "--constellation", file], env=other, prog_name="skymem")
    assert result.exit_code == 1
    assert (
        f" is in use by the constellation of the state folder {skymem.state.folder}: "
        f"`SKYMEM_STATE={skymem.state.folder} skymem down` ends it; or choose another network.port\n" in result.output
    )


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
    assert "lost" in skymem("status").output


@pytest.mark.parametrize("words", [("status",), ("put", "k", "constellation.toml"), ("get", "k", "f"), ("del", "k")])
def test_without_a_constellation_it_says_what_to_do(skymem: Command, words: tuple[str, ...]) -> None:
    result = skymem(*words, status=1)
    assert "`skymem up`" in result.output
    assert result.output.count("\n") == 1


def test_a_mistake_in_the_file_is_told_with_its_line(skymem: Command) -> None:
    (skymem.folder / "bad.toml").write_text("[cache]\nservers = 0\n")
    result = skymem("up", "--constellation", "bad.toml", status=2)
    assert "bad.toml:2: cache.servers is 0" in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    "words", [("up", "--constellation", "nowhere.toml"), ("put", "k", "nowhere"), ("bench", "idle", "--seconds", "x"), ("fly",)]
)
def test_bad_input_ends_with_2(skymem: Command, words: tuple[str, ...]) -> None:
    skymem(*words, status=2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fly",), "'fly'; see `skymem --help`"),
        (("--fly", "up"), "; see `skymem --help`"),
        (("up", "--constellation"), "requires an argument"),
        (("up", "--constellation", "nowhere"), "File 'nowhere' does not exist; see `skymem up --help`"),
        (("put", "k"), "Missing argument 'FILE'; see `skymem put --help`"),
        (("bench", "idle", "--seconds", "x"), "'x' is not a valid float range; see `skymem bench idle --help`"),
        (("put", "-key", "f"), ". Put two dashes before a KEY that begins with one: skymem put -- KEY FILE"),
        (("del", "--key"), ". Put two dashes before a KEY that begins with one: skymem del -- KEY"),
        (("get", "k", "-", "--json"), "the value and --json both go to standard output; allowed with --json is a file"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line(skymem: Command, words: tuple[str, ...], said: str) -> None:
    output = skymem(*words, status=2).output
    assert output.startswith("Error: ")
    assert output.endswith(f"{said}\n")
    assert output.count("\n") == 1


def test_no_command_shows_what_there_is(skymem: Command) -> None:
    assert "skymem down" in skymem(status=2).output
    assert "peers" in skymem("bench", status=2).output


def test_keys_that_begin_with_a_dash(skymem: Command) -> None:
    skymem("up")
    skymem("put", "--", "-k", "-", stdin=b"some text")
    assert skymem("get", "--", "-k", "-").stdout_bytes == b"some text"
    skymem("del", "--", "-k")
    assert "skymem get -- KEY FILE" in skymem("get", "--help").output


def test_compose_prints_the_file(skymem: Command) -> None:
    text = skymem("compose").stdout
    assert text.count("ipv4_address:") == 12
    assert "build:" not in text  # here is no checkout
    skymem("compose", "-o", "compose.yaml")
    assert (skymem.folder / "compose.yaml").read_text() == text
    assert skymem("compose", "-o", "-").stdout == text
    assert not (skymem.folder / "-").exists()


def test_compose_names_the_file_and_the_checkout(skymem: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("[constellation]\nplanes = 4\n")
    (tmp_path / "src" / "docker").mkdir(parents=True)
    (tmp_path / "src" / "docker" / "Dockerfile").touch()
    for output, context in (("src/docker/a.yaml", ".."), ("src/b.yaml", ".")):
        skymem("compose", "--constellation", "mine.toml", "--output", output)
        text = (tmp_path / output).read_text()
        assert text.startswith("# Made by `skymem compose` from mine.toml.")
        assert f'build: {{context: "{context}", dockerfile: docker/Dockerfile' in text
    skymem.folder = tmp_path / "src"  # the current folder
    (tmp_path / "elsewhere").mkdir()
    skymem("compose", "--output", "../elsewhere/c.yaml")
    text = (tmp_path / "elsewhere" / "c.yaml").read_text()
    assert text.startswith("# Made by `skymem compose` from the defaults.")
    assert 'context: "../src"' in text
    assert 'context: ".."' in skymem("compose").stdout


def test_down_clears_a_damaged_record_and_finds_the_satellites(skymem: Command) -> None:
    skymem("up")
    processes = list(skymem.state.require().processes.values())
    record = skymem.state.path.read_text()
    skymem.state.path.write_text(record[: len(record) // 2])
    for words in (("up",), ("status",), ("del", "k")):
        said = skymem(*words, status=1).output
        assert "`skymem down` clears it" in said
        assert said.count("\n") == 1
    assert all(is_alive(process) for process in processes)
    first, *_, last = skymem("down").output.splitlines()
    assert first.startswith(f"{skymem.state.path} was damaged (")
    assert last == "12 satellites stopped"
    assert not any(is_alive(process) for process in processes)
    assert skymem.state.load() is None


def test_down_leaves_alone_what_only_a_damaged_record_claims(skymem: Command) -> None:
    with subprocess.Popen(["sleep", "60"]) as sleep:
        process = identify(sleep.pid)
        assert process is not None
        skymem.state.save(Running("local", Constellation(), {Satellite(1, 1): process}))
        record = json.loads(skymem.state.path.read_text()) | {"kind": "?"}
        skymem.state.path.write_text(json.dumps(record))
        assert skymem("down").output.splitlines()[-1] == "0 satellites stopped"
        assert is_alive(process)
        sleep.kill()


def test_down_ends_satellites_that_no_record_tells_of(skymem: Command) -> None:
    skymem("up")
    skymem.state.clear()  # as if `up` had been killed before it wrote one
    assert "in use" in skymem("up", status=1).output
    assert skymem("down").output == "12 satellites stopped\n"


def test_down_without_up(skymem: Command) -> None:
    assert "no constellation is up" in skymem("down").output
