"""The record of the constellation that is up."""

import json
import os
from pathlib import Path

import pytest

from skymemory.config import Constellation
from skymemory.placement.torus import Satellite
from skymemory.testbed.processes import ProcessId, identify
from skymemory.testbed.state import Running, State, StateError, default_folder


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
    state = State(tmp_path / "not" / "there" / "yet")
    state.save(Running("local", constellation, {Satellite(1, 2): own_process()}))
    running = state.require()
    assert running.kind == "local"
    assert running.constellation == constellation
    assert running.alive() == {Satellite(1, 2): own_process()}


def test_nothing_is_up(tmp_path: Path) -> None:
    state = State(tmp_path)
    assert state.load() is None
    with pytest.raises(StateError, match="skymem up"):
        state.require()
    state.clear()


def test_a_constellation_whose_processes_are_all_gone_is_not_up(tmp_path: Path) -> None:
    state = State(tmp_path)
    state.save(Running("local", Constellation(), {Satellite(1, 1): ProcessId(os.getpid(), 0)}))
    with pytest.raises(StateError, match="skymem up"):
        state.require()


def test_processes_of_another_boot_are_nobodys(tmp_path: Path) -> None:
    state = State(tmp_path)
    state.save(Running("local", Constellation(), {Satellite(1, 1): own_process()}))
    state.path.write_text(json.dumps(json.loads(state.path.read_text()) | {"boot": "another"}))
    running = state.load()
    assert running is not None
    assert running.processes == {}


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 999}', "\x00", '{"format": 1, "boot": ""}'])
def test_a_damaged_record_is_told_with_its_path(tmp_path: Path, text: str) -> None:
    state = State(tmp_path)
    state.path.write_text(text)
    with pytest.raises(StateError, match=r"constellation\.json cannot be read"):
        state.load()


def test_where_it_lies(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SKYMEM_STATE", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".local/state/skymemory"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert default_folder() == tmp_path / "state/skymemory"
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path / "mine"))
    assert default_folder() == tmp_path / "mine"
