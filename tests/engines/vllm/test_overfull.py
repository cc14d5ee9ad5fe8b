"""vLLM over a sky that is smaller than a prompt."""

from collections.abc import Callable, Iterator

import pytest

from skymemory.sky.constellation import Constellation
from skymemory.testbed.local import LocalConstellation, free_port
from support.vllm_engine import BLOCK_TOKENS, Engine, words

pytestmark = pytest.mark.engines

HELD = 4
"""blocks of the small model that a store of 1 MiB holds"""


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


def test_a_prompt_larger_than_the_sky_finds_the_same_beginning_each_time(start_engine: Callable[..., Engine]) -> None:
    engine = start_engine(is_one_process=True)
    prompt = words(7 * BLOCK_TOKENS + 40, 1)
    tokens = engine.stored(prompt, HELD)

    def steady() -> bool:
        found = [engine.fresh(prompt) for _ in range(3)]
        assert all(one["tokens"] == [tokens] for one in found)
        return all(one["cached"] in ([HELD * BLOCK_TOKENS], [(HELD - 1) * BLOCK_TOKENS]) for one in found)

    engine.again(steady)
    assert engine.metrics()["skymemory_save_beyond_blocks"] >= 7 - HELD
    told = f"this sky holds {HELD * BLOCK_TOKENS} tokens of this model: {HELD} blocks (1 servers with store_mib 1)"
    assert told in engine.log()
