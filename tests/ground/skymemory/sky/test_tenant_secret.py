"""The default secret: one for each network of this user, and a named file before it."""

from pathlib import Path

import pytest

from skymemory.common.secret_files import SecretFileError
from skymemory.common.state_folder import SECRET_VARIABLE
from skymemory.common.tenant_secrets import made_secret
from skymemory.sky.constellation import Constellation
from skymemory.sky.tenant_secret import begin_secret, secret_file, secret_of

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


def test_a_secret_that_is_lost_is_not_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(SECRET_VARIABLE)
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path))
    file = secret_file(SKY)
    note = file.with_name("tenant-127.18.0.0.secret.made")
    secret = secret_of(SKY)
    assert secret_of(SKY) == secret
    [told] = caplog.messages  # once, as other hosts may have stored under another one
    assert told.startswith(f"{file}: a tenant secret was made. What other hosts or users have stored in this sky is found only")
    file.rename(tmp_path / "kept")
    with pytest.raises(SecretFileError) as caught:
        secret_of(SKY)
    assert str(caught.value).startswith(
        f"tenant secret {file} is missing, and without it nothing is found that was stored under it"
    )
    assert str(caught.value).endswith(f"remove {note}")
    assert secret_of(SKY.replace(network={"network": "127.99.0.0/16"})) != secret
    (tmp_path / "kept").rename(file)
    assert secret_of(SKY) == secret
    file.unlink()
    note.unlink()
    assert secret_of(SKY) != secret
    file.unlink()
    assert begin_secret(SKY) == file  # a sky that starts holds nothing
    assert begin_secret(SKY) is None
    assert secret_of(SKY) == file.read_bytes()


def test_a_secret_of_before_there_were_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SECRET_VARIABLE)
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path))
    secret = made_secret(secret_file(SKY))
    assert secret_of(SKY) == secret
    secret_file(SKY).unlink()
    with pytest.raises(SecretFileError, match="is missing"):
        secret_of(SKY)


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
    assert begin_secret(SKY) is None
    assert not (tmp_path / "state").exists()
