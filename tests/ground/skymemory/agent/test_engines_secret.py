"""The secret that an agent leaves for its engines."""

from pathlib import Path

import pytest

from skymemory.agent.agent_store import AgentStore
from skymemory.agent.engines_secret import EnginesSecret
from skymemory.common.secret_files import SecretFileError
from skymemory.common.state_folder import SECRET_VARIABLE, engines_secret
from skymemory.engines.tenant import engine_secret
from skymemory.sky.constellation import Constellation
from skymemory.sky.tenant_secret import secret_file, secret_of
from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess, tell_up
from support.waiting import wait_until

SKY, OTHER = Constellation(), Constellation().replace(network={"network": "127.99.0.0/16"})


@pytest.fixture
def socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Socket of an agent of a user who has named no secret."""
    monkeypatch.delenv(SECRET_VARIABLE)
    monkeypatch.setenv("SKYMEM_STATE", str(tmp_path))
    return tmp_path / "agent.sock"


def test_engines_find_the_secret_of_the_constellation(socket: Path) -> None:
    agent = EnginesSecret(socket, None)
    secret = agent.of(SKY)
    assert secret == secret_of(SKY)
    assert not engines_secret(socket).exists()  # another agent may have the socket
    agent.serve()
    assert engines_secret(socket).read_bytes() == secret
    assert engines_secret(socket).stat().st_mode & 0o777 == 0o600
    assert engine_secret(None, str(socket)) == secret
    assert agent.of(OTHER) == secret_of(OTHER) == engine_secret(None, str(socket)) != secret


def test_an_engine_that_came_first_keeps_its_secret(socket: Path) -> None:
    first = engine_secret(None, str(socket))
    agent = EnginesSecret(socket, None)
    agent.serve()
    assert agent.of(SKY) == first == engine_secret(None, str(socket)) == secret_of(SKY)
    assert agent.of(OTHER) != first  # one for each constellation


def test_a_named_file_is_no_default(socket: Path, tmp_path: Path) -> None:
    (tmp_path / "named").write_bytes(b"named")
    for file in (tmp_path / "named", None):
        agent = EnginesSecret(socket, file)
        agent.serve()
        secret = agent.of(SKY)
    assert secret == secret_of(SKY) == engine_secret(None, str(socket)) != b"named"


def test_a_named_file_goes_to_engines_too(socket: Path, tmp_path: Path) -> None:
    (tmp_path / "named").write_bytes(b"named")
    agent = EnginesSecret(socket, tmp_path / "named")
    agent.serve()
    assert agent.of(SKY) == b"named" == engine_secret(None, str(socket))
    assert not secret_file(SKY).exists()
    with pytest.raises(SecretFileError, match="none cannot be read"):
        EnginesSecret(socket, tmp_path / "none")


def test_an_agent_as_a_process(socket: Path, full_sky: LocalConstellation) -> None:
    tell_up(socket.parent, full_sky)
    with AgentProcess(socket.parent) as agent:
        agent.wait_ready()
        secret = secret_file(full_sky.constellation).read_bytes()
        assert engine_secret(None, str(agent.socket)) == secret
        with AgentStore(agent.socket) as store:
            assert store.tenant_secret == secret


def test_a_secret_that_is_lost_is_told_until_it_is_back(socket: Path, full_sky: LocalConstellation) -> None:
    secret = secret_of(full_sky.constellation)
    (file := secret_file(full_sky.constellation)).rename(kept := file.with_name("kept"))
    tell_up(socket.parent, full_sky)
    with AgentProcess(socket.parent) as agent:
        told = f"tenant secret {file} is missing, and without it nothing is found that was stored under it"
        wait_until(lambda: told in agent.ready().get("reason", ""), "it says what is missing")
        assert not file.exists()
        assert agent.log.read_text().count(told) == 1
        kept.rename(file)
        agent.wait_ready()
        assert engine_secret(None, str(agent.socket)) == secret


def test_a_wrong_file_is_told_at_the_start(socket: Path, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"tenant secret .*/none cannot be read: No such file"):
        AgentProcess(socket.parent, "--tenant-secret-file", str(tmp_path / "none"))
