"""A manager that shares the agent's connection to the sky."""

from collections.abc import Callable
from typing import Any

import pytest

from skymemory.agent.agent_store import AgentStore
from skymemory.demo.run import generate
from skymemory.prompt.manager import KVCManager
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess
from support.waiting import PATIENCE_S

IDS = [(3 + 7 * index) % 1000 + 2 for index in range(100)]

pytestmark = pytest.mark.model


def test_a_manager_over_the_agent(
    full_sky: LocalConstellation, start_agent: Callable[..., AgentProcess], make_llama: Any, seed: int, tokenizer: Any
) -> None:
    agent, model = start_agent(full_sky), make_llama(seed=seed)
    cold = generate(model, IDS, 12)
    with AgentStore(agent.socket, arena_bytes=1 << 16) as store:
        manager = KVCManager(model, tokenizer, store, block_tokens=16)
        assert store.wait_connected(PATIENCE_S)
        assert manager.get_cache(IDS).get_seq_length() == 0
        assert manager.add_blocks(IDS, cold.cache).stored == 6
        assert manager.add_blocks(IDS, cold.cache).present == 6
        assert generate(model, IDS, 12, manager=manager).tokens == cold.tokens
        assert manager.statistics.blocks_hit == 6
        assert not manager.statistics.errors
    with SkyStore(full_sky.constellation) as own:  # another way to the same blocks
        assert KVCManager(model, tokenizer, own, block_tokens=16).get_cache(IDS).get_seq_length() == 96
    assert manager.get_cache(IDS).get_seq_length() == 0  # closed: misses, and nothing raises
    assert manager.add_blocks(IDS, cold.cache).failed == 6
