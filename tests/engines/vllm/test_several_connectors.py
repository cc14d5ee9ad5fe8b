"""Our connector among several of vLLM's MultiConnector."""

from collections.abc import Callable
from typing import Any

import pytest

from support.vllm_engine import BLOCK_TOKENS, CONNECTOR, Engine, words

pytestmark = pytest.mark.engines

PATIENT = {"always_fetch": True, "lookup_timeout_s": 60, "load_timeout_s": 120}
OURS = {**CONNECTOR, "kv_connector_extra_config": PATIENT}
NEIGHBOUR = {
    "kv_connector": "NeighbourConnector",
    "kv_connector_module_path": "support.vllm_neighbour",
    "kv_role": "kv_both",
}


@pytest.mark.parametrize(
    ("connectors", "is_one_process"),
    [([OURS, NEIGHBOUR], False), ([NEIGHBOUR, OURS], True), ([OURS], True)],
    ids=["first", "second", "alone"],
)
def test_prompts_are_exact_and_counted(
    start_engine: Callable[..., Engine], connectors: list[dict[str, Any]], is_one_process: bool
) -> None:
    several = {
        "kv_connector": "MultiConnector",
        "kv_role": "kv_both",
        "kv_load_failure_policy": "recompute",
        "kv_connector_extra_config": {"connectors": connectors},
    }
    engine = start_engine(kv_transfer_config=several, is_one_process=is_one_process)
    prompt = words(3 * BLOCK_TOKENS + 40, len(connectors) + 2 * is_one_process)
    tokens = engine.stored(prompt, 3)
    assert engine.loaded(prompt, 3) == tokens
    engine.close()
