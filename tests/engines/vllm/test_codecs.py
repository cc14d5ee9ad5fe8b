"""vLLM with blocks that are stored smaller than they were computed."""

from collections.abc import Callable
from functools import cache, partial

import pytest

from support.vllm_engine import BLOCK_TOKENS, Engine, words

pytestmark = pytest.mark.engines

LONG = 4 * BLOCK_TOKENS + 40


@pytest.fixture(scope="module")
def exact(start_engine: Callable[..., Engine]) -> Callable[[], Engine]:
    """An engine that stores blocks as they were computed; it is started when it is first asked for."""
    return cache(partial(start_engine, is_one_process=True))


@pytest.mark.parametrize("codec", ["int8", "int4"])
def test_blocks_come_smaller_and_meet_no_exact_ones(
    start_engine: Callable[..., Engine], exact: Callable[[], Engine], codec: str
) -> None:
    first = {"int8": 1, "int4": 11}[codec]  # prompts of its own: exact blocks of the other one's are still in the sky
    prompts = [words(LONG, seed) for seed in range(first, first + 4)]
    engine = start_engine(extra={"codec": codec}, is_one_process=True)
    assert f"codec {codec}: blocks that come from the sky are not those that were computed" in engine.log()
    cold = [engine.stored(prompt, 4) for prompt in prompts]
    before = engine.metrics()
    warm = [engine.loaded(prompt, 4) for prompt in prompts]
    after = engine.until(skymemory_loaded_blocks=before.get("skymemory_loaded_blocks", 0) + 16)
    block_bytes = after["skymemory_saved_bytes"] / after["skymemory_saved_blocks"]
    assert block_bytes < 3 * 2 * 2 * 32 * BLOCK_TOKENS * 4 / {"int8": 3.5, "int4": 6}[codec]
    # Which tokens come is up to the model; on one with random weights a small difference may decide
    same = sum(one == other for a, b in zip(cold, warm, strict=True) for one, other in zip(a, b, strict=True))
    print(f"{codec}: {same} of {sum(map(len, cold))} tokens are those of a prompt that was computed")
    assert all(len(tokens) == 8 for tokens in warm)
    engine.close()
    assert exact().generate(prompts[0])["cached"] == [0]
    assert exact().generate(prompts[0])["tokens"] == [cold[0]]
