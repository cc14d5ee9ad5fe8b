"""vLLM with its connector over an agent and real satellites. One engine for all tests but the last: it takes long to start."""

import random
from collections.abc import Callable
from itertools import count

import pytest

from skymemory.store.sky_store import SkyStore
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
    return engine.stored(prompt, len(prompt) // BLOCK_TOKENS, tokens=tokens, salt=salt)


def test_a_warm_prompt_gives_the_tokens_of_a_cold_one(engine: Engine) -> None:
    prompt = words(LONG, 1)
    tokens = stored(engine, prompt)

    def warm() -> bool:
        earlier = engine.metrics().get("skymemory_loaded_blocks", 0)
        assert engine.loaded(prompt, 4) == tokens
        before = engine.until(skymemory_loaded_blocks=earlier + 4)
        found = engine.fresh(prompt)
        assert found["tokens"] == [tokens]
        if found["cached"] != [4 * BLOCK_TOKENS]:
            return False
        after = engine.until(skymemory_loaded_blocks=before["skymemory_loaded_blocks"] + 4)
        assert after["skymemory_saved_blocks"] == before["skymemory_saved_blocks"]  # nothing is stored twice
        assert after["external_prefix_cache_hits"] - before["external_prefix_cache_hits"] == 4 * BLOCK_TOKENS
        assert after["skymemory_loaded_bytes"] > before["skymemory_loaded_bytes"]
        return True

    engine.again(warm)


def test_of_a_prompt_of_whole_blocks_one_token_is_computed(engine: Engine) -> None:
    prompt = words(3 * BLOCK_TOKENS, 2)
    tokens = stored(engine, prompt)
    assert engine.loaded(prompt, 3) == tokens


def test_a_longer_prompt_finds_its_beginning_and_generated_tokens(engine: Engine) -> None:
    prompt = words(2 * BLOCK_TOKENS - 20, 3)
    tokens = engine.stored(prompt, 2, tokens=60)
    talk = [*prompt, *tokens, *words(50, 4)]
    cold = engine.stored(talk, 2, salt="not what was stored")
    assert engine.loaded(talk, 2) == cold


def test_what_vllm_has_itself_is_not_loaded(engine: Engine) -> None:
    prompt = words(LONG, 5)
    tokens = stored(engine, prompt)

    def the_rest_comes() -> bool:
        engine.fresh(prompt[: 2 * BLOCK_TOKENS + 10])
        before = engine.metrics()
        warm = engine.generate(prompt)
        assert warm["tokens"] == [tokens]
        if warm["cached"] != [4 * BLOCK_TOKENS]:
            return False
        engine.until(skymemory_loaded_blocks=before["skymemory_loaded_blocks"] + 2)
        return True

    engine.again(the_rest_comes)


def test_another_salt_finds_nothing(engine: Engine) -> None:
    prompt = words(LONG, 6)
    tokens = stored(engine, prompt, salt="one")
    assert stored(engine, prompt, salt="two") == tokens  # nothing of it was cached
    assert engine.loaded(prompt, 4, salt="one") == tokens


def test_requests_at_once_that_begin_alike(engine: Engine) -> None:
    """What they have in common is stored once. On a busy machine a put may fail and come again: then other requests try."""
    seeds = count(500)
    runs: list[tuple[list[list[int]], list[list[int]]]] = []

    def cold() -> bool:
        common = words(2 * BLOCK_TOKENS, next(seeds))
        prompts = [[*common, *words(BLOCK_TOKENS + more, next(seeds))] for more in (30, 50)]
        before = engine.saves()
        runs.append((prompts, engine.fresh(*prompts)["tokens"]))
        new = [key for key in engine.saves()[len(before) :] if key not in before]  # others may be stored anew meanwhile
        assert len(set(new)) == 4
        return len(new) == 4

    def warm() -> bool:
        prompts, tokens = runs[-1]
        found = engine.fresh(*prompts)
        assert found["tokens"] == tokens
        return found["cached"] == [3 * BLOCK_TOKENS] * 2

    engine.again(cold)
    engine.again(warm)


def test_requests_that_are_preempted(engine: Engine) -> None:
    prompts = [words(LONG, seed) for seed in (10, 11, 12)]
    alone = [engine.fresh(prompt, tokens=250, salt="alone")["tokens"][0] for prompt in prompts]

    def is_preempted() -> bool:
        before = engine.metrics()
        assert engine.fresh(*prompts, tokens=250)["tokens"] == alone
        return engine.metrics()["num_preemptions"] > before["num_preemptions"]

    engine.again(is_preempted)  # on a busy machine one may have ended before the next begins
    assert engine.fresh(*prompts, tokens=250)["tokens"] == alone


@pytest.mark.parametrize("steps", [1, 3, 6, 12])
def test_a_request_that_is_given_up(engine: Engine, steps: int) -> None:
    seeds = count(100 + 20 * steps)

    def all_is_kept() -> bool:
        prompt = words(LONG, next(seeds))
        tokens = stored(engine, prompt)
        assert engine.ask("forget")["done"]
        engine.ask("abort", prompt=prompt, steps=steps)  # asked for, being loaded, or computed
        engine.ask("abort", prompt=words(LONG, next(seeds)), steps=steps)  # never stored
        after = engine.fresh(prompt)
        assert after["tokens"] == [tokens]
        return after["cached"] == [4 * BLOCK_TOKENS]

    engine.again(all_is_kept)


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
    corrupt = before.get("skymemory_load_failed_blockscorrupt", 0)

    def refused() -> bool:
        assert engine.fresh(prompt)["tokens"] == [tokens]
        return engine.metrics().get("skymemory_load_failed_blockscorrupt", 0) > corrupt

    engine.again(refused)
    after = engine.until(skymemory_saved_blocks=before["skymemory_saved_blocks"] + 1)
    assert after["skymemory_loaded_blocks"] >= before["skymemory_loaded_blocks"] + 2
    assert keys[2].hex()[:16] in engine.log()
    assert engine.loaded(prompt, 4) == tokens


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
    assert engine.loaded(prompt, 4) == tokens  # once both sides have found the agent
    stored(engine, words(LONG, 61))


def test_another_process_and_another_format(engine: Engine, start_engine: Callable[..., Engine]) -> None:
    prompt = words(LONG, 400)
    tokens = stored(engine, prompt)

    second = start_engine(is_one_process=True)
    assert second.loaded(prompt, 4) == tokens  # of the first one
    assert second.until(skymemory_found_blocks=1)["skymemory_found_blocks"] % 4 == 0
    assert "another" not in second.log()
    second.close()

    third = start_engine(block_size=64, dtype="bfloat16", num_gpu_blocks_override=32, is_one_process=True)
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
