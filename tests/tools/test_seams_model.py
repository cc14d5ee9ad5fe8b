"""The trained model of tests/models/seams is the one that its lineage tells of, and needs attention across segments."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
import torch
from transformers import LlamaForCausalLM

from seams_quality import SHAPES, measure

FOLDER = Path(__file__).parents[1] / "models" / "seams"

pytestmark = pytest.mark.model


def test_the_weights_are_those_of_the_lineage() -> None:
    lineage = json.loads((FOLDER / "lineage.json").read_text())
    weights = (FOLDER / "model.safetensors").read_bytes()
    assert hashlib.sha256(weights).hexdigest() == lineage["sha256"]
    assert 1_000_000 < len(weights) < 3_000_000


@pytest.mark.parametrize("shape", SHAPES, ids=["128", "192", "384"])
def test_answers_need_attention_across_segments(shape: object) -> None:
    model = LlamaForCausalLM.from_pretrained(FOLDER, dtype=torch.float32).train(False)
    full = measure(model, shape, apart=False, seed=11, prompts=20)  # type: ignore[arg-type]  # the tools are not typed
    apart = measure(model, shape, apart=True, seed=11, prompts=20)  # type: ignore[arg-type]
    assert min(full.values()) >= 0.98
    assert apart["local"] >= 0.95
    assert apart["carried"] <= 0.2
    assert apart["two hops"] <= 0.5
