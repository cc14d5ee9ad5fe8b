"""The task needs attention across segments, segments apart are what they say, and the tool writes weights with their lineage."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import DynamicCache, LlamaForCausalLM
from transformers.models.llama.modeling_llama import rotate_half

import seams
import train_seams
from seams import KINDS, Prompts, Shape, make_prompts, make_questions
from seams_quality import answer_logits, logits_and_states, make_sequences, measure

SHAPE = Shape(documents=3, segment_tokens=16, facts=2)
each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Threads do not wait for each other on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def facts_of(segment: list[int]) -> dict[int, list[int]]:
    """Words of each attribute that a segment states."""
    return {token: segment[place + 1 : place + 3] for place, token in enumerate(segment) if token in seams.ATTRIBUTES}


def documents_of(prompts: Prompts, number: int) -> dict[int, tuple[list[int], list[int]]]:
    """Both segments of each document of a prompt, by name."""
    segments = prompts.segments[number].tolist()
    return {first[1]: (first, second) for first, second in zip(segments[::2], segments[1::2], strict=True)}


# ---- prompts and questions -----------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_prompts() -> None:
    first, again, other = (make_prompts(SHAPE, 5, generator(seed)).segments for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_segments_have_their_length_and_nothing_but_known_tokens() -> None:
    segments = make_prompts(SHAPE, 20, generator()).segments
    assert segments.shape == (20, 6, 16)
    assert 0 <= int(segments.min()) <= int(segments.max()) < seams.VOCABULARY


def test_a_segment_without_room_for_its_facts_is_refused() -> None:
    with pytest.raises(ValueError, match="room"):
        make_prompts(Shape(documents=2, segment_tokens=8, facts=3), 1, generator())


def test_only_the_subject_tells_documents_apart() -> None:
    prompts = make_prompts(SHAPE, 20, generator())
    for number in range(20):
        documents = documents_of(prompts, number)
        assert len(documents) == SHAPE.documents
        for part in (0, 1):
            stated = [frozenset(facts_of(both[part])) for both in documents.values()]
            assert len(set(stated)) == 1
            assert len(stated[0]) == SHAPE.facts
        assert not any(token in seams.NAMES for _, second in documents.values() for token in second)


def test_marks_tell_subject_and_attribute_of_facts_and_references() -> None:
    prompts = make_prompts(SHAPE, 20, generator())
    for number in range(20):
        marks = dict(zip(documents_of(prompts, number), prompts.marks[number].unflatten(0, (-1, 2)).tolist(), strict=True))
        for name, both in documents_of(prompts, number).items():
            for segment, marked in zip(both, marks[name], strict=True):
                attribute, left = seams.NO_ATTRIBUTE, 0
                for token, mark in zip(segment, marked, strict=True):
                    if token in seams.ATTRIBUTES:
                        attribute, left = token - seams.ATTRIBUTES.start, 3
                    if token == seams.REFERS:
                        attribute, left = seams.REFERENCE, 2
                    expected = [name - seams.NAMES.start, attribute] if left > 0 else [seams.NO_SUBJECT, seams.NO_ATTRIBUTE]
                    assert mark == expected
                    left -= 1


@each_kind
def test_an_answer_stands_where_its_kind_says(kind: str) -> None:
    prompts = make_prompts(SHAPE, 50, generator())
    questions = make_questions(prompts, kind, generator(1))
    for number, (question, answer) in enumerate(zip(questions.tokens.tolist(), questions.answers.tolist(), strict=True)):
        documents = documents_of(prompts, number)
        (first, second), attribute = documents[question[1]], question[-1]
        if kind == "two hops":
            refers_to = second[second.index(seams.REFERS) + 1] - seams.REFERENCES.start + seams.NAMES.start
            first, second = documents[refers_to]
            facts = facts_of(first) | facts_of(second)
        else:
            facts = facts_of(second if kind == "carried" else first)
        assert answer == [*facts[attribute], seams.END]


# ---- segments apart ------------------------------------------------------------------------------------------------------


def computed_apart(model: LlamaForCausalLM, segments: torch.Tensor, question: torch.Tensor) -> torch.Tensor:
    """Logits behind a question over segments that are computed alone, with their K rotated to their places."""
    layers: list[list[tuple[torch.Tensor, torch.Tensor]]] = []
    begin = 0
    for ids in (torch.tensor([[seams.BOS]]), *segments[:, None]):
        cache = model.model(ids, use_cache=True).past_key_values
        cos, sin = model.model.rotary_emb(cache.layers[0].keys, torch.tensor([[begin]]))
        layers.append([(layer.keys * cos + rotate_half(layer.keys) * sin, layer.values) for layer in cache.layers])
        begin += ids.shape[1]
    whole: Any = DynamicCache()
    for number, pairs in enumerate(zip(*layers, strict=True)):
        whole.update(torch.cat([keys for keys, _ in pairs], 2), torch.cat([values for _, values in pairs], 2), number)
    return model(question[None], past_key_values=whole).logits[0]


@torch.no_grad()
def test_segments_kept_apart_by_the_mask_are_segments_computed_alone() -> None:
    model = train_seams.make_model(layers=2, seed=3).eval()
    prompts = make_prompts(SHAPE, 1, generator())
    sequences = make_sequences(prompts, ("carried", "two hops"), generator(1))
    masked = answer_logits(model, sequences, apart=True)[0]
    context = 1 + prompts.segments[0].numel()
    for number, tokens in enumerate((5, 6)):
        question = sequences.tokens[0, context : context + tokens]
        alone = computed_apart(model, prompts.segments[0], question)[-seams.ANSWER_TOKENS :]
        torch.testing.assert_close(masked[number], alone, rtol=1e-4, atol=1e-5)
        context += tokens
    together = answer_logits(model, sequences)[0]
    assert (together - masked).abs().max() > 1e-3


@torch.no_grad()
def test_a_question_does_not_see_the_others() -> None:
    model = train_seams.make_model(layers=2, seed=3).eval()
    prompts = make_prompts(SHAPE, 4, generator())
    one = make_sequences(prompts, ("local",), generator(1))
    two = make_sequences(prompts, ("local", "carried"), generator(1))
    torch.testing.assert_close(answer_logits(model, two)[:, :1], answer_logits(model, one), rtol=1e-4, atol=1e-5)


def test_a_model_that_has_learnt_nothing_answers_nothing() -> None:
    right = measure(train_seams.make_model(layers=1, seed=0).eval(), SHAPE, apart=False, seed=0, prompts=60, each=1)
    assert list(right) == list(KINDS)
    assert max(right.values()) < 0.2


# ---- the tool ------------------------------------------------------------------------------------------------------------


def test_the_tool_writes_weights_with_their_lineage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The tool runs in this process: to begin another one takes longer than to train such a model."""
    common = ["--layers", "2", "--batch-tokens", "500", "--prompts", "2"]
    assert train_seams.main([*common, "--out", str(tmp_path), "--steps", "10"]) == 0
    assert "step 10" in capsys.readouterr().out
    lineage = json.loads((tmp_path / "lineage.json").read_text())
    assert (lineage["steps"], lineage["layers"], lineage["seed"]) == (10, 2, 0)
    assert lineage["sha256"] == hashlib.sha256((tmp_path / "model.safetensors").read_bytes()).hexdigest()
    assert set(lineage["right"]) == {"128", "192", "384"}
    model = LlamaForCausalLM.from_pretrained(tmp_path)
    assert model.dtype == torch.bfloat16
    assert sum(value.numel() for value in model.parameters()) == lineage["parameters"]

    further = ["--out", str(tmp_path / "further"), "--start", str(tmp_path), "--still", "2", "--steps", "1"]
    assert train_seams.main([*common, *further]) == 0
    told = json.loads((tmp_path / "further" / "lineage.json").read_text())
    assert (told["start"]["sha256"], told["still"]) == (lineage["sha256"], 2)


@torch.no_grad()
def test_unrest_is_what_segments_change_in_tokens_that_need_none() -> None:
    model = train_seams.make_model(layers=2, seed=3).eval()
    sequences = make_sequences(make_prompts(SHAPE, 2, generator()), ("local",), generator(1))
    together, apart = (logits_and_states(model, sequences, apart=apart)[1] for apart in (False, True))
    assert train_seams.unrest(together, together, sequences) == 0
    assert train_seams.unrest(together, apart, sequences) > 0
    needs = (sequences.blocks % 2 == 0) & (sequences.blocks > 0) & (sequences.marks[..., 0] != seams.NO_SUBJECT)
    other = [torch.where(needs[..., None], torch.randn_like(states), states) for states in together]
    assert train_seams.unrest(tuple(other), together, sequences) == 0
