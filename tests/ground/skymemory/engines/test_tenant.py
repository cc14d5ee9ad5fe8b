"""The file of the tenant secret."""

from pathlib import Path

import pytest

from skymemory.engines.carrier import CarrierSettings
from skymemory.engines.tenant import read_secret
from skymemory.engines.vllm.settings import ConnectorSettings


@pytest.mark.parametrize("settings", [CarrierSettings, ConnectorSettings])
def test_a_tenants_secret(tmp_path: Path, settings: type[CarrierSettings | ConnectorSettings]) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b"xyz\n")
    assert read_secret(settings.of({"tenant_secret_file": str(file), "arena_mib": 64}).tenant_secret_file) == b"xyz\n"
    assert read_secret(settings.of({}).tenant_secret_file) == b""


def test_a_file_without_a_secret_is_named(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    with pytest.raises(ValueError, match=f"SkyMemory: tenant_secret_file {file} cannot be read: No such file"):
        read_secret(str(file))
    file.write_bytes(b"")
    with pytest.raises(ValueError, match=f"tenant_secret_file {file} is empty"):
        read_secret(str(file))
