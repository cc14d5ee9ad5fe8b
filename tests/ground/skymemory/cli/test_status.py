"""`skymem status`: who is lost, what that means, and what fits the terminal."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from skymemory.cli import main
from skymemory.cli.status_report import empty_servers
from skymemory.cli.status_words import grid, parity_text, verdict
from skymemory.link.control import ControlPlane
from skymemory.sky.constellation import Constellation
from skymemory.testbed.local import LocalConstellation, free_port
from skymemory.testbed.replay import ReplayError, require_all
from skymemory.testbed.run_record import Running, RunRecord
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from support.other_satellites import OtherSatellites
from support.waiting import wait_until

Skymem = Callable[..., Result]
SERVER = [Satellite(2, 2), Satellite(1, 2), Satellite(2, 3)]


@pytest.fixture(autouse=True)
def unfolded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave lines as long as they are; the workers of pytest name a width."""
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def sky(start_sky: Callable[..., LocalConstellation], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalConstellation:
    """Satellites of which four may be lost: 3 x 4 with six servers around [2, 2], two of them with parity."""
    local = start_sky(constellation={"planes": 3, "slots": 4}, cache={"servers": 6, "centre": [2, 2]})
    RunRecord(tmp_path).save(Running("local", local.constellation, dict(local.processes)))
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path))
    return local


@pytest.fixture
def skymem() -> Skymem:
    """`skymem("status", "--check")`, with the exit status that is expected."""

    def run(*words: str, status: int = 0) -> Result:
        result = CliRunner().invoke(main, words, prog_name="skymem")
        assert result.exit_code == status, f"{result.output}\n{result.exception!r}"
        return result

    return run


def test_who_is_lost_is_told_with_what_that_means(sky: LocalConstellation, skymem: Skymem) -> None:
    assert skymem("status", "--check").output == "whole: all 6 servers answer; any 2 may be lost\n"
    sky.kill(SERVER[0])
    sky.kill(Satellite(3, 4))
    told = skymem("status", "--check", status=1).output.splitlines()
    assert told == [
        "DEGRADED: 1 of 6 servers is lost: [2, 2]. All blocks can be fetched; 1 more may be lost",
        "outside the window 1 is lost: [3, 4]",
    ]
    assert skymem("status").output.splitlines()[:2] == told
    for place in SERVER[1:]:
        sky.kill(place)
    report = json.loads(skymem("status", "--check", "--json", status=1).stdout)["window"]
    assert (report["state"], report["lost"], report["spare"]) == ("gone", [[1, 2], [2, 2], [2, 3]], 0)
    shown = skymem("status").output
    assert shown.startswith("GONE: 3 of 6 servers are lost: [1, 2], [2, 2], [2, 3]. Parity makes up for 2: ")
    assert "may be lost" not in shown


def test_silence_has_an_exit_status_of_its_own(
    sky: LocalConstellation,
    skymem: Skymem,
    stopped: Callable[..., AbstractContextManager[None]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with stopped(sky):
        assert skymem("status", "--check", status=4).output == "SILENT: no satellite answers\n"
        assert skymem("status").output.startswith("SILENT: no satellite answers\n")
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path / "nothing"))
    assert "`skymem up`" in skymem("status", "--check", status=4).stderr
    assert "`skymem up`" in skymem("status", status=1).stderr


@pytest.mark.parametrize("version", [2, 4])
def test_another_version_is_named_by_each_command(
    version: int, skymem: Skymem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path))
    planned = Constellation().replace(constellation={"planes": 3, "slots": 4}, cache={"servers": 6, "centre": [2, 2]})
    constellation = planned.replace(network={"port": free_port(planned)})
    file = tmp_path / "constellation.toml"
    file.write_text(
        f"[constellation]\nplanes = 3\nslots = 4\n[network]\nport = {constellation.network.port}\n"
        "[cache]\nservers = 6\ncentre = [2, 2]\n"
    )
    words = f"speak version {version} of the packets, and this program version 3: see docs/upgrading.md"
    with OtherSatellites(constellation, constellation.torus.satellites(), version):
        told = skymem("status", "--check", "--constellation", str(file), status=4).output
        assert told == f"SILENT: no satellite serves this host\n12 satellites {words}\n"
        assert skymem("status", "--constellation", str(file)).output.count(f"version {version}") == 12 + 1
        with ControlPlane(constellation) as control, pytest.raises(ReplayError, match=f"12 satellites {words}; nothing moves"):
            require_all(control)
        for command in (["put", "k", str(file)], ["get", "k", str(tmp_path / "copy")], ["del", "k"]):
            assert f"6 satellites {words}" in skymem(*command, "--constellation", str(file), status=1).stderr


def test_kill_and_restart_tell_of_neighbours_of_another_version(sky: LocalConstellation, skymem: Skymem) -> None:
    RunRecord().log_folder.mkdir()
    place, neighbours = Satellite(2, 2), [Satellite(1, 2), Satellite(3, 2), Satellite(2, 1), Satellite(2, 3)]
    for one in neighbours:
        sky.kill(one)
    with OtherSatellites(sky.constellation, neighbours, 1):
        killed = skymem("kill", "2", "2")
        assert killed.stdout == f"satellite {place} is dead\n"
        assert "4 satellites speak version 1 of the packets" in killed.stderr
        restarted = skymem("restart", "2", "2")
        assert restarted.stdout == f"satellite {place} is up\n"
        assert "4 satellites speak version 1 of the packets" in restarted.stderr
    os.kill(RunRecord().require().processes[place].pid, signal.SIGKILL)


