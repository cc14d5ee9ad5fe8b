"""A host's own keyring, which $SKYMEM_KEYRING names, with the constellation that `skymem up` started on this machine."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skymemory import running_store
from skymemory.cli import main
from skymemory.security.keyring import HostRecord
from skymemory.security.mission_folder import begin_mission, host_file
from skymemory.sky.constellation import KEYRING_VARIABLE, ConfigError
from skymemory.testbed.local import LocalConstellation
from support.agents import tell_up


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path / "state"))
    begin_mission(tmp_path / "keys", 3, 5, HostRecord(name="host", tenants=(0,)))
    begin_mission(tmp_path / "others", 3, 5, HostRecord(name="host", tenants=(0,)))
    return tmp_path / "keys"


def status(keyring: Path | None) -> Result:
    environment = {KEYRING_VARIABLE: None if keyring is None else str(keyring), "COLUMNS": "1000"}
    return CliRunner().invoke(main, ["status"], env=environment, prog_name="skymem")


def test_the_variable_counts_for_what_runs_here(
    start_sky: Callable[..., LocalConstellation], keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell_up(tmp_path / "state", start_sky(security={"keyring": str(keys / "mission.json")}))
    assert "15 of 15 satellites answer" in status(None).output
    assert "15 of 15 satellites answer" in status(host_file(keys, 1, "host")).output
    wrong = host_file(tmp_path / "others", 1, "host")
    assert f"15 satellites answer, but refuse this host's keys: keyring {wrong}" in status(wrong).output
    monkeypatch.setenv(KEYRING_VARIABLE, str(wrong))
    with running_store() as store:
        assert not store.find([bytes(range(32))])[0].entry
        assert str(wrong) in store.control.refusal()
    monkeypatch.setenv(KEYRING_VARIABLE, str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="none does not exist; `skymem keys new` makes keyrings"):
        running_store()


@pytest.mark.parametrize("is_named", [False, True])
def test_a_folder_of_key_files_is_no_hosts_keyring(
    start_sky: Callable[..., LocalConstellation], keys: Path, tmp_path: Path, is_named: bool
) -> None:
    """Satellites start with it, and so it stands in the record of `skymem up`."""
    folder = keys / "generation-1" / "satellites"
    tell_up(tmp_path / "state", start_sky(security={"keyring": str(folder)}))
    said = status(folder if is_named else None)
    assert said.exit_code == 2
    assert said.output == (
        f"Error: {KEYRING_VARIABLE if is_named else 'security.keyring'}: {folder} is a folder, and no host's keyring; allowed "
        "are the keyring of a host, generation-N/hosts/NAME.json, and that of the mission, mission.json; "
        f"the variable {KEYRING_VARIABLE} names a host's keyring\n"
    )
    assert "15 of 15 satellites answer" in status(host_file(keys, 1, "host")).output
    for step in (("kill", "1", "1"), ("down",)):
        ended = CliRunner().invoke(main, step, prog_name="skymem")
        assert ended.exit_code == 0, ended.output
