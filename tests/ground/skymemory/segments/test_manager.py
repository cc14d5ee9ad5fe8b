"""Segments of a real model in real satellites, as a program uses them."""

import copy
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import torch

from skymemory.prompt.huggingface import LinkedCache, UnsupportedModelError
from skymemory.prompt.manager import KVCManager
from skymemory.segments.directory import SegmentDirectory
from skymemory.segments.errors import ExpiredSegmentError, OtherModelError, SegmentError, UnknownSegmentError
from skymemory.segments.layout import SegmentId, SegmentOrTokens
from skymemory.segments.manager import LinkedPrompt, SegmentManager
from skymemory.segments.planner import NOTHING_OPEN
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from support.memory_store import MemoryStore
from support.segments import BLOCK, tokens_of
from support.waiting import PATIENCE_S

pytestmark = pytest.mark.model

BOS = 0
DOCUMENT = "Satellites pass over a place in ten minutes. Each keeps a part of what was said before, and hands it on."
OTHER = "A gateway sees five planes at a time. Blocks are cut into chunks, and each chunk has a server of its own."
QUESTION = " What does each of them keep?"
FORCED = ["naive", "lego:2", "blend:50", "random:20"]


@pytest.fixture
def model(make_llama: Callable[..., Any], seed: int) -> Any:
    """Of other weights for every test, and of enough layers to load some."""
    return make_llama(seed=seed, num_hidden_layers=5, bos_token_id=BOS)


@pytest.fixture
def store(full_sky: LocalConstellation) -> Iterator[SkyStore]:
    with SkyStore(full_sky.constellation) as store:
        yield store


@pytest.fixture
def manager(model: Any, tokenizer: Any, store: SkyStore) -> KVCManager:
    return KVCManager(model, tokenizer, store, codec="raw", block_tokens=BLOCK)


@pytest.fixture
def segments(manager: KVCManager, tmp_path: Path) -> SegmentManager:
    return SegmentManager(manager, folder=tmp_path)


def answer(model: Any, prompt: LinkedPrompt, tokens: int = 8) -> list[int]:
    ids = prompt.input_ids
    output = model.generate(
        ids, past_key_values=prompt.cache, max_new_tokens=tokens, do_sample=False, attention_mask=torch.ones_like(ids)
    )
    return [int(token) for token in output[0, ids.shape[1] :]]


def full_answer(model: Any, ids: torch.Tensor, tokens: int = 8) -> list[int]:
    output = model.generate(ids, max_new_tokens=tokens, do_sample=False, attention_mask=torch.ones_like(ids))
    return [int(token) for token in output[0, ids.shape[1] :]]


def near(one: Any, other: Any) -> bool:
    pairs = zip(one, other, strict=True)
    return all(torch.allclose(a, b, atol=1e-4) for (k1, v1, *_), (k2, v2, *_) in pairs for a, b in ((k1, k2), (v1, v2)))


# ---- what a program does ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", FORCED)
def test_segments_are_linked_wherever_they_stand(segments: SegmentManager, tokenizer: Any, model: Any, strategy: str) -> None:
    one, other = segments.add(DOCUMENT), segments.add(OTHER)
    texts = ["Read this: ", " And this: ", QUESTION]
    prompt = segments.link([texts[0], other, texts[1], one, texts[2]], strategy)
    pieces = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in (texts[0], OTHER, texts[1], DOCUMENT, texts[2])]
    assert prompt.input_ids.tolist() == [[token for piece in pieces for token in piece]]
    assert prompt.cache.get_seq_length() == prompt.input_ids.shape[1] - 1
    assert prompt.report.linked_tokens == one.tokens + other.tokens
    assert prompt.report.recomputed_tokens < prompt.report.linked_tokens
    assert prompt.report.exact_tokens == len(pieces[0])
    assert not prompt.report.why
    assert len(answer(model, prompt)) == 8


