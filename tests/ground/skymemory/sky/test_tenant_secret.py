"""The default secret: one for each network of this user, and a named file before it."""

from pathlib import Path

import pytest

from skymemory.common.secret_files import SecretFileError
from skymemory.common.state_folder import SECRET_VARIABLE
from skymemory.sky.constellation import Constellation
from skymemory.sky.tenant_secret import secret_file, secret_of

SKY = Constellation()


def test_a_default_secret_for_each_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SECRET_VARIABLE)
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path))
    secret = secret_of(SKY)
    assert secret_of(SKY.replace(network={"port": 4000}, cache={"servers": 4})) == secret
    assert secret_of(SKY.replace(network={"network": "127.99.0.0/16"})) != secret
    assert secret_file(SKY).parent == tmp_path
    assert secret_file(SKY).read_bytes() == secret
    assert secret_file(SKY).stat().st_mode & 0o777 == 0o600


def test_a_named_file_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path / "state"))
    (tmp_path / "one").write_bytes(b"one")
    (tmp_path / "two").write_bytes(b"two")
    monkeypatch.setenv(SECRET_VARIABLE, str(tmp_path / "one"))
    assert secret_of(SKY) == b"one"
    assert secret_of(SKY, tmp_path / "two") == b"two"
    monkeypatch.setenv(SECRET_VARIABLE, str(tmp_path / "none"))
    with pytest.raises(SecretFileError, match="none cannot be read"):
        secret_of(SKY)
    assert not (tmp_path / "state").exists()
