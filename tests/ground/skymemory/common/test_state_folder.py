"""The state folder is for its user alone."""

import os
import stat
from pathlib import Path

import pytest

from skymemory.common.kept_list import KeptList
from skymemory.common.state_folder import make_private
from skymemory.common.tenant_secrets import made_secret
from skymemory.engines.weights import files_digest
from skymemory.segments.gate_file import HostName
from skymemory.sky.constellation import Constellation
from skymemory.sky.orbit.positions import Site
from skymemory.sky.orbit.schedule import Schedule
from skymemory.sky.orbit.walker import Walker
from skymemory.sky.placement.rolling_layout import Cell
from skymemory.sky.placement.torus import Torus
from skymemory.sky.placement.track import Track
from skymemory.sky.whereabouts import Playing
from skymemory.testbed.local import LocalConstellation, free_port
from skymemory.testbed.run_record import RunRecord
from skymemory.testbed.value_names import NamedValue


def mode_of(folder: Path) -> int:
    return stat.S_IMODE(folder.stat().st_mode)


def test_it_is_made_for_this_user(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "parent" / "state"
    for _ in range(2):
        make_private(folder)
        assert mode_of(folder) == mode_of(folder.parent) == 0o700
    assert not caplog.records


def test_one_that_others_may_enter_is_closed_and_that_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tmp_path.chmod(0o755)
    for name in ("constellation.json", "constellation.lock", "agent.sock.lock", ".values-a.json.12", "tenant-127.18.0.0.secret"):
        (tmp_path / name).touch()
    make_private(tmp_path)
    assert mode_of(tmp_path) == 0o700
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path} had mode 0755, so that others could look into it; it has 0700 now"
    ]


def test_a_folder_for_all_users_stays_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    make_private(tmp_path)
    assert mode_of(tmp_path) == 0o1777


def test_somebody_s_home_stays_as_it_is_and_that_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tmp_path.chmod(0o755)
    for name in (".profile", "constellation.json"):
        (tmp_path / name).touch()
    make_private(tmp_path)
    assert mode_of(tmp_path) == 0o755
    [record] = caplog.records
    assert record.getMessage().startswith(f"{tmp_path} has mode 0755, so that others can look into it, and is left so")


@pytest.mark.parametrize("kind", ["playing", "values", "secret", "logs", "gate", "digests"])
def test_whoever_makes_it_makes_it_for_this_user(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path / "home" / "state"
    monkeypatch.setenv("SKYMEM_STATE", str(state))
    before = os.umask(0o022)
    try:
        if kind == "playing":
            torus = Torus(3, 5)
            Schedule.compute(Walker(3, 5, 550.0, 86.4, True, 1), "walker", Site(52.5, 13.4), 10.0, 0, 600_000).save(
                source := tmp_path / "sky.csv"
            )
            playing = Playing(Track(torus, ((0, Cell(1, 1)),)), 0.0, Schedule.load(source), 0, 1.0)
            RunRecord().sky(Constellation()).playing.save(playing, source)
        elif kind == "values":
            KeptList(state / "values-a.json", NamedValue, lambda value: value.raw_name, 4, "list").add(
                NamedValue(raw_name=b"a", size_bytes=1, put_unix_ms=1)
            )
        elif kind == "secret":
            made_secret(state / "tenant-a.secret")
        elif kind == "logs":
            sky = Constellation().replace(
                constellation={"planes": 1, "slots": 1}, cache={"servers": 1, "parity": 0, "centre": [1, 1]}
            )
            with LocalConstellation(sky.replace(network={"port": free_port(sky)}), state / "logs"):
                pass
        elif kind == "gate":
            HostName(state)
        else:
            (file := tmp_path / "a.bin").write_text("weights")
            os.utime(file, (1, 1))
            files_digest([file])
    finally:
        os.umask(before)
    folders = [state.parent, *state.parent.glob("**")]
    assert {mode_of(folder) for folder in folders} == {0o700}
    assert any(state.iterdir())
