"""The record of the constellation that is up."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from skymemory.sky.constellation import Constellation
from skymemory.testbed.local import LocalConstellation, free_port
from skymemory.testbed.processes import ProcessId, identify
from skymemory.testbed.run_record import DamagedStateError, Running, RunRecord, StateError, default_folder
from skymemory.wire.address import Satellite


def own_process() -> ProcessId:
    process = identify(os.getpid())
    assert process is not None
    return process


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    constellation = Constellation().replace(
        constellation={"planes": 3, "seam": "cut"},
        cache={"centre": [2, 7]},
        links={"override": [{"from": [1, 1], "to": [1, 2], "cut": True}]},
    )
    state = RunRecord(tmp_path / "not" / "there" / "yet")
    state.save(Running("local", constellation, {Satellite(1, 2): own_process()}))
    running = state.require()
    assert running.kind == "local"
    assert running.constellation == constellation
    assert running.alive() == {Satellite(1, 2): own_process()}


def test_containers_of_an_older_version_have_the_project_that_all_had(tmp_path: Path) -> None:
    state = RunRecord(tmp_path)
    state.save(Running("docker", Constellation(), {}, "skymemory-1a2b3c4d"))
    record = json.loads(state.path.read_text())
    del record["project"]
    state.path.write_text(json.dumps(record))
    assert state.require().project == "skymemory"


def test_nothing_is_up(tmp_path: Path) -> None:
    state = RunRecord(tmp_path)
    assert state.load() is None
    with pytest.raises(StateError, match="skymem up"):
        state.require()
    state.clear()


def test_a_constellation_whose_processes_are_all_gone_is_not_up(tmp_path: Path) -> None:
    state = RunRecord(tmp_path)
    state.save(Running("local", Constellation(), {Satellite(1, 1): ProcessId(os.getpid(), 0)}))
    with pytest.raises(StateError, match="skymem up"):
        state.require()


def test_processes_of_another_boot_are_nobodys(tmp_path: Path) -> None:
    state = RunRecord(tmp_path)
    state.save(Running("local", Constellation(), {Satellite(1, 1): own_process()}))
    state.path.write_text(json.dumps(json.loads(state.path.read_text()) | {"boot": "another"}))
    running = state.load()
    assert running is not None
    assert running.processes == {}


GOOD = {"format": 1, "boot": "", "kind": "local", "constellation": {}, "processes": []}
DAMAGED = {
    "format": {"format": 999},
    "kind": {"kind": "cloud"},
    "constellation": {"constellation": {"cache": {"servers": 0, "tenant": -1}}},
    "section": {"constellation": {"cache": 3}},
    "no sections": {"constellation": 3},
    "processes": {"processes": [[1, 1, "x", 5]]},
    "short": {"processes": [[1, 1]]},
    "infinite": {"processes": [[1, 1, float("inf"), 0]]},
}


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "\x00", "[" * 100_000, '{"format": 1, "boot": ""}', *(json.dumps(GOOD | part) for part in DAMAGED.values())],
    ids=lambda text: text[:40],
)
def test_a_damaged_record_is_told_with_its_path_in_one_line(tmp_path: Path, text: str) -> None:
    state = RunRecord(tmp_path)
    state.path.write_text(text)
    with pytest.raises(DamagedStateError, match=r"constellation\.json is damaged \(.+\); `skymem down` clears it$") as caught:
        state.load()
    assert "\n" not in str(caught.value)


def test_a_good_record_is_none_of_those(tmp_path: Path) -> None:
    state = RunRecord(tmp_path)
    state.path.write_text(json.dumps(GOOD))
    assert state.load() == Running("local", Constellation(), {})


def test_a_record_that_cannot_be_read_is_not_damaged(tmp_path: Path) -> None:
    state = RunRecord(tmp_path)
    state.path.mkdir()
    with pytest.raises(StateError, match=r"constellation\.json cannot be read: Is a directory$") as caught:
        state.load()
    assert not isinstance(caught.value, DamagedStateError)


def test_satellites_are_known_by_the_logs_that_they_write(tmp_path: Path) -> None:
    state, other = RunRecord(tmp_path / "ours"), RunRecord(tmp_path / "others")
    assert state.find_satellites() == set()
    sky = Constellation().replace(constellation={"planes": 1, "slots": 3}, cache={"centre": [1, 1], "servers": 1, "parity": 0})
    ours, theirs = (
        LocalConstellation(sky.replace(network={"network": network, "port": free_port(sky)}), folder)
        for network, folder in (("127.18.0.0/16", state.log_folder), ("127.19.0.0/16", other.log_folder))
    )
    # Somebody who writes to a log and is no satellite is left alone
    with ours, theirs, (state.log_folder / "1-1.log").open("ab") as log, subprocess.Popen(["sleep", "60"], stdout=log) as sleep:
        assert state.find_satellites() == set(ours.processes.values())
        assert other.find_satellites() == set(theirs.processes.values())
        (state.log_folder / "9-9.log").symlink_to("nowhere")
        assert state.find_satellites() == set(ours.processes.values())
        sleep.kill()
    assert state.find_satellites() == set()


def test_where_it_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SKYMEM_STATE", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".local/state/skymemory"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert default_folder() == tmp_path / "state/skymemory"
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path / "mine"))
    assert default_folder() == tmp_path / "mine"
