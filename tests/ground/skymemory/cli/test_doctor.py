"""`skymem doctor`, from the outside: what is wrong is named, with what to do, and with the exit status."""

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from skymemory.cli import main
from skymemory.cli.checks import check_kernel
from skymemory.sky.constellation import Constellation
from skymemory.testbed.local import LocalConstellation, free_port
from support.agents import AgentProcess, tell_up

StartSky = Callable[..., LocalConstellation]
Doctor = Callable[..., dict[str, Any]]
SMALL = {"constellation": {"planes": 3, "slots": 4}, "cache": {"centre": [2, 2], "servers": 6}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state folder, beside a constellation file at a free port."""
    sky = Constellation().replace(**SMALL)
    text = f"[constellation]\nplanes = 3\nslots = 4\n[network]\nport = {free_port(sky)}\n[cache]\ncentre = [2, 2]\nservers = 6\n"
    (tmp_path / "constellation.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path / "state"))
    (tmp_path / "state").mkdir(mode=0o700)
    return tmp_path / "state"


@pytest.fixture
def doctor(folder: Path) -> Doctor:
    """Its report; the exit status must be what the report says."""

    def ask() -> dict[str, Any]:
        result = CliRunner().invoke(main, ["doctor", "--json"])
        report: dict[str, Any] = json.loads(result.stdout)
        assert result.exit_code == (0 if report["well"] else 1), result.output
        assert report["well"] == all(one["state"] != "mend" for one in report["findings"])
        assert all(bool(one["cure"]) == (one["state"] != "well") for one in report["findings"])
        return report

    return ask


def found(report: dict[str, Any], about: str, state: str = "mend") -> list[str]:
    return [one["found"] for one in report["findings"] if (one["about"], one["state"]) == (about, state)]


def test_a_fresh_machine_is_well(doctor: Doctor) -> None:
    report = doctor()
    assert report["well"], report
    assert found(report, "constellation", "note") == ["no satellite answers: none is up"]
    assert found(report, "agent", "note") == ["none runs"]
    shown = CliRunner().invoke(main, ["doctor"], env={"COLUMNS": "80"}).output
    assert shown.endswith("nothing has to be mended\n")
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_a_state_folder_for_all_users_gets_another_cure(doctor: Doctor, folder: Path) -> None:
    folder.chmod(0o1777)  # as /tmp
    findings = [one for one in doctor()["findings"] if one["about"] == "state folder"]
    assert [one["cure"] for one in findings] == ["let $SKYMEM_STATE name a folder of your own"]


def test_a_satellite_that_died_is_named(doctor: Doctor, folder: Path, start_sky: StartSky) -> None:
    local = start_sky()
    tell_up(folder, local)
    assert found(doctor(), "constellation", "well") == ["all 15 satellites answer at 127.18.0.0"]
    place = next(iter(local.processes))
    local.kill(place)
    assert found(doctor(), "constellation") == [f"1 of 15 satellites do not answer: {place}"]


def test_ports_that_others_use_are_named(doctor: Doctor, folder: Path) -> None:
    sky = Constellation.load(folder.parent / "constellation.toml")
    assert found(doctor(), "ports", "well") == [f"port {sky.network.port} of all 12 satellites is free"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind((sky.address(2, 3), sky.network.port))
        assert f"{sky.address(2, 3)} port {sky.network.port} is in use" in found(doctor(), "ports")[0]


def test_a_damaged_record_a_wrong_file_and_open_secrets(doctor: Doctor, folder: Path) -> None:
    (folder / "constellation.json").write_text("{")
    assert "is damaged" in found(doctor(), "state folder")[0]
    (folder / "constellation.json").unlink()
    (folder / "tenant-127.18.0.0.secret").write_bytes(bytes(32))
    (folder / "tenant-127.18.0.0.secret").chmod(0o644)
    (folder / "tenant-10.0.0.0.secret.made").touch()
    said = found(doctor(), "keys")
    assert [text.split()[0].rpartition("/")[2] for text in said] == ["tenant-127.18.0.0.secret", "tenant-10.0.0.0.secret"]
    folder.chmod(0o777)
    assert "others may change" in found(doctor(), "state folder")[0]
    (folder.parent / "constellation.toml").write_text("[cache]\nservers = 0\n")
    assert "constellation.toml:2: cache.servers is 0" in found(doctor(), "constellation")[0]


def test_a_keyring_that_is_missing_or_open_to_others(doctor: Doctor, folder: Path) -> None:
    with (folder.parent / "constellation.toml").open("a") as file:
        file.write('[security]\nkeyring = "keys/mission.json"\n')
    assert "mission.json" in (found(doctor(), "keys") + found(doctor(), "constellation"))[0]
    assert CliRunner().invoke(main, ["keys", "new", "keys", "--planes", "3", "--slots", "4"]).exit_code == 0
    assert doctor()["well"]
    (folder.parent / "keys" / "mission.json").chmod(0o640)
    assert "mission.json" in (found(doctor(), "keys") + found(doctor(), "constellation"))[0]


def test_an_agent_that_runs_was_killed_or_has_no_sky(doctor: Doctor, folder: Path, start_sky: StartSky) -> None:
    with AgentProcess(folder) as agent:
        assert "is not ready" in found(doctor(), "agent")[0]
        local = start_sky()
        tell_up(folder, local)
        agent.wait_ready()
        assert "is ready" in found(doctor(), "agent", "well")[0]
        agent.child.kill()
        agent.child.wait()
        assert "remains of one that was killed" in found(doctor(), "agent", "note")[0]


def test_small_buffers_of_the_kernel_are_named_with_the_command(tmp_path: Path) -> None:
    folder = tmp_path / "proc" / "sys" / "net" / "core"
    folder.mkdir(parents=True)
    (folder / "rmem_max").write_text("212992\n")
    (folder / "wmem_max").write_text("8388608\n")
    [first, *more] = check_kernel(tmp_path, is_root=False)
    assert more == []
    assert (first.state, first.cure) == ("note", "sudo sysctl -w net.core.rmem_max=8388608")
    assert [one.state for one in check_kernel(tmp_path, is_root=True)] == ["well"]
