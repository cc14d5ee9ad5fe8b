"""The gate and the canaries of a real model in real satellites, as a program uses them."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from skymemory.prompt.manager import KVCManager
from skymemory.segments.controller import Request, full_work
from skymemory.segments.directory import SegmentDirectory
from skymemory.segments.evidence import PromptSize
from skymemory.segments.gate import PROMPTS_MIN, Gate
from skymemory.segments.gate_in_sky import GateInSky
from skymemory.segments.kept_gate import KeptGate
from skymemory.segments.manager import LinkedPrompt, SegmentManager
from skymemory.segments.planner import NOTHING_OPEN, SLOWER, TOO_LARGE, UNMEASURED
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from support.linkable import linkable_llama, prompt_lines
from support.memory_store import MemoryStore
from support.open_gates import opened
from support.segments import BLOCK, tokens_of

pytestmark = pytest.mark.model

BOS = 0
DOCUMENT = "Satellites pass over a place in ten minutes. Each keeps a part of what was said before, and hands it on."
QUESTION = " What does each of them keep?"


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


def near(one: Any, other: Any) -> bool:
    pairs = zip(one, other, strict=True)
    return all(torch.allclose(a, b, atol=1e-4) for (k1, v1, *_), (k2, v2, *_) in pairs for a, b in ((k1, k2), (v1, v2)))


# ---- the gate -----------------------------------------------------------------------------------------------------------


def test_auto_links_what_the_gate_allows_once_it_is_known_to_be_faster(manager: KVCManager, tmp_path: Path) -> None:
    segments = SegmentManager(manager, gate=opened(manager, "lego:2"), folder=tmp_path)
    document = tokens_of(400)
    one = segments.add(document)
    assert segments.link([[5], one, [6]]).report.why not in {NOTHING_OPEN, UNMEASURED}  # prefills were measured first
    # A model that takes a minute a prompt, over links that were never measured
    controller = segments.controller
    request = Request(tokens=402, linked_tokens=0, segments=0)
    for _ in range(20):
        controller.computed(full_work(controller.shape, request, 0, controller.shape.layers), 60.0)
    prompt = segments.link([[5], one, [11]])
    assert (str(prompt.report.strategy), prompt.report.why) == ("lego:2", "")
    assert prompt.report.linked_tokens == one.tokens
    # ... and then over links that take an hour
    for _ in range(20):
        for size in (1000, 70_000):  # small and large loads are known apart
            controller.loaded(size, 3600.0, time.monotonic())
    prompt = segments.link([[5], one, [12]])
    assert (str(prompt.report.strategy), prompt.report.why) == ("exact", SLOWER)


def test_auto_links_no_prompt_that_is_larger_than_those_of_the_check_and_says_so(manager: KVCManager, tmp_path: Path) -> None:
    size = PromptSize(segments=2, segment_tokens=400, tokens=500)
    segments = linking(manager, tmp_path, opened(manager, "naive", size))
    documents = segments.add_all([tokens_of(400), tokens_of(50)[::-1], tokens_of(20), tokens_of(401)])
    one, other, third, long = documents

    def linked(*pieces: Any) -> str:
        make_slow(segments)
        return segments.link(pieces).report.why

    assert linked([5], one, other, [6]) == ""
    for pieces, has in (
        (([5], one, other, third, [6]), "3 segments, 400 tokens in a segment and 472 in all"),
        (([5], long, [6]), "1 segments, 401 tokens in a segment and 403 in all"),
        (([5] * 200, one, [6]), "1 segments, 400 tokens in a segment and 601 in all"),
    ):
        assert linked(*pieces) == f"{TOO_LARGE}: it has {has}; allowed are {size}"


def test_a_gate_that_is_open_for_another_model_opens_nothing(
    manager: KVCManager, make_llama: Callable[..., Any], seed: int, tokenizer: Any, store: SkyStore, tmp_path: Path
) -> None:
    other = KVCManager(make_llama(seed=seed + 1, num_hidden_layers=5), tokenizer, store, codec="raw", block_tokens=BLOCK)
    segments = SegmentManager(other, gate=opened(manager, "naive"), folder=tmp_path)
    one = segments.add(DOCUMENT)
    assert segments.link(["a", one, QUESTION]).report.why == NOTHING_OPEN
    behind = segments.add(DOCUMENT, sinks=4)
    assert segments.link(["a", one, behind, QUESTION]).report.why == NOTHING_OPEN


def test_the_gate_of_the_host_is_the_default_and_a_damaged_record_opens_nothing(manager: KVCManager, tmp_path: Path) -> None:
    kept = KeptGate(lambda: manager.store, manager.tenant_secret, tmp_path)
    kept.gate.join(opened(manager, "lego:2").record(manager.fingerprint().hex(), shared=False))
    kept.keep(manager.fingerprint())
    segments = SegmentManager(manager, folder=tmp_path)
    one = segments.add(tokens_of(400))
    assert segments.link([[5], one, [6]]).report.why not in {NOTHING_OPEN, UNMEASURED}
    # What another program closes is closed with the next prompt
    for verdict in kept.gate.verdicts(manager.fingerprint().hex()):
        kept.gate.drop(verdict.point, "a breach")
    kept.keep(manager.fingerprint())
    assert segments.link([[5], one, [7]]).report.why == NOTHING_OPEN
    [record] = tmp_path.glob("gate-*.json")
    record.write_bytes(b"damaged")
    manager.store.purge([GateInSky(manager.tenant_secret, manager.fingerprint()).key])  # which would mend the file
    why = SegmentManager(manager, folder=tmp_path).link([[5], one, [8]]).report.why
    assert why.startswith(f"{NOTHING_OPEN}: the gate's record {record} cannot be used: evidence is damaged")


def test_a_check_that_ends_in_the_middle_changes_nothing(tokenizer: Any, tmp_path: Path) -> None:
    manager = KVCManager(linkable_llama(), tokenizer, MemoryStore(), block_tokens=BLOCK)
    gate = opened(manager, "naive")
    fingerprint = manager.fingerprint().hex()
    before = gate.record(fingerprint, shared=False)

    def end(done: int, total: int) -> None:
        assert total == PROMPTS_MIN
        if done == 5:
            raise KeyboardInterrupt

    for segments in (SegmentManager(manager, gate=gate), SegmentManager(manager, folder=tmp_path)):
        with pytest.raises(KeyboardInterrupt):
            segments.check(prompt_lines(PROMPTS_MIN), ["naive"], progress=end)
    assert gate.record(fingerprint, shared=False) == before
    assert not list(tmp_path.glob("gate-*.json"))


def test_only_strategies_of_the_grid_are_checked(segments: SegmentManager) -> None:
    for wrong in ("auto", "exact", "lego:3", "fast"):
        with pytest.raises(ValueError, match=f"the strategy '{wrong}' cannot be checked; allowed are naive, lego:2, .*random:30"):
            segments.check(prompt_lines(PROMPTS_MIN), [wrong])


# ---- canaries -----------------------------------------------------------------------------------------------------------


def linking(manager: KVCManager, tmp_path: Path, gate: Gate | None, **more: Any) -> SegmentManager:
    segments = SegmentManager(manager, gate=gate, folder=tmp_path, **more)
    make_slow(segments)
    return segments


def make_slow(segments: SegmentManager) -> None:
    """Have the controller believe that computing takes a minute a prompt, so that all is linked that may be.

    What is linked then teaches it better, so this is wanted again before the next prompt.
    """
    for tokens in [100, 402] * 20:
        request = Request(tokens=tokens, linked_tokens=0, segments=0)
        segments.controller.computed(full_work(segments.controller.shape, request, 0, segments.controller.shape.layers), 60.0)


def test_a_canary_counts_and_becomes_an_exact_prefix(tokenizer: Any, tmp_path: Path) -> None:
    manager = KVCManager(linkable_llama(), tokenizer, MemoryStore(), codec="raw", block_tokens=BLOCK)
    gate = opened(manager, "naive")
    segments = linking(manager, tmp_path, gate, is_canary=lambda _: True)
    one = segments.add(tokens_of(100))
    prompt = segments.link([[5, 6], one, [7, 8]])
    assert str(prompt.report.strategy) == "naive"
    answer(manager.engine.model, prompt)  # which makes the cache longer
    assert segments.check_canaries() == 1
    [verdict] = gate.verdicts(manager.fingerprint().hex())
    canaries = verdict.counts.canaries
    assert (canaries.prompts, canaries.loss) == (1, 0)
    assert canaries.kl < 0.01
    again = segments.link([[5, 6], one, [7, 8]])
    assert again.report.prefix_tokens == 103 // BLOCK * BLOCK
    assert near(manager.get_cache(prompt.input_ids), manager.engine.prefill(prompt.input_ids[0, : again.report.prefix_tokens]))


def test_only_what_was_linked_whole_by_the_gate_is_a_canary(tokenizer: Any, tmp_path: Path) -> None:
    store = MemoryStore()
    manager = KVCManager(linkable_llama(), tokenizer, store, codec="raw", block_tokens=BLOCK)
    requests: list[bytes] = []
    segments = linking(manager, tmp_path, opened(manager, "naive"), is_canary=lambda request: bool(requests.append(request)))
    one = segments.add(tokens_of(100))
    segments.link([[5], one, [6]], "naive")  # forced
    segments.link([[5], one, [6]], "exact")
    segments.link([one, [6]])  # exact where it stands
    segments.link([[5, 6, 7]])
    assert not requests
    for _ in range(2):
        make_slow(segments)
        segments.link([[5], one, [6]])
    assert len(set(requests)) == 2  # a number of its own
    directory = SegmentDirectory(store, folder=tmp_path)
    del store.blocks[directory.keys(directory.get(one.id).manifest).of_group(0)[1]]
    make_slow(segments)
    assert segments.link([[5], one, [9]]).report.linked_tokens == 100 - BLOCK
    assert len(requests) == 2
    assert segments.check_canaries() == 0


def test_canaries_close_a_point_that_fails_for_all_programs(model: Any, tokenizer: Any, tmp_path: Path) -> None:
    store = MemoryStore()
    manager = KVCManager(model, tokenizer, store, codec="raw", block_tokens=BLOCK)
    fingerprint = manager.fingerprint()
    kept = KeptGate(lambda: store, store.tenant_secret, tmp_path)
    kept.gate.join(opened(manager, "naive").record(fingerprint.hex(), shared=False))
    kept.keep(fingerprint)
    segments = linking(manager, tmp_path, None, is_canary=lambda _: True)
    one = segments.add(tokens_of(200))
    strategies = []
    for number in range(12):
        make_slow(segments)
        strategies.append(str(segments.link([tokens_of(30, number), one, [11 + number]]).report.strategy))
        segments.check_canaries()
    assert strategies[:3] == ["naive"] * 3
    closed = [verdict for verdict in segments.gate.verdicts(fingerprint.hex()) if not verdict.open]
    assert closed
    assert "answers" in closed[0].why or "KL" in closed[0].why
    kept.look(fingerprint)
    assert [verdict for verdict in kept.gate.verdicts(fingerprint.hex()) if not verdict.open] == closed
    other_host = KeptGate(lambda: store, store.tenant_secret, tmp_path / "other")
    other_host.take(fingerprint)
    assert not other_host.gate.is_open(closed[0].point)


def test_a_model_that_was_changed_since_tells_nothing(tokenizer: Any, tmp_path: Path) -> None:
    model = linkable_llama()
    manager = KVCManager(model, tokenizer, MemoryStore(), codec="raw", block_tokens=BLOCK)
    gate = opened(manager, "naive")
    fingerprint = manager.fingerprint().hex()
    segments = linking(manager, tmp_path, gate, is_canary=lambda _: True)
    one = segments.add(tokens_of(100))
    segments.link([[5], one, [6]])
    with torch.no_grad():
        model.lm_head.weight.mul_(2)
    assert segments.check_canaries() == 1
    [verdict] = gate.verdicts(fingerprint)
    assert verdict.counts.canaries.prompts == 0
