"""vLLM with its connector over an agent and real satellites."""

from collections.abc import Callable

import pytest

from support.vllm_engine import BLOCK_TOKENS, Agent, Engine, words

pytestmark = pytest.mark.engines

LONG = 4 * BLOCK_TOKENS + 40


def test_cold_and_warm(agent: Agent, start_engine: Callable[..., Engine]) -> None:
    engine = start_engine()
    prompt = words(LONG, 1)
    cold = engine.generate(prompt)
    assert cold["cached"] == [0]
    engine.until(skymemory_saved_blocks=4)
    engine.ask("forget")
    warm = engine.generate(prompt)
    print(cold, warm, engine.metrics(), engine.log()[-3000:])
    assert warm["tokens"] == cold["tokens"]
    assert warm["cached"] == [4 * BLOCK_TOKENS]
