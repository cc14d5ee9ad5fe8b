"""LMCache on the agent's port for it, by LMCache's own client. One vLLM and one agent for all tests: they take long to start."""

import json
import re
import sys

import pytest

from skymemory.sky.whereabouts import Whereabouts
from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess
from support.lmcache_server import LMCacheServer, resp_adapter, restart_under
from support.progress import run
from support.vllm_engine import BLOCK_TOKENS, Engine, words

pytestmark = pytest.mark.engines

BLOCKS = 8
TAIL = 40


def done(agent: AgentProcess, command: str) -> int:
    return int(agent.metric(f'skymem_resp_commands_total{{command="{command}"}}'))


def stored(engine: Engine, agent: AgentProcess, prompt: list[int]) -> list[int]:
    """Have a prompt computed, and its chunks in the sky. Its tokens."""
    before = done(agent, "set")
    cold = engine.fresh(prompt)
    assert cold["cached"] == [0]
    engine.progress.wait(lambda: done(agent, "set") >= before + len(prompt) // BLOCK_TOKENS, "LMCache stores its chunks")
    return cold["tokens"][0]


@pytest.mark.parametrize(("keys", "values"), [(5, 1024), (8, 1 << 18)])
def test_its_own_check_of_conformance(lmcache_port: int, keys: int, values: int) -> None:
    adapter = json.dumps(resp_adapter(lmcache_port))
    check = [sys.executable, "-m", "lmcache.v1.basic_check", "--mode", "test_l2_adapter", "--l2-adapter", adapter]
    sizes = ["--num-keys", str(keys), "--obj-size", str(values), "--model", f"check-{keys}"]
    printed = run([*check, *sizes])
    rates = dict(re.findall(r"^\| ([A-Z]+(?: \(\w+\))?) .*\| +([\d.]+)% \|", printed, re.MULTILINE))
    assert rates == {"LOOKUP (absent)": "100.0", "STORE": "100.0", "LOOKUP (exist)": "100.0", "LOAD": "100.0"}, printed
    assert f"(content): {keys}/{keys}" in printed


def test_blocks_come_from_the_sky_after_lmcache_started_anew(engine: Engine, lmcache: LMCacheServer, agent: AgentProcess) -> None:
    prompt = words(BLOCKS * BLOCK_TOKENS + TAIL, 1)
    tokens = stored(engine, agent, prompt)
    warm = engine.fresh(prompt)
    assert (warm["tokens"], warm["cached"]) == ([tokens], [BLOCKS * BLOCK_TOKENS])
    restart_under(engine, lmcache)
    gets = done(agent, "get")
    warm = engine.fresh(prompt)
    assert (warm["tokens"], warm["cached"]) == ([tokens], [BLOCKS * BLOCK_TOKENS])
    assert done(agent, "get") == gets + BLOCKS
    assert f"{BLOCKS}/{BLOCKS} retained keys (0 L1, {BLOCKS} L2)" in lmcache.log()


def test_a_longer_prompt_finds_its_beginning(engine: Engine, lmcache: LMCacheServer, agent: AgentProcess) -> None:
    prompt = words(3 * BLOCK_TOKENS, 2)
    stored(engine, agent, prompt)
    restart_under(engine, lmcache)
    longer = [*prompt, *words(BLOCK_TOKENS + 10, 3)]
    warm = engine.fresh(longer)
    assert warm["cached"] == [3 * BLOCK_TOKENS]
    assert warm["tokens"] == engine.fresh(longer, salt="of nobody else")["tokens"]


def test_more_satellites_gone_than_may_be_lost_cost_time_and_no_tokens(
    engine: Engine, lmcache: LMCacheServer, agent: AgentProcess, sky: LocalConstellation
) -> None:
    prompt = words(BLOCKS * BLOCK_TOKENS + TAIL, 4)
    tokens = stored(engine, agent, prompt)
    gone = Whereabouts(sky.constellation).servers(0)[: sky.constellation.cache.parity + 1]
    for satellite in gone:
        sky.kill(satellite)
    restart_under(engine, lmcache)
    warm = engine.fresh(prompt)
    assert warm["tokens"] == [tokens]
    assert warm["cached"][0] < BLOCKS * BLOCK_TOKENS
    for satellite in gone:
        sky.restart(satellite)


def test_without_the_agent_all_is_computed(engine: Engine, lmcache: LMCacheServer, agent: AgentProcess) -> None:
    prompt = words(2 * BLOCK_TOKENS, 5)
    tokens = stored(engine, agent, prompt)
    restart_under(engine, lmcache)
    agent.kill()
    computed = engine.fresh(prompt)
    assert (computed["tokens"], computed["cached"]) == ([tokens], [0])
    assert engine.fresh(words(2 * BLOCK_TOKENS, 6))["cached"] == [0]