def test_exact_and_auto_compute_what_is_not_exact(segments: SegmentManager, model: Any) -> None:
    one = segments.add(DOCUMENT)
    for strategy, why in (("exact", ""), ("auto", NOTHING_OPEN)):
        prompt = segments.link(["Read this: ", one, QUESTION], strategy)
        assert (str(prompt.report.strategy), prompt.report.why, prompt.report.linked_tokens) == ("exact", why, 0)
        assert not isinstance(prompt.cache, LinkedCache)
        assert answer(model, prompt) == full_answer(model, prompt.input_ids)
    assert segments.link(["no segment at all"]).report.why == ""


def test_a_segment_at_the_beginning_is_exact(segments: SegmentManager, model: Any) -> None:
    one = segments.add(DOCUMENT)
    for strategy in ("exact", "naive", "auto"):
        prompt = segments.link([one, QUESTION], strategy)
        assert prompt.report.linked_tokens == one.tokens
        assert prompt.report.exact_tokens == prompt.input_ids.shape[1] - 1
        assert not isinstance(prompt.cache, LinkedCache)
        assert answer(model, prompt) == full_answer(model, prompt.input_ids)


def test_an_exact_prefix_comes_first(segments: SegmentManager, manager: KVCManager) -> None:
    one = segments.add(DOCUMENT)
    begin = tokens_of(2 * BLOCK)
    manager.add_blocks(begin)
    prompt = segments.link([begin, QUESTION, one, QUESTION], "naive")
    assert prompt.report.prefix_tokens == 2 * BLOCK
    assert prompt.report.linked_tokens == one.tokens
    manager.add_blocks(prompt.input_ids)
    again = segments.link([begin, QUESTION, one, QUESTION], "naive")
    assert again.report.linked_tokens < one.tokens  # a part of the segment or all of it has become exact
    assert again.report.prefix_tokens == prompt.input_ids.shape[1] // BLOCK * BLOCK


def test_a_prompt_may_end_with_a_segment(segments: SegmentManager, model: Any) -> None:
    one = segments.add(DOCUMENT)
    prompt = segments.link(["Read: ", one], "naive")
    assert prompt.report.linked_tokens == one.tokens - 1
    assert len(answer(model, prompt)) == 8


def test_the_same_segment_twice(segments: SegmentManager) -> None:
    one = segments.add(DOCUMENT)
    prompt = segments.link(["Twice: ", one, one, QUESTION], "naive")
    assert prompt.report.linked_tokens == 2 * one.tokens


def test_a_segment_whose_tokens_are_at_hand_may_be_gone(segments: SegmentManager) -> None:
    one = segments.add(DOCUMENT)
    tokens = segments.lay_out([one]).tokens
    unknown = one.id[:-4] + "0000"
    there, gone = SegmentOrTokens(one.id, tokens), SegmentOrTokens(unknown, tokens)
    laid = segments.lay_out([gone, there])
    assert laid.tokens == 2 * tokens
    assert [(placed.id, placed.start) for placed in laid.placed] == [(one.id, len(tokens))]
    linked = segments.link([gone, there, QUESTION], "naive")
    assert (linked.report.linked_tokens, linked.report.why) == (len(tokens), "")
    with pytest.raises(UnknownSegmentError):
        segments.lay_out([there, SegmentId(unknown)])


def test_only_a_text_that_comes_first_gets_what_the_tokenizer_puts_in_front(
    model: Any, store: SkyStore, tmp_path: Path, bos_tokenizer: Any
) -> None:
    segments = SegmentManager(KVCManager(model, bos_tokenizer, store, codec="raw", block_tokens=BLOCK), folder=tmp_path)
    one = segments.add("A document")
    bare = bos_tokenizer("A document", add_special_tokens=False)["input_ids"]
    assert bos_tokenizer("A document")["input_ids"] == [BOS, *bare, 1]
    assert one.tokens == len(bare)
    for pieces, wanted in (
        (["A document", "A document"], [BOS, *bare, *bare]),
        (["", one], [BOS, *bare]),
        ([one, "A document"], [*bare, *bare]),
        ([[5, 6], "A document"], [5, 6, *bare]),
    ):
        assert segments.link(pieces, "exact").input_ids.tolist() == [wanted]  # type: ignore[arg-type]  # lists of several kinds


@pytest.fixture
def bos_tokenizer() -> Any:
    """The demo's tokenizer, which puts BOS in front and EOS behind."""
    from tokenizers.processors import TemplateProcessing

    from skymemory.demo.model import demo_tokenizer

    tokenizer: Any = demo_tokenizer()
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    return tokenizer


