"""vLLM, LMCache's server beside it, and an agent over real satellites. All tests share them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess, tell_up
from support.lmcache_server import LMCacheServer, resp_adapter
from support.vllm_engine import BLOCK_TOKENS, Engine


@pytest.fixture(scope="module")
def deadline_ms() -> int:
    """So long a get waits for a satellite that is gone, and LMCache for the get."""
    return 3000


@pytest.fixture(scope="module")
def agent(sky: LocalConstellation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    """An agent over `sky`, with the port for LMCache."""
    folder = tmp_path_factory.mktemp("a")
    tell_up(folder, sky)
    with AgentProcess(folder, "--lmcache-port", "0") as agent:
        agent.wait_ready()
        yield agent


@pytest.fixture(scope="module")
def lmcache_port(agent: AgentProcess) -> int:
    return int(agent.addresses["lmcache"].rpartition(":")[2])


@pytest.fixture(scope="module")
def lmcache(lmcache_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LMCacheServer]:
    """LMCache's server on the agent's port for it."""
    server = LMCacheServer(tmp_path_factory.mktemp("l"), resp_adapter(lmcache_port), BLOCK_TOKENS)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def engine(model: Path, lmcache: LMCacheServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A vLLM with LMCache's connector, as vLLM brings it."""
    where = {"lmcache.mp.host": "tcp://127.0.0.1", "lmcache.mp.port": lmcache.port}
    patience = {"lmcache.mp.heartbeat_interval": 3.0, "lmcache.mp.mq_timeout": 30.0}
    engine = Engine(
        tmp_path_factory.mktemp("e"),
        {
            "model": str(model),
            "skip_tokenizer_init": True,
            "dtype": "float32",
            "max_model_len": 2048,
            "block_size": BLOCK_TOKENS,
            "enforce_eager": True,
            "num_gpu_blocks_override": 24,
            "kv_transfer_config": {
                "kv_connector": "LMCacheMPConnector",
                "kv_role": "kv_both",
                "kv_connector_extra_config": where | patience,
            },
        },
    )
    engine.wait()
    yield engine
    engine.close()
