"""vLLM with two workers, each of which holds half the heads: a block is two parts, and is there if both are."""

from collections.abc import Callable, Iterator

import pytest

from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from support.vllm_engine import BLOCK_TOKENS, Engine, words

pytestmark = pytest.mark.engines

BLOCKS = 3
LONG = BLOCKS * BLOCK_TOKENS + 40
WORKERS = 2


@pytest.fixture(scope="module", autouse=True)
def unbound() -> Iterator[None]:
    """By itself vLLM wants a NUMA node for each worker."""
    with pytest.MonkeyPatch.context() as around:
        around.setenv("VLLM_CPU_OMP_THREADS_BIND", "nobind")
        around.setenv("OMP_NUM_THREADS", "1")  # of each worker: more would wait for each other's cores
        yield


@pytest.fixture(scope="module")
def engine(start_engine: Callable[..., Engine]) -> Engine:
    return start_engine(recording=True, tensor_parallel_size=WORKERS)


def stored(engine: Engine, prompt: list[int]) -> list[int]:
    """Have a prompt computed, and its blocks in the sky. Its tokens."""
    return engine.stored(prompt, WORKERS * BLOCKS)


def test_a_warm_prompt_gives_the_tokens_of_a_cold_one(engine: Engine) -> None:
    prompt = words(LONG, 1)
    tokens = stored(engine, prompt)
    assert engine.loaded(prompt, BLOCKS) == tokens


def test_a_part_that_is_not_what_was_stored_is_computed_by_all(engine: Engine, sky: LocalConstellation) -> None:
    known = len(engine.keys())
    prompt = words(LONG, 2)
    tokens = stored(engine, prompt)
    keys = engine.keys()[known:]
    assert len(keys) == WORKERS * BLOCKS
    seen = "skymemory_load_failed_blockscorrupt"
    with SkyStore(sky.constellation) as store:
        for key in keys:
            length = len(store.get([key])[0].data)
            before = engine.metrics().get(seen, 0)

            def is_met(key: bytes = key, length: int = length, before: float = before) -> bool:
                assert store.purge([key]).confirmed
                assert store.put([(key, bytes(length))])[0].ok
                assert engine.fresh(prompt)["tokens"] == [tokens]
                engine.generate(words(4, 1000))  # what the workers did late is reported in a later step
                return engine.metrics().get(seen, 0) > before

            engine.again(is_met)  # on a busy machine a load may fail before the block has come
            assert engine.loaded(prompt, BLOCKS) == tokens  # once it is stored anew


def test_another_process_of_as_many_workers_and_one_of_one(engine: Engine, start_engine: Callable[..., Engine]) -> None:
    prompt = words(LONG, 3)
    tokens = stored(engine, prompt)
    engine.close()

    second = start_engine(tensor_parallel_size=WORKERS)
    assert second.loaded(prompt, BLOCKS) == tokens  # of the first one
    assert second.until(skymemory_found_blocks=1)["skymemory_found_blocks"] % BLOCKS == 0
    second.close()

    alone = start_engine(is_one_process=True)

    def misses() -> bool:
        assert alone.fresh(prompt)["cached"] == [0]
        alone.generate(words(4, 1000))  # what the workers did late is reported in a later step
        return alone.metrics().get("skymemory_missing_blocks", 0) > 0

    alone.again(misses)  # on a busy machine a look-up may come too late
    assert alone.metrics().get("skymemory_found_blocks", 0) == 0
    assert f"(a share of {BLOCK_TOKENS} in each of {WORKERS} workers)" in alone.log()
