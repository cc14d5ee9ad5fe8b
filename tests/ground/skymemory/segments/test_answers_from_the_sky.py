"""The trained model of tests/models/seams answers questions about segments that come from satellites."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaForCausalLM

from seams import ANSWER_TOKENS, BOS, KINDS, make_prompts, make_questions
from seams_quality import SHAPES
from skymemory.prompt.manager import KVCManager
from skymemory.segments.manager import LinkedPrompt, SegmentManager
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation

pytestmark = pytest.mark.model

FOLDER = Path(__file__).parents[3] / "models" / "seams"
PROMPTS = 4


@pytest.fixture(scope="module")
def model() -> Any:
    return LlamaForCausalLM.from_pretrained(FOLDER, dtype=torch.float32).train(False)


@pytest.fixture
def segments(full_sky: LocalConstellation, model: Any, tokenizer: Any, tmp_path: Path) -> Iterator[SegmentManager]:
    with SkyStore(full_sky.constellation) as store:
        yield SegmentManager(KVCManager(model, tokenizer, store, codec="raw"), folder=tmp_path)


def answered(model: Any, prompt: LinkedPrompt) -> list[int]:
    ids = prompt.input_ids
    output = model.generate(
        ids,
        past_key_values=prompt.cache,
        max_new_tokens=ANSWER_TOKENS,
        do_sample=False,
        attention_mask=torch.ones_like(ids),
        eos_token_id=None,
    )
    return [int(token) for token in output[0, ids.shape[1] :]]


def test_answers_are_those_of_a_full_prefill_where_enough_is_computed(segments: SegmentManager, model: Any) -> None:
    generator = torch.Generator().manual_seed(5)
    prompts = make_prompts(SHAPES[0], PROMPTS, generator)
    right = dict.fromkeys(("full", "blend", "deep", "naive"), 0)
    for kind in KINDS:
        questions = make_questions(prompts, kind, generator)
        for parts, question, answer in zip(prompts.segments, questions.tokens, questions.answers, strict=True):
            pieces = [[BOS], *(segments.add(part) for part in parts), question]
            linked = {
                "full": segments.link(pieces),
                "blend": segments.link(pieces, "blend:50"),
                "deep": segments.link(pieces, "blend:15", switch_layer=4),
                "naive": segments.link(pieces, "naive"),
            }
            tokens = linked["full"].report.exact_tokens
            assert {one.report.linked_tokens for name, one in linked.items() if name != "full"} == {parts.numel()}
            assert {one.cache.get_seq_length() for one in linked.values()} == {tokens}
            for name, one in linked.items():
                right[name] += answered(model, one) == answer.tolist()
    assert right["full"] == right["blend"] == right["deep"] == PROMPTS * len(KINDS)
    assert right["naive"] < right["full"]  # what a segment says of another one is lost


def test_variants_know_the_documents_of_their_segments(segments: SegmentManager, model: Any) -> None:
    """Nothing is computed again. In each second segment only what was computed behind the first one tells whose it is."""
    generator = torch.Generator().manual_seed(6)
    prompts = make_prompts(SHAPES[0], PROMPTS, generator)
    questions = make_questions(prompts, "carried", generator)
    right = {"before": 0, "after": 0}
    for parts, question, answer in zip(prompts.segments, questions.tokens, questions.answers, strict=True):
        first, second, third, fourth = (segments.add(part) for part in parts)
        pieces = [[BOS], first, second, third, fourth, question]
        right["before"] += answered(model, segments.link(pieces, "naive")) == answer.tolist()
        segments.add_variants(segments.link([[BOS], third, fourth, first, second, question]))
        right["after"] += answered(model, segments.link(pieces, "naive")) == answer.tolist()
    assert right == {"before": 0, "after": PROMPTS}
