"""Models that engines have told of, and what is left of them for `skymem status`."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from skymemory.agent.models import RECORD_NAME, Models, recorded, told
from skymemory.agent.protocol import VERSION, Hello
from skymemory.cli.status_report import collect
from skymemory.store.sizing import blocks_held
from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess
from support.waiting import PATIENCE_S, wait_until


def hello(number: int) -> Hello:
    return Hello(VERSION, "vllm", f"model {number}", bytes(32), 16, 100_000, "bfloat16", 1 << 20)


def test_the_ones_that_came_last_are_kept(tmp_path: Path) -> None:
    models = Models(tmp_path / "agent.sock")
    for number in [*range(20), 19]:
        models.add(hello(number))
    assert [one.model for one in models] == [f"model {number}" for number in range(4, 20)]
    assert recorded(tmp_path / "agent.sock") == list(models)


def test_what_knows_no_tokens_is_no_model(tmp_path: Path) -> None:
    models = Models(tmp_path / "agent.sock")
    models.add(Hello(VERSION, "lmcache", "chunks of 100 bytes", bytes(32), 1, 200, "bytes", 1 << 20))
    assert list(models) == recorded(tmp_path / "agent.sock") == []


NO_TOKENS = b'[{"model":"m","dtype":"d","block_tokens":0,"block_bytes":1}]'


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff", NO_TOKENS])
def test_a_record_that_cannot_be_read(tmp_path: Path, content: bytes) -> None:
    (tmp_path / RECORD_NAME).write_bytes(content)
    assert recorded(tmp_path / "agent.sock") == []


def test_a_folder_that_takes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    models = Models(tmp_path / "none" / "agent.sock")
    models.add(hello(1))
    assert len(list(models)) == 1
    assert "are not recorded" in caplog.text


def test_people_are_told(
    start_sky: Callable[..., LocalConstellation],
    start_agent: Callable[..., AgentProcess],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    local = start_sky()
    agent = start_agent(local)
    tokens = 16 * blocks_held(local.constellation, 100_000, other_chunks=1)
    with closing(agent.client()) as client:
        assert client.wait_connected(PATIENCE_S)
        found = client.find([bytes(32)]).result(PATIENCE_S)
        assert (found.capacity * 16, found.servers, found.store_mib) == (tokens, 9, 16)
    wait_until(lambda: agent.metric('skymem_model_tokens{dtype="float32",model="model"}') == tokens, "the gauge shows it")
    expected = [{"model": "model", "dtype": "float32", "block_tokens": 16, "tokens": tokens}]
    assert told(local.constellation, recorded(agent.socket)) == expected
    monkeypatch.setenv("SKYMEM_AGENT_SOCKET", str(agent.socket))
    assert collect(local.constellation)["models"] == expected