@pytest.fixture
def watching(sky: LocalConstellation) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """`skymem status --watch` as a process of its own."""
    started = []

    def start(*words: str) -> subprocess.Popen[str]:
        command = [str(Path(sys.executable).parent / "skymem"), "status", "--watch", "0.5", *words]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_watch_looks_again_until_ctrl_c(
    sky: LocalConstellation, watching: Callable[..., subprocess.Popen[str]], skymem: Skymem
) -> None:
    process = watching("--json")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["window"]["state"] == "whole"
    sky.kill(SERVER[0])
    wait_until(lambda: json.loads(process.stdout.readline())["window"]["state"] == "degraded")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "")
    assert "allowed is one of them" in skymem("status", "--watch", "--check", status=2).stderr


def test_watch_without_a_terminal_prints_one_report_below_the_other(watching: Callable[..., subprocess.Popen[str]]) -> None:
    process = watching()
    assert process.stdout is not None
    seen = 0
    while seen < 2:
        seen += process.stdout.readline().startswith("whole: ")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_a_server_that_began_anew_is_not_called_whole(sky: LocalConstellation, skymem: Skymem, tmp_path: Path) -> None:
    file = tmp_path / "value"
    file.write_bytes(os.urandom(300_000))
    skymem("put", "k", str(file))
    time.sleep(5.1)  # what began within five seconds began together
    for place in SERVER:
        sky.kill(place)
    for place in SERVER:
        sky.restart(place)
    told = skymem("status", "--check", status=1).output
    assert told.startswith("GONE: 3 of 6 servers began anew and are not filled again: [1, 2], [2, 2], [2, 3]. ")


def test_who_is_empty() -> None:
    def store(up_s: int, chunks: int) -> dict[str, int]:
        return {"uptime_ms": 1000 * up_s, "chunks": chunks}

    one, two, three = SERVER
    assert empty_servers({}, 1200) == ()
    assert empty_servers({one: store(900, 0), two: store(900, 90), three: store(900, 90)}, 1200) == ()  # it never had any
    assert empty_servers({one: store(60, 0), two: store(900, 90), three: store(900, 90)}, 1200) == (one,)
    assert empty_servers({one: store(60, 50), two: store(900, 90), three: store(900, 90)}, 1200) == ()  # it is filled again
    assert empty_servers({one: store(1300, 0), two: store(9000, 90), three: store(9000, 90)}, 1200) == ()
    assert empty_servers({one: store(60, 0), two: store(900, 0), three: store(900, 0)}, 1200) == ()


REPORT = {
    "planes": 5,
    "slots": 19,
    "window": {"servers": [(1, 1), (2, 1)]},
    "satellites": [
        {"plane": p, "slot": s, "alive": (p, s) != (2, 2), "refuses": False, "chunks": 2600, "bytes": 15_600_000}
        | {"version": icd.VERSION, "hits": 123_456, "misses": 7, "evictions": 4321}
        for p in range(1, 6)
        for s in range(1, 20)
    ],
}


def test_a_full_grid_drops_what_has_no_room(capsys: pytest.CaptureFixture[str]) -> None:
    """Planes are below each other and slots beside each other, as `layout`, the page and the figures have them."""
    for columns, cell, tables in ((80, "2600 15.6", 4), (600, "2600 15.6 123456/7/4321", 1)):
        console = Console(width=columns)
        for part in grid(REPORT, columns):
            console.print(part)
        title, *lines = capsys.readouterr().out.splitlines()
        above, heading, *rows = lines
        assert above.split() == ["slot", "→"]
        assert heading.split()[:4] == ["plane", "↓", "1", "2"]
        assert len(lines) == tables * 7
        assert rows[0].startswith(f"      1  *{cell}   {cell}")
        assert rows[1].count("lost") == 1
        assert max(map(len, lines)) <= columns
        assert title.startswith("chunks MB")
        assert ("501 columns" in title) == (columns == 80)


def test_refused_keys_are_no_silence() -> None:
    window = {"state": "silent", "servers": [(1, 1)], "lost": [(1, 1)], "empty": [], "parity": 0}
    report = {"window": window, "refusal": "refused", "versions": "", "satellites": []}
    assert [text.plain for text in verdict(report, 80)] == ["SILENT: no satellite serves this host", "refused"]


def test_no_name_is_torn_where_a_line_is_folded() -> None:
    window = {"servers": [(1, 1)] * 12, "lost": [[3, slot] for slot in range(1, 10)], "empty": [], "parity": 2, "state": "gone"}
    (text,) = verdict({"window": window, "refusal": "", "versions": "", "satellites": []}, 40)
    lines = text.plain.splitlines()
    assert len(lines) > 3
    assert all(len(line) <= 40 and line.count("[") == line.count("]") for line in lines)
    assert " ".join(lines).startswith("GONE: 9 of 12 servers are lost: [3, 1], [3, 2], ")


def test_status_tells_of_parity() -> None:
    assert parity_text({"degraded": 0, "repaired": 0}, 0) == ""
    told = parity_text({"degraded": 1200, "repaired": 34}, 2)
    assert told == "parity: satellites have found 1,200 degraded blocks and rebuilt 34 chunks"
