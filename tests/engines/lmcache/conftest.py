"""A small random Llama in vLLM, LMCache's server beside it, and an agent over real satellites. All tests share them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from skymemory.config import Constellation
from skymemory.testbed.local import LocalConstellation, free_port
from support.agents import AgentProcess, tell_up
from support.lmcache_server import LMCacheServer, resp_adapter
from support.vllm_engine import BLOCK_TOKENS, VOCABULARY, Engine


@pytest.fixture(scope="module")
def sky() -> Iterator[LocalConstellation]:
    """Three planes of five satellites, nine of them servers."""
    sections = {"constellation": {"planes": 3, "slots": 5}, "cache": {"servers": 9, "centre": [2, 3], "deadline_ms": 3000}}
    base = Constellation.model_validate(sections, strict=False)
    with LocalConstellation(base.replace(network={"port": free_port(base)})) as local:
        yield local


@pytest.fixture(scope="module")
def agent(sky: LocalConstellation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    """An agent over `sky`, with the port for Redis clients."""
    folder = tmp_path_factory.mktemp("a")
    tell_up(folder, sky)
    with AgentProcess(folder, "--resp-port", "0") as agent:
        agent.wait_ready()
        yield agent


@pytest.fixture(scope="module")
def redis_port(agent: AgentProcess) -> int:
    return int(agent.addresses["redis"].rpartition(":")[2])


@pytest.fixture(scope="module")
def lmcache(redis_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LMCacheServer]:
    """LMCache's server on the agent's Redis port."""
    server = LMCacheServer(tmp_path_factory.mktemp("l"), resp_adapter(redis_port), BLOCK_TOKENS)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of three layers with random weights."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=2048,
        bos_token_id=1,
        eos_token_id=2,
        dtype="float32",
    )
    folder = tmp_path_factory.mktemp("model") / "small-llama"
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


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
