"""vLLM with its connector over an agent and real satellites. One engine for all tests but the last: it takes long to start."""

import random
import time
from collections.abc import Callable

import pytest

from skymemory.store import SkyStore
from skymemory.testbed.local import LocalConstellation
from support.vllm_engine import BLOCK_TOKENS, Agent, Engine, words

pytestmark = pytest.mark.engines

LONG = 4 * BLOCK_TOKENS + 40


@pytest.fixture(scope="module")
def engine(start_engine: Callable[..., Engine]) -> Engine:
    """Computes long prompts in pieces, and has room for three of them."""
    return start_engine(recording=True, max_num_batched_tokens=256)


def stored(engine: Engine, prompt: list[int], tokens: int = 8, salt: str | None = None) -> list[int]:
    """Have a prompt computed, and its blocks in the sky. Its tokens."""
    before = engine.metrics()["skymemory_saved_blocks"]
    cold = engine.fresh(prompt, tokens=tokens, salt=salt)
    assert cold["cached"] == [0]
    engine.until(skymemory_saved_blocks=before + len(prompt) // BLOCK_TOKENS)
    return cold["tokens"][0]


def test_a_warm_prompt_gives_the_tokens_of_a_cold_one(engine: Engine) -> None:
    prompt = words(LONG, 1)
    tokens = stored(engine, prompt)
    before = engine.metrics()
    warm = engine.fresh(prompt)
    assert warm["tokens"] == [tokens]
    assert warm["cached"] == [4 * BLOCK_TOKENS]
    after = engine.until(skymemory_loaded_blocks=before["skymemory_loaded_blocks"] + 4)
    assert after["skymemory_saved_blocks"] == before["skymemory_saved_blocks"]  # nothing is stored twice
    assert after["external_prefix_cache_hits"] - before["external_prefix_cache_hits"] == 4 * BLOCK_TOKENS
    assert after["skymemory_loaded_bytes"] > before["skymemory_loaded_bytes"]


def test_of_a_prompt_of_whole_blocks_one_token_is_computed(engine: Engine) -> None:
    prompt = words(3 * BLOCK_TOKENS, 2)
    tokens = stored(engine, prompt)
    warm = engine.fresh(prompt)
    assert warm["tokens"] == [tokens]
    assert warm["cached"] == [3 * BLOCK_TOKENS - 1]


def test_a_longer_prompt_finds_its_beginning_and_generated_tokens(engine: Engine) -> None:
    prompt = words(2 * BLOCK_TOKENS - 20, 3)
    before = engine.metrics()["skymemory_saved_blocks"]
    tokens = engine.fresh(prompt, tokens=60)["tokens"][0]
    engine.until(skymemory_saved_blocks=before + 2)
    talk = [*prompt, *tokens, *words(50, 4)]
    cold = engine.fresh(talk, salt="not what was stored")
    warm = engine.fresh(talk)
    assert warm["cached"] == [2 * BLOCK_TOKENS]
    assert warm["tokens"] == cold["tokens"]
    engine.until(skymemory_saved_blocks=before + 4)  # those of the other salt as well: the next test counts its own


def test_what_vllm_has_itself_is_not_loaded(engine: Engine) -> None:
    prompt = words(LONG, 5)
    tokens = stored(engine, prompt)
    engine.fresh(prompt[: 2 * BLOCK_TOKENS + 10])
    before = engine.metrics()
    warm = engine.generate(prompt)
    assert (warm["tokens"], warm["cached"]) == ([tokens], [4 * BLOCK_TOKENS])
    engine.until(skymemory_loaded_blocks=before["skymemory_loaded_blocks"] + 2)


def test_another_salt_finds_nothing(engine: Engine) -> None:
    prompt = words(LONG, 6)
    before = engine.metrics()["skymemory_saved_blocks"]
    tokens = stored(engine, prompt, salt="one")
    other = engine.fresh(prompt, salt="two")
    assert (other["tokens"], other["cached"]) == ([tokens], [0])
    engine.until(skymemory_saved_blocks=before + 8)
    same = engine.fresh(prompt, salt="one")
    assert (same["tokens"], same["cached"]) == ([tokens], [4 * BLOCK_TOKENS])


def test_requests_at_once_that_begin_alike(engine: Engine) -> None:
    common = words(2 * BLOCK_TOKENS, 7)
    prompts = [[*common, *words(BLOCK_TOKENS + 30, 8)], [*common, *words(BLOCK_TOKENS + 50, 9)]]
    before = engine.metrics()["skymemory_saved_blocks"]
    cold = engine.fresh(*prompts)
    after = engine.until(skymemory_saved_blocks=before + 4)
    assert after["skymemory_saved_blocks"] == before + 4  # what they have in common once
    warm = engine.fresh(*prompts)
    assert warm["tokens"] == cold["tokens"]
    assert warm["cached"] == [3 * BLOCK_TOKENS] * 2


def test_requests_that_are_preempted(engine: Engine) -> None:
    prompts = [words(LONG, seed) for seed in (10, 11, 12)]
    alone = [engine.fresh(prompt, tokens=250, salt="alone")["tokens"][0] for prompt in prompts]
    before = engine.metrics()
    together = engine.fresh(*prompts, tokens=250)
    assert together["tokens"] == alone
    after = engine.metrics()
    assert after["num_preemptions"] > before["num_preemptions"]
    again = engine.fresh(*prompts, tokens=250)
    assert again["tokens"] == alone


@pytest.mark.parametrize("steps", [1, 3, 6, 12])
def test_a_request_that_is_given_up(engine: Engine, steps: int) -> None:
    prompt = words(LONG, 20 + steps)
    tokens = stored(engine, prompt)
    assert engine.ask("forget")["done"]
    engine.ask("abort", prompt=prompt, steps=steps)  # asked for, being loaded, or computed
    engine.ask("abort", prompt=words(LONG, 40 + steps), steps=steps)  # never stored
    after = engine.fresh(prompt)
    assert (after["tokens"], after["cached"]) == ([tokens], [4 * BLOCK_TOKENS])


def test_a_block_that_is_not_what_was_stored_is_computed_and_stored_anew(engine: Engine, sky: LocalConstellation) -> None:
    known = len(engine.keys())
    prompt = words(LONG, 50)
    tokens = stored(engine, prompt)
    keys = engine.keys()[known:]
    assert len(keys) == 4
    with SkyStore(sky.constellation) as store:
        [block] = store.get([keys[2]])
        garbage = random.Random(1).randbytes(len(block.data))
        assert store.purge([keys[2]]).confirmed
        assert store.put([(keys[2], garbage)])[0].ok
    before = engine.metrics()
    warm = engine.fresh(prompt)
    assert warm["tokens"] == [tokens]
    corrupt = before.get("skymemory_load_failed_blockscorrupt", 0)
    saved = before["skymemory_saved_blocks"]
    after = engine.until(skymemory_load_failed_blockscorrupt=corrupt + 1, skymemory_saved_blocks=saved + 1)
    assert after["skymemory_loaded_blocks"] >= before["skymemory_loaded_blocks"] + 2
    assert keys[2].hex()[:16] in engine.log()
    healed = engine.fresh(prompt)
    assert (healed["tokens"], healed["cached"]) == ([tokens], [4 * BLOCK_TOKENS])


def test_a_first_block_that_is_not_what_was_stored(engine: Engine, sky: LocalConstellation) -> None:
    known = len(engine.keys())
    prompt = words(LONG, 51)
    tokens = stored(engine, prompt)
    key = engine.keys()[known]
    with SkyStore(sky.constellation) as store:
        [block] = store.get([key])
        assert store.purge([key]).confirmed
        assert store.put([(key, bytes(len(block.data)))])[0].ok
    assert engine.fresh(prompt)["tokens"] == [tokens]


def test_the_agent_is_killed_and_comes_back(engine: Engine, agent: Agent) -> None:
    prompt = words(LONG, 60)
    tokens = stored(engine, prompt)
    agent.kill()
    without = engine.fresh(prompt)
    assert (without["tokens"], without["cached"]) == ([tokens], [0])
    agent.start()
    end = time.monotonic() + 60
    while (warm := engine.fresh(prompt))["cached"] == [0]:  # until both sides have found the agent
        assert time.monotonic() < end, agent.log()
    assert (warm["tokens"], warm["cached"]) == ([tokens], [4 * BLOCK_TOKENS])
    stored(engine, words(LONG, 61))


def test_another_process_and_another_format(engine: Engine, start_engine: Callable[..., Engine]) -> None:
    prompt = words(LONG, 400)
    tokens = stored(engine, prompt)

    second = start_engine()
    found = second.generate(prompt)
    assert (found["tokens"], found["cached"]) == ([tokens], [4 * BLOCK_TOKENS])
    assert "another" not in second.log()
    second.close()

    third = start_engine(block_size=64, dtype="bfloat16", num_gpu_blocks_override=32)
    assert third.generate(prompt)["cached"] == [0]
    assert "blocks of 128 tokens in float32" in third.log()
    third.close()


def test_a_satellite_is_killed(engine: Engine, sky: LocalConstellation) -> None:
    # The last one: it may have held what is known of the model's formats
    prompt = words(LONG, 300)
    tokens = stored(engine, prompt)
    sky.kill(sky.constellation.cache.centre)
    for _ in range(2):
        assert engine.fresh(prompt)["tokens"] == [tokens]
