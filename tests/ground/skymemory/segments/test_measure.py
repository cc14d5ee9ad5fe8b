import math
from copy import deepcopy

import pytest
import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

from skymemory.prompt.codecs import get_codec
from skymemory.segments.evidence import PromptSize
from skymemory.segments.gate import Gate, Point
from skymemory.segments.measure import ANSWER_TOKENS, Answer, compare, full_answer, shuffled, through_codec

pytestmark = pytest.mark.model

PROMPT = [(7 * number + number * number) % 50 + 3 for number in range(40)]


@pytest.fixture(scope="module")
def model():
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=3,
        num_attention_heads=2,
        num_key_value_heads=1,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=None,
    )
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # threads wait long for each other on a busy machine
    torch.manual_seed(3)
    model = LlamaForCausalLM(config).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    yield model
    torch.set_num_threads(threads)


@torch.no_grad()
def exact_cache(model, tokens=PROMPT) -> DynamicCache:
    cache = DynamicCache(config=model.config)
    model(input_ids=torch.tensor([tokens[:-1]]), past_key_values=cache)
    return cache


def moved(model, factor: float) -> DynamicCache:
    cache = exact_cache(model)
    for layer in cache.layers:
        layer.values[:, :, 10:30] *= 1 + factor
    return cache


def test_the_answer_is_that_of_generate_and_the_cache_stays_as_it_was(model) -> None:
    cache = exact_cache(model)
    before = deepcopy([(layer.keys, layer.values) for layer in cache.layers])
    answer = full_answer(model, PROMPT, cache)
    wanted = model.generate(torch.tensor([PROMPT]), max_new_tokens=ANSWER_TOKENS, do_sample=False)[0, len(PROMPT) :]
    assert list(answer.tokens) == wanted.tolist()
    assert cache.get_seq_length() == len(PROMPT) - 1
    assert all(
        torch.equal(layer.keys, keys) and torch.equal(layer.values, values)
        for layer, (keys, values) in zip(cache.layers, before, strict=True)
    )


def test_the_same_cache_loses_nothing(model) -> None:
    answer = full_answer(model, PROMPT, exact_cache(model))
    again = exact_cache(model)
    sample = compare(model, PROMPT, answer, again)
    assert sample.kl == pytest.approx(0, abs=1e-9)
    assert sample.agreement == 1
    assert again.get_seq_length() == len(PROMPT) - 1


def test_another_cache_loses_what_its_probabilities_say(model) -> None:
    answer = full_answer(model, PROMPT, exact_cache(model))
    sample = compare(model, PROMPT, answer, moved(model, 3.0))
    # All at once and by hand: the whole prompt with its answer, once with each cache
    rows = torch.tensor([[PROMPT[-1], *answer.tokens[:-1]]])
    with torch.no_grad():
        full = model(input_ids=torch.tensor([PROMPT + list(answer.tokens[:-1])])).logits[0, len(PROMPT) - 1 :].softmax(1)
        linked = model(input_ids=rows, past_key_values=moved(model, 3.0)).logits[0].softmax(1)
    assert sample.kl == pytest.approx(float((full * (full / linked).log()).sum(1).mean()), rel=1e-3)
    assert sample.agreement == pytest.approx(float((full.argmax(1) == linked.argmax(1)).float().mean()))
    assert sample.kl > 0.001
    assert compare(model, PROMPT, answer, moved(model, 0.1)).kl < sample.kl


def test_the_answer_ends_where_the_model_ends_it(model) -> None:
    answer = full_answer(model, PROMPT, exact_cache(model))
    ended = deepcopy(model)
    ended.generation_config.eos_token_id = [60, answer.tokens[4]]
    short = full_answer(ended, PROMPT, exact_cache(model))
    assert short.tokens == answer.tokens[: answer.tokens.index(answer.tokens[4]) + 1]
    assert short.log_probabilities.shape == (len(short.tokens), 64)
    assert len(full_answer(model, PROMPT, exact_cache(model), tokens=3).tokens) == 3


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_values_that_are_no_numbers_are_no_agreement(model, bad) -> None:
    answer = full_answer(model, PROMPT, exact_cache(model))
    cache = exact_cache(model)
    cache.layers[1].values[:, :, 3] = bad
    sample = compare(model, PROMPT, answer, cache)
    assert math.isnan(sample.kl)
    assert sample.agreement == 0
    gate, point = Gate("a"), Point("ab", "raw", "naive", 0)
    gate.checked(point, sample, PromptSize(1, len(PROMPT), len(PROMPT)))
    assert not gate.can_open(point, 100_000)


def test_a_full_prefill_that_gives_no_numbers_proves_nothing(model) -> None:
    answer = full_answer(model, PROMPT, exact_cache(model))
    broken = Answer(answer.tokens, answer.log_probabilities.clone().fill_(math.nan))
    assert math.isnan(compare(model, PROMPT, broken, exact_cache(model)).kl)


def test_a_token_that_is_never_said_adds_nothing(model) -> None:
    answer = full_answer(model, PROMPT, exact_cache(model))
    never = answer.log_probabilities.clone()
    never[:, 5] = -math.inf
    sample = compare(model, PROMPT, Answer(answer.tokens, never.log_softmax(1)), exact_cache(model))
    assert math.isfinite(sample.kl)


def test_a_cache_of_another_length_is_refused(model) -> None:
    answer = full_answer(model, PROMPT, exact_cache(model))
    with pytest.raises(ValueError, match="covers 20 of 40 tokens"):
        compare(model, PROMPT, answer, exact_cache(model, PROMPT[:21]))


def test_shuffling_deals_out_keys_and_values_in_different_ways() -> None:
    segment = torch.arange(2 * 2 * 3 * 50 * 4, dtype=torch.float32).view(2, 2, 3, 50, 4)
    wrong = shuffled(segment, 5)
    orders = set()
    for layer in range(2):
        for kind in range(2):
            order = [int((segment[layer, kind, 0] == row).all(1).nonzero()) for row in wrong[layer, kind, 0]]
            assert sorted(order) == list(range(50))
            assert torch.equal(wrong[layer, kind], segment[layer, kind][:, order])
            orders.add(tuple(order))
    assert len(orders) == 4
    assert torch.equal(wrong, shuffled(segment, 5))
    assert not torch.equal(wrong, shuffled(segment, 6))


@pytest.mark.parametrize("tokens", [1, 16, 50])
def test_segments_go_through_a_codec_block_by_block(tokens) -> None:
    torch.manual_seed(1)
    segment = torch.randn(3, 2, 2, tokens, 8)
    assert torch.equal(through_codec(segment, get_codec("raw"), 16), segment)
    coarse = through_codec(segment, get_codec("int8"), 16)
    assert coarse.shape == segment.shape
    assert 0 < (coarse - segment).abs().max() < 0.05
    first = through_codec(segment[:, :, :, :16].contiguous(), get_codec("int8"), 16)
    assert torch.equal(coarse[:, :, :, :16], first)
