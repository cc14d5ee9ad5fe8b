"""vLLM with two workers over a sky that is smaller than a prompt: what is found of a block, both workers can load."""

from collections.abc import Callable, Iterator

import pytest

from skymemory.sky.constellation import Constellation
from skymemory.testbed.local import LocalConstellation, free_port
from support.vllm_engine import BLOCK_TOKENS, Engine, words

pytestmark = pytest.mark.engines

HELD = 4
"""blocks of the small model that a store of 1 MiB holds"""
WORKERS = 2
LONG = 7


@pytest.fixture(scope="module")
def sky() -> Iterator[LocalConstellation]:
    """One server of 1 MiB."""
    sections = {
        "constellation": {"planes": 3, "slots": 3},
        "cache": {"servers": 1, "parity": 0, "centre": [2, 2]},
        "satellite": {"store_mib": 1},
    }
    base = Constellation.model_validate(sections, strict=False)
    with LocalConstellation(base.replace(network={"port": free_port(base)})) as local:
        yield local


@pytest.fixture(scope="module")
def engine(start_engine: Callable[..., Engine]) -> Iterator[Engine]:
    with pytest.MonkeyPatch.context() as around:
        around.setenv("VLLM_CPU_OMP_THREADS_BIND", "nobind")  # by itself vLLM wants a NUMA node for each worker
        around.setenv("OMP_NUM_THREADS", "1")  # of each worker: more would wait for each other's cores
        yield start_engine(tensor_parallel_size=WORKERS)


def prompt(blocks: int, seed: int) -> list[int]:
    """Return a prompt of so many blocks and a bit."""
    return words(blocks * BLOCK_TOKENS + 40, seed)


def failed(engine: Engine) -> float:
    """Return the number of parts that were found and did not come."""
    return sum(value for name, value in engine.metrics().items() if name.startswith("skymemory_load_failed_blocks"))


def test_a_prompt_larger_than_the_sky_finds_the_same_beginning_each_time(engine: Engine) -> None:
    tokens = engine.stored(prompt(LONG, 1), WORKERS * HELD)

    def steady() -> bool:
        found = [engine.fresh(prompt(LONG, 1)) for _ in range(3)]
        assert all(one["tokens"] == [tokens] for one in found)
        return all(one["cached"] in ([HELD * BLOCK_TOKENS], [(HELD - 1) * BLOCK_TOKENS]) for one in found)

    engine.again(steady)
    assert engine.metrics()["skymemory_save_beyond_blocks"] >= LONG - HELD
    told = f"this sky holds {HELD * BLOCK_TOKENS} tokens of this model: {HELD} blocks (1 servers with store_mib 1)"
    assert told in engine.log()


def test_what_is_left_of_a_prompt_after_another_one_is_loaded_by_both_workers(engine: Engine) -> None:
    tokens = engine.stored(prompt(HELD, 2), WORKERS)
    turns = iter(range(100))

    def some_is_left() -> bool:
        engine.fresh(prompt(2, 3 + next(turns)))
        before = failed(engine)
        found = engine.fresh(prompt(HELD, 2))
        assert found["tokens"] == [tokens]
        return 0 < found["cached"][0] < HELD * BLOCK_TOKENS and failed(engine) == before

    engine.again(some_is_left)
