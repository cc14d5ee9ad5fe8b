"""The tenant secret of engines: of a file, or the one that the agent leaves for them."""

from pathlib import Path

import pytest

from skymemory.common.state_folder import SECRET_VARIABLE
from skymemory.engines.carrier import CarrierSettings
from skymemory.engines.tenant import engine_secret
from skymemory.engines.vllm.settings import ConnectorSettings


@pytest.mark.parametrize("settings", [CarrierSettings, ConnectorSettings])
def test_a_tenants_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: type[CarrierSettings | ConnectorSettings]
) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b"xyz\n")
    assert engine_secret(settings.of({"tenant_secret_file": str(file), "arena_mib": 64}).tenant_secret_file, None) == b"xyz\n"
    other = tmp_path / "other"
    other.write_bytes(b"other")
    monkeypatch.setenv(SECRET_VARIABLE, str(other))
    assert engine_secret(settings.of({}).tenant_secret_file, None) == b"other"
    assert engine_secret(str(file), None) == b"xyz\n"


def test_processes_of_an_engine_without_an_agent_have_one_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SECRET_VARIABLE)
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path))
    secret = engine_secret(None, None)
    assert len(secret) == 32
    assert engine_secret(None, None) == engine_secret(None, str(tmp_path / "agent.sock")) == secret
    assert engine_secret(None, str(tmp_path / "other.sock")) != secret


def test_a_file_without_a_secret_is_named(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    with pytest.raises(ValueError, match=f"SkyMemory: tenant secret {file} cannot be read: No such file"):
        engine_secret(str(file), None)
    file.write_bytes(b"")
    with pytest.raises(ValueError, match=f"SkyMemory: tenant secret {file} is empty"):
        engine_secret(str(file), None)