def test_segments_are_listed_found_by_id_and_expire(
    segments: SegmentManager, manager: KVCManager, store: SkyStore, tmp_path: Path
) -> None:
    one = segments.add(DOCUMENT, ttl_s=3600, display_name="the document")
    assert one.tokens > BLOCK
    assert one.size_bytes > 0
    assert one.expires_unix_ms > 0
    assert [known.id for known in segments.listed()] == [one.id]
    other_host = SegmentManager(manager, folder=tmp_path / "other")
    assert not other_host.listed()
    assert other_host.get(one.id) == one
    assert segments.add(DOCUMENT, ttl_s=60).display_name == "the document"
    changed = segments.update(one.id, ttl_s=math.inf, display_name="for ever")
    assert (changed.expires_unix_ms, changed.display_name) == (0, "for ever")
    assert other_host.get(one.id) == changed
    assert segments.expire(one.id)
    assert not segments.listed()
    with pytest.raises(UnknownSegmentError, match=f"the sky has no segment {one.id}"):
        segments.link(["Read: ", one, QUESTION], "naive")
    with SkyStore(store.constellation) as replaced:
        manager.use(replaced)
        assert segments.add(DOCUMENT).id == one.id  # in the new store


def test_segments_that_are_expected(segments: SegmentManager) -> None:
    one, other = segments.add(DOCUMENT), segments.add(tokens_of(BLOCK))
    soon = datetime.fromtimestamp(time.time() + 60, tz=UTC)
    reports = segments.expect([one, other.id, one.id], soon)
    assert (
        [report.placed for report in reports]
        == [report.blocks for report in reports]
        == [-(-one.tokens // BLOCK), 1, reports[0].blocks]
    )
    assert segments.expect([], soon.timestamp()) == []
    with pytest.raises(ValueError, match="is past"):
        segments.expect([one], datetime(2020, 1, 1))
    with pytest.raises(UnknownSegmentError):
        segments.expect([one, f"seg-{0:032}"], soon)


def test_several_segments_are_added_in_one_call_in_their_order(manager: KVCManager, tmp_path: Path) -> None:
    segments = SegmentManager(manager, folder=tmp_path)
    contents = [tokens_of(40), tokens_of(70)[::-1], tokens_of(40), tokens_of(9)]
    told: list[tuple[int, int]] = []
    added = segments.add_all(contents, ttl_s=60, progress=lambda *done: told.append(done))
    assert [one.tokens for one in added] == [40, 70, 40, 9]
    assert added[0].id == added[2].id
    assert told == [(1, 3), (2, 3), (3, 3)]
    alone = [SegmentManager(manager, folder=tmp_path / "other").add(content) for content in contents]
    assert [one.id for one in alone] == [one.id for one in added]
    assert [one.size_bytes for one in alone] == [one.size_bytes for one in added]
    assert segments.add_all([]) == []
    with pytest.raises(SegmentError, match="tokens"):
        segments.add_all([tokens_of(5), []])


# ---- the exact key space ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", FORCED)
def test_nothing_approximate_is_found_under_an_exact_key(
    segments: SegmentManager, manager: KVCManager, model: Any, strategy: str
) -> None:
    one = segments.add(DOCUMENT)
    begin = tokens_of(BLOCK + 3)
    prompt = segments.link([begin, one, QUESTION], strategy)
    exact = prompt.report.exact_tokens
    assert exact == BLOCK + 3
    tokens = prompt.input_ids[0].tolist() + answer(model, prompt, 2 * BLOCK)
    assert prompt.cache.get_seq_length() >= len(tokens) - 1  # generate has made it longer
    report = manager.add_blocks(tokens, prompt.cache)
    assert (report.blocks, report.stored, report.failed) == (len(tokens) // BLOCK, 1, 0)
    found = manager.get_cache(tokens)
    assert found.get_seq_length() == BLOCK
    assert near(found, manager.engine.prefill(tokens[:BLOCK]))
    # The model's own go there
    assert manager.add_blocks(tokens).stored == len(tokens) // BLOCK - 1
    whole = manager.get_cache(tokens)
    assert near(whole, manager.engine.prefill(tokens[: whole.get_seq_length()]))


def test_all_of_an_exact_cache_may_be_stored(segments: SegmentManager, manager: KVCManager, model: Any) -> None:
    one = segments.add(DOCUMENT)
    prompt = segments.link([one, QUESTION], "naive")
    tokens = prompt.input_ids[0].tolist() + answer(model, prompt, 2 * BLOCK)
    assert manager.add_blocks(tokens, prompt.cache).stored == (len(tokens) - 1) // BLOCK
    found = manager.get_cache(tokens)
    assert near(found, manager.engine.prefill(tokens[: found.get_seq_length()]))


# ---- what goes wrong ----------------------------------------------------------------------------------------------------


def test_what_is_no_prompt(segments: SegmentManager) -> None:
    for empty in ([], [""], ["", ""], [[]]):
        with pytest.raises(SegmentError, match="the prompt has no token"):
            segments.link(empty)
    for wrong in ("text", {"input_ids": [1]}, torch.tensor([1, 2])):
        with pytest.raises(TypeError, match="a prompt is a list of texts, token ids and segments; not"):
            segments.link(wrong)  # type: ignore[arg-type]
    for inside in ([5, 6], ["text", None]):
        with pytest.raises(TypeError, match=r"a prompt is a list of texts, token ids and segments; piece [12] is"):
            segments.link(inside)  # type: ignore[arg-type]


def test_strategies_that_cannot_be(segments: SegmentManager) -> None:
    one = segments.add(DOCUMENT)
    with pytest.raises(ValueError, match="the strategy 'fast' is not one of exact, naive, lego:"):
        segments.link(["a", one], "fast")
    with pytest.raises(ValueError, match="was computed behind 0 sinks; lego0 needs segments that were computed behind 4"):
        segments.link(["a", one], "lego0")
    with pytest.raises(ValueError, match="the switch layer is 9; allowed for naive are 0 to 5"):
        segments.link(["a", one], "naive", switch_layer=9)
    with pytest.raises(SegmentError, match="the segment has -1 sinks"):
        segments.add(DOCUMENT, sinks=-1)
    behind = segments.add(DOCUMENT, sinks=4)
    assert segments.link(["a", behind, QUESTION], "lego0").report.linked_tokens == behind.tokens


def test_a_model_without_bos_has_no_sinks(make_llama: Callable[..., Any], seed: int, store: SkyStore, tmp_path: Path) -> None:
    from skymemory.demo.model import demo_tokenizer

    tokenizer = demo_tokenizer()
    tokenizer.bos_token = None
    model = make_llama(seed=seed, bos_token_id=None)
    segments = SegmentManager(KVCManager(model, tokenizer, store, block_tokens=BLOCK), folder=tmp_path)
    with pytest.raises(SegmentError, match="needs a model with a BOS token"):
        segments.add(DOCUMENT, sinks=4)


def test_tokens_that_the_model_does_not_have(segments: SegmentManager) -> None:
    for call in (lambda: segments.add([5, 9999]), lambda: segments.link(["a", [5, 9999]])):
        with pytest.raises(ValueError, match="token id 9999 at position 1; the model has 0 to"):
            call()
    with pytest.raises(SegmentError, match="the segment has 0 tokens"):
        segments.add("")


def test_a_segment_that_has_expired(segments: SegmentManager) -> None:
    one = segments.add(DOCUMENT, ttl_s=0.01)
    end_s = time.monotonic() + PATIENCE_S
    while segments.listed() and time.monotonic() < end_s:
        time.sleep(0.01)
    for call in (lambda: segments.link(["a", one], "naive"), lambda: segments.get(one.id)):
        with pytest.raises(ExpiredSegmentError, match=f"segment {one.id} expired at"):
            call()


def test_a_segment_of_another_model(
    segments: SegmentManager, make_llama: Callable[..., Any], seed: int, tokenizer: Any, store: SkyStore, tmp_path: Path
) -> None:
    one = segments.add(DOCUMENT)
    manager = KVCManager(make_llama(seed=seed + 1), tokenizer, store, codec="raw", block_tokens=BLOCK)
    other = SegmentManager(manager, folder=tmp_path)
    with pytest.raises(OtherModelError, match=f"segment {one.id} cannot be used here: its model or tokenizer is"):
        other.link(["a", one], "naive")
    with pytest.raises(OtherModelError):
        other.get(one.id)


def test_a_model_whose_segments_cannot_be_linked(
    make_llama: Callable[..., Any], seed: int, tokenizer: Any, store: SkyStore, tmp_path: Path
) -> None:
    model = make_llama(seed=seed, num_hidden_layers=1)
    manager = KVCManager(model, tokenizer, store, codec="raw", block_tokens=BLOCK)
    segments = SegmentManager(manager, folder=tmp_path)
    assert segments.why_not
    for call in (lambda: segments.add(DOCUMENT), lambda: segments.link(["a", QUESTION], "naive")):
        with pytest.raises(UnsupportedModelError) as caught:
            call()
        assert str(caught.value) == segments.why_not
    manager.add_blocks(tokens_of(BLOCK))
    for strategy in ("exact", "auto"):
        prompt = segments.link([tokens_of(BLOCK), QUESTION], strategy)
        assert (prompt.report.prefix_tokens, prompt.report.why) == (BLOCK, segments.why_not)
        assert answer(model, prompt) == full_answer(model, prompt.input_ids)


def test_blocks_that_are_gone_are_computed(model: Any, tokenizer: Any, tmp_path: Path) -> None:
    store = MemoryStore()
    segments = SegmentManager(KVCManager(model, tokenizer, store, codec="raw", block_tokens=BLOCK), folder=tmp_path)
    tokens = tokens_of(3 * BLOCK + 5)
    one = segments.add(tokens)
    directory = SegmentDirectory(store, folder=tmp_path)
    keys = directory.keys(directory.get(one.id).manifest).of_group(1)
    del store.blocks[keys[1]]  # of the second block, one group of layers
    prompt = segments.link([[5], one, [6]], "naive")
    assert prompt.report.linked_tokens == 2 * BLOCK + 5
    assert prompt.report.why == f"the sky did not give {BLOCK} tokens of segments"
    store.blocks |= dict.fromkeys(keys, b"damaged")
    prompt = segments.link([[5], one, [7]], "naive")
    assert prompt.report.linked_tokens == 0
    assert prompt.report.why
    assert answer(model, prompt) == full_answer(model, prompt.input_ids)


def test_a_segment_that_lost_bits_is_exact_nowhere(model: Any, tokenizer: Any, tmp_path: Path) -> None:
    store = MemoryStore()
    manager = KVCManager(model, tokenizer, store, codec="int8", block_tokens=BLOCK)
    segments = SegmentManager(manager, folder=tmp_path)
    one = segments.add(tokens_of(3 * BLOCK))
    prompt = segments.link([one, QUESTION], "naive")
    assert (prompt.report.linked_tokens, prompt.report.exact_tokens) == (one.tokens, 0)
    assert manager.add_blocks(prompt.input_ids, copy.deepcopy(prompt.cache)).stored == 0
    assert segments.link([one, QUESTION], "exact").report.linked_tokens == 0


@pytest.mark.parametrize("strategy", ["auto", "naive", "blend:15"])
def test_a_silent_sky_changes_no_token(
    start_sky: Callable[..., LocalConstellation],
    stopped: Callable[..., AbstractContextManager[None]],
    model: Any,
    tokenizer: Any,
    tmp_path: Path,
    strategy: str,
) -> None:
    sky = start_sky(cache={"deadline_ms": 500})
    with SkyStore(sky.constellation) as store:
        segments = SegmentManager(KVCManager(model, tokenizer, store, codec="raw", block_tokens=BLOCK), folder=tmp_path)
        one = segments.add(DOCUMENT)
        with stopped(sky):
            prompt = segments.link(["Read: ", one, QUESTION], strategy)
    assert prompt.report.linked_tokens == 0
    assert prompt.report.why
    assert not isinstance(prompt.cache, LinkedCache)
    assert answer(model, prompt) == full_answer(model, prompt.input_ids)
