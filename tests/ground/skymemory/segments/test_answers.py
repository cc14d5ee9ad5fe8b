"""Answers of a model that become segments without being computed again."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from skymemory.prompt.huggingface import LinkedCache
from skymemory.prompt.manager import KVCManager
from skymemory.segments.answers import answer_tokens
from skymemory.segments.directory import SegmentDirectory
from skymemory.segments.errors import SegmentError, UnknownSegmentError
from skymemory.segments.linker import Linker
from skymemory.segments.manager import LinkedPrompt, SegmentManager
from skymemory.segments.manifest import VARIANTS_MAX
from support.memory_store import MemoryStore
from support.segments import BLOCK, manifest_key, tokens_of
from support.small_models import small_model

pytestmark = pytest.mark.model

END = 1
QUESTION = " What does each of them keep?"


@pytest.fixture
def model(make_llama: Callable[..., Any], seed: int) -> Any:
    model = make_llama(seed=seed, num_hidden_layers=5, bos_token_id=0)
    model.generation_config.eos_token_id = None  # so that answers have as many tokens as are wanted
    return model


@pytest.fixture
def manager(model: Any, tokenizer: Any, store: MemoryStore) -> KVCManager:
    return KVCManager(model, tokenizer, store, codec="raw", block_tokens=BLOCK)


@pytest.fixture
def answering(manager: KVCManager, tmp_path: Path) -> SegmentManager:
    return SegmentManager(manager, folder=tmp_path)


def generated(model: Any, prompt: LinkedPrompt, tokens: int = 2 * BLOCK + 3) -> torch.Tensor:
    ids = prompt.input_ids
    output: torch.Tensor = model.generate(
        ids, past_key_values=prompt.cache, max_new_tokens=tokens, do_sample=False, attention_mask=torch.ones_like(ids)
    )
    return output


def largest_difference(one: Any, other: Any, tokens: range) -> float:
    """Largest difference of keys and values of some tokens, by the largest of them."""
    pairs = [
        (a[:, :, tokens.start : tokens.stop], b[:, :, tokens.start : tokens.stop])
        for k, v in zip(one, other, strict=True)
        for a, b in zip(k[:2], v[:2], strict=True)
    ]
    return max(float((a - b).abs().max() / a.abs().max()) for a, b in pairs)


@pytest.mark.parametrize("name", ["llama, yarn", "glm", "cohere", "smollm3"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_taken_out_of_a_cache_is_what_would_be_caught_before_rotation(name: str, dtype: torch.dtype) -> None:
    """Values bit by bit, and keys but for the rounding of turning them back."""
    model = small_model(name, dtype)
    linker = Linker(model)
    tokens = torch.randint(3, 250, (40,), generator=torch.Generator().manual_seed(2)).tolist()
    with torch.no_grad():
        cache = model(torch.tensor([tokens]), use_cache=True).past_key_values
    taken = linker.take_out(cache, tokens[:25], 0)
    caught = linker.compute(tokens[:25])
    noise = {torch.float32: 1e-5, torch.bfloat16: 2e-2}[dtype]
    assert taken.shape == caught.shape
    assert taken.dtype == dtype
    assert float((taken.float() - caught.float()).abs().max()) <= noise * float(caught.abs().max())
    for start, number in ((30, 11), (0, 0)):
        with pytest.raises(ValueError, match="are wanted of a cache that covers 40"):
            linker.take_out(cache, tokens[:number], start)


def test_an_answer_is_linked_into_the_next_prompt(answering: SegmentManager, model: Any) -> None:
    document = answering.add(tokens_of(30))
    first = answering.link(["Read this: ", document, QUESTION], "naive")
    output = generated(model, first)
    answer = answering.add_answer(first, output, display_name="an answer")
    wanted = output[0, first.input_ids.shape[1] :].tolist()
    assert (answer.tokens, answer.display_name) == (len(wanted), "an answer")
    assert first.cache.get_seq_length() == output.shape[1] - 1
    assert answering.get(answer.id).tokens == len(wanted)
    # At the place where it was computed, its keys and values are those that generate left
    same = answering.link([first.input_ids, answer, [5]], "naive")
    assert same.report.linked_tokens == len(wanted)
    assert same.report.exact_tokens == first.input_ids.shape[1]
    assert isinstance(same.cache, LinkedCache)
    span = range(first.input_ids.shape[1], output.shape[1] - 1)
    layer_0_apart = list(same.cache)[1:], list(first.cache)[1:]
    assert largest_difference(*layer_0_apart, span) < 1e-5
    # ... and elsewhere they are linked, too
    other = answering.link([[7] * 20, answer, QUESTION], "lego:2")
    assert other.report.linked_tokens == len(wanted)
    assert other.input_ids[0, 20 : 20 + len(wanted)].tolist() == wanted


def test_an_answer_is_exact_nowhere(answering: SegmentManager, manager: KVCManager, model: Any) -> None:
    first = answering.link([tokens_of(BLOCK + 3), QUESTION])
    output = generated(model, first)
    answer = answering.add_answer(first, output)
    for strategy, linked in (("naive", answer.tokens), ("exact", 0), ("auto", 0)):
        prompt = answering.link([answer, QUESTION], strategy)
        assert prompt.report.linked_tokens == linked
        assert prompt.report.exact_tokens == (0 if linked else prompt.input_ids.shape[1] - 1)
        assert manager.add_blocks(prompt.input_ids, copy.deepcopy(prompt.cache)).stored == (
            0 if linked else (prompt.input_ids.shape[1] - 1) // BLOCK
        )
        manager.store.purge(manager.keys(prompt.input_ids))


def test_an_answer_and_the_same_tokens_computed_alone_share_no_key(
    answering: SegmentManager, model: Any, store: MemoryStore, tmp_path: Path
) -> None:
    first = answering.link([tokens_of(20), QUESTION])
    output = generated(model, first)
    answer = answering.add_answer(first, output)
    of_answer = set(store.blocks)
    tokens = output[0, first.input_ids.shape[1] :]
    alone = answering.add(tokens)
    assert alone.id == answer.id  # the content is the same
    assert alone.size_bytes == pytest.approx(2 * answer.size_bytes, rel=0.01)
    directory = SegmentDirectory(store, folder=tmp_path)
    manifest = directory.get(alone.id).manifest
    keys = [set(keys.all) for keys in directory.all_keys(manifest)]
    assert len(keys) == 2
    assert not keys[0] & keys[1]
    assert keys[1] <= of_answer
    assert not keys[0] & of_answer
    # What was computed alone wins, and is exact at the beginning
    prompt = answering.link([alone, QUESTION], "naive")
    assert prompt.report.exact_tokens == prompt.input_ids.shape[1] - 1
    assert answering.expire(alone.id)
    assert not store.left


def test_an_answer_does_not_take_the_place_of_what_was_computed_alone(answering: SegmentManager, model: Any) -> None:
    first = answering.link([tokens_of(20), QUESTION])
    output = generated(model, first)
    alone = answering.add(output[0, first.input_ids.shape[1] :])
    answering.add_answer(first, output)
    prompt = answering.link([alone, QUESTION], "naive")
    assert prompt.report.exact_tokens == prompt.input_ids.shape[1] - 1
    again = answering.add(output[0, first.input_ids.shape[1] :], ttl_s=60, display_name="named")
    assert again.display_name == "named"
    assert again.size_bytes == alone.size_bytes * 2


def test_the_same_answer_to_many_prompts_is_kept_a_few_times(answering: SegmentManager, manager: KVCManager) -> None:
    answer = tokens_of(BLOCK, 9)
    sizes = []
    for number in range(VARIANTS_MAX + 2):
        prompt = answering.link([[5 + number] * 10])
        tokens = [*prompt.input_ids[0].tolist(), *answer]
        manager.engine.prefill(tokens, prompt.cache)
        sizes.append(answering.add_answer(prompt, tokens).size_bytes)
    assert sizes[:3] == [sizes[0], 2 * sizes[0], 3 * sizes[0]]
    assert set(sizes[VARIANTS_MAX - 1 :]) == {sizes[2]}


def test_the_last_token_is_computed_if_generate_did_not(answering: SegmentManager, model: Any) -> None:
    first = answering.link([tokens_of(20)])
    output = generated(model, first, tokens=1)
    before = [layer.clone() for pair in first.cache for layer in pair[:2]]
    assert answering.add_answer(first, output).tokens == 1
    assert first.cache.get_seq_length() == 20
    assert all(torch.equal(a, b) for a, b in zip(before, [x for pair in first.cache for x in pair[:2]], strict=True))


def test_an_answer_ends_before_the_token_that_ends_it() -> None:
    assert answer_tokens([5, 6], [5, 6, 7, 8, END, END], {END}) == [7, 8]
    assert answer_tokens([5, 6], [5, 6, 7, 8], {END}) == [7, 8]
    for output in ([5, 6], [5, 6, END]):
        with pytest.raises(SegmentError, match="the answer has no token"):
            answer_tokens([5, 6], output, {END})
    for output in ([5, 7, 8], [5], []):
        with pytest.raises(SegmentError, match="the output does not begin with the prompt"):
            answer_tokens([5, 6], output, {END})


def test_a_cache_that_generate_has_not_used(answering: SegmentManager, manager: KVCManager) -> None:
    prompt = answering.link([tokens_of(20)])
    output = [*prompt.input_ids[0].tolist(), 5, 6, 7]
    with pytest.raises(SegmentError, match="the cache covers 19 of 23 tokens; wanted is the one that generate has used"):
        answering.add_answer(prompt, output)
    prompt.cache.batch_repeat_interleave(2)
    with pytest.raises(ValueError, match="one prompt"):
        answering.add_answer(prompt, output)


def test_an_answer_that_is_gone_is_computed(answering: SegmentManager, model: Any, store: MemoryStore) -> None:
    first = answering.link([tokens_of(20), QUESTION])
    answer = answering.add_answer(first, generated(model, first))
    key = manifest_key(store, answer.id)
    store.blocks = {key: store.blocks[key]}
    prompt = answering.link([[5], answer, QUESTION], "naive")
    assert prompt.report.linked_tokens == 0
    assert prompt.report.why == f"the sky did not give {answer.tokens} tokens of segments"
    store.blocks = {}
    with pytest.raises(UnknownSegmentError):
        answering.link([[5], answer, QUESTION], "naive")
