"""Prompts that are computed while the sky is asked."""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import torch

from skymemory.prompt.huggingface import LinkedCache
from skymemory.prompt.manager import KVCManager
from skymemory.segments.cache_maker import TOO_LATE
from skymemory.segments.controller import Request, full_work
from skymemory.segments.errors import CancelledLinkError, UnknownSegmentError
from skymemory.segments.gate import Gate
from skymemory.segments.manager import LinkedPrompt, SegmentManager
from skymemory.segments.passages import Passage
from skymemory.segments.planner import NOTHING_OPEN
from skymemory.store.results import CancelledLookupError, ChainResult, FindResult, GetResult
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from support.memory_store import MemoryStore
from support.open_gates import opened
from support.segments import BLOCK, tokens_of
from support.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.model

LAYERS = 5
DOCUMENT = tokens_of(100)
BEGIN, END = [5, 6, 7], [8, 9]


class SlowSky(MemoryStore):
    """A store that answers when a test lets it, and knows nothing by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = Event()
        self.answers.set()
        self.withdrawn = 0
        """Look-ups for which nobody waited any more when it was time to ask."""

    def known(self, keys: Sequence[bytes]) -> int:
        return 0

    def find(self, keys: Sequence[bytes], **words: Any) -> list[FindResult]:
        assert self.answers.wait(PATIENCE_S)
        return super().find(keys, **words)

    def find_longest(self, keys: Sequence[bytes], **words: Any) -> ChainResult:
        assert self.answers.wait(PATIENCE_S)
        try:
            return super().find_longest(keys, **words)
        except CancelledLookupError:
            self.withdrawn += 1
            raise

    def get(self, entries: Any, **words: Any) -> list[GetResult]:
        assert self.answers.wait(PATIENCE_S)
        return super().get(entries, **words)


@pytest.fixture
def sky() -> Iterator[SlowSky]:
    store = SlowSky()
    yield store
    store.answers.set()


@pytest.fixture
def manager(make_llama: Callable[..., Any], seed: int, tokenizer: Any, sky: SlowSky) -> KVCManager:
    model = make_llama(seed=seed, num_hidden_layers=LAYERS, vocab_size=1000)
    return KVCManager(model, tokenizer, sky, codec="raw", block_tokens=BLOCK)


@pytest.fixture
def segments(manager: KVCManager, tmp_path: Path) -> SegmentManager:
    return SegmentManager(manager, gate=Gate("here"), folder=tmp_path)


def teach(segments: SegmentManager, full_s: float) -> None:
    """Have the controller believe that so many seconds are what a prompt of 105 tokens takes."""
    controller = segments.controller
    request = Request(tokens=105, linked_tokens=0, segments=0)
    for _ in range(20):
        controller.computed(full_work(controller.shape, request, 0, LAYERS), full_s)


def is_full_prefill(manager: KVCManager, prompt: LinkedPrompt) -> bool:
    """Return True if a cache is that of a full prefill, bit by bit."""
    whole = manager.engine.prefill(prompt.input_ids[0, :-1].tolist())
    pairs = zip(prompt.cache, whole, strict=True)
    same = all(torch.equal(a, b) for (k1, v1, *_), (k2, v2, *_) in pairs for a, b in ((k1, k2), (v1, v2)))
    return same and not isinstance(prompt.cache, LinkedCache)


# ---- nothing is waited for ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["auto", "exact"])
def test_a_prompt_of_which_nothing_is_linked_waits_for_no_answer(
    segments: SegmentManager, manager: KVCManager, sky: SlowSky, strategy: str
) -> None:
    one = segments.add(DOCUMENT)
    sky.answers.clear()
    for pieces in ([BEGIN, one, END], ["A text.", one, END], [BEGIN, Passage(DOCUMENT), END], [DOCUMENT, END]):
        prompt = segments.link(pieces, strategy)  # type: ignore[arg-type]  # lists of several kinds
        assert is_full_prefill(manager, prompt)
        report = prompt.report
        assert (report.ahead_layers, report.prefix_tokens, report.exact_tokens) == (LAYERS, 0, prompt.input_ids.shape[1] - 1)
        assert report.why == (NOTHING_OPEN if strategy == "auto" and one in pieces else "")


def test_a_model_that_computes_faster_than_it_links_waits_for_no_answer(
    manager: KVCManager, sky: SlowSky, tmp_path: Path
) -> None:
    segments = SegmentManager(manager, gate=opened(manager, "naive"), folder=tmp_path)
    one = segments.add(DOCUMENT)
    teach(segments, 1e-3)
    for _ in range(20):
        segments.controller.loaded(1000, 3600.0, time.monotonic())
    sky.answers.clear()
    assert is_full_prefill(manager, segments.link([BEGIN, one, END]))


def test_what_linking_would_save_is_waited_and_no_more(manager: KVCManager, sky: SlowSky, tmp_path: Path) -> None:
    segments = SegmentManager(manager, gate=opened(manager, "naive"), folder=tmp_path)
    one = segments.add(DOCUMENT)
    teach(segments, 0.3)
    sky.answers.clear()
    prompt = segments.link([BEGIN, one, END])
    assert is_full_prefill(manager, prompt)
    assert prompt.report.why == TOO_LATE
    sky.answers.set()
    teach(segments, 60.0)
    linked = segments.link([BEGIN, one, END])
    assert (str(linked.report.strategy), linked.report.why) == ("naive", "")


def test_a_round_trip_is_longer_than_a_prompt(
    start_sky: Callable[..., LocalConstellation], manager: KVCManager, tmp_path: Path
) -> None:
    """Over real links with a delay: what is computed in full takes no round trip, and what is linked takes some."""
    round_trip_s = 0.4
    local = start_sky(
        constellation={"planes": 1, "slots": 1},
        cache={"servers": 1, "parity": 0, "centre": [1, 1], "window": "logical", "uplink": "window", "deadline_ms": 60_000},
        links={"delay_us": round(round_trip_s * 1e6 / 2)},
    )
    with SkyStore(local.constellation) as store:
        manager.use(store)
        segments = SegmentManager(manager, gate=Gate("here"), folder=tmp_path)
        one = segments.add(DOCUMENT)
        prompt = segments.link([BEGIN, one, END])
        assert is_full_prefill(manager, prompt)
        assert prompt.report.total_s < round_trip_s
        linked = segments.link([BEGIN, one, END], "naive")
        assert linked.report.linked_tokens == len(DOCUMENT)
        assert linked.report.total_s >= 2 * round_trip_s  # the prefix, then the blocks


# ---- what is found is used ----------------------------------------------------------------------------------------------


def test_a_prefix_that_is_found_meanwhile_is_used(segments: SegmentManager, manager: KVCManager, sky: SlowSky) -> None:
    one = segments.add(DOCUMENT)
    tokens = [*BEGIN, *DOCUMENT, *END]
    manager.add_blocks(tokens)
    sky.answers.clear()
    asked = 0

    def before_each_layer() -> bool:
        nonlocal asked
        asked += 1
        if asked == 3:  # the model is slow
            sky.answers.set()
            wait_until(lambda: manager.statistics.prompts > 0)
            time.sleep(0.1)
        return False

    prompt = segments.link([BEGIN, one, END], cancelled=before_each_layer)
    report = prompt.report
    assert report.prefix_tokens == (len(tokens) - 1) // BLOCK * BLOCK
    assert 2 <= report.ahead_layers < LAYERS
    behind = len(tokens) - 1 - report.prefix_tokens
    assert report.rows == (len(tokens) - 1,) * report.ahead_layers + (behind,) * (LAYERS - report.ahead_layers)
    whole = manager.engine.prefill(tokens[:-1])
    pairs = zip(prompt.cache, whole, strict=True)
    assert all(torch.allclose(a, b, atol=1e-4) for (k1, v1, *_), (k2, v2, *_) in pairs for a, b in ((k1, k2), (v1, v2)))


def test_a_prefix_that_this_host_knows_is_waited_for(
    make_llama: Callable[..., Any], seed: int, tokenizer: Any, tmp_path: Path
) -> None:
    manager = KVCManager(make_llama(seed=seed, vocab_size=1000), tokenizer, MemoryStore(), codec="raw", block_tokens=BLOCK)
    segments = SegmentManager(manager, gate=Gate("here"), folder=tmp_path)
    tokens = [*BEGIN, *DOCUMENT, *END]
    manager.add_blocks(tokens[: 5 * BLOCK])
    report = segments.link([tokens]).report
    assert (report.ahead_layers, report.prefix_tokens) == (0, 5 * BLOCK)


def test_layers_below_the_switch_layer_are_computed_meanwhile(segments: SegmentManager, sky: SlowSky) -> None:
    one = segments.add(DOCUMENT)
    without = segments.link([BEGIN, one, END], "naive", switch_layer=0)
    assert without.report.ahead_layers == 0
    sky.answers.clear()
    asked = 0

    def before_each_layer() -> bool:
        nonlocal asked
        asked += 1
        if asked == 3:
            sky.answers.set()
        return False

    linked = segments.link([BEGIN, one, END], "naive", switch_layer=3, cancelled=before_each_layer)
    assert linked.report.ahead_layers == 3
    assert (linked.report.switch_layer, linked.report.linked_tokens, linked.report.why) == (3, len(DOCUMENT), "")
    later = segments.link([BEGIN, one, END], "naive", switch_layer=3)
    pairs = zip(linked.cache, later.cache, strict=True)
    assert all(torch.equal(a, b) for (k1, v1, *_), (k2, v2, *_) in pairs for a, b in ((k1, k2), (v1, v2)))


@pytest.mark.parametrize("strategy", ["auto", "exact", "naive", "blend:15"])
def test_a_look_up_that_finds_nothing_meanwhile_changes_nothing(
    segments: SegmentManager, manager: KVCManager, sky: SlowSky, strategy: str
) -> None:
    sky.answers.clear()
    asked = 0

    def before_each_layer() -> bool:
        nonlocal asked
        asked += 1
        if asked == 2:
            sky.answers.set()
            wait_until(lambda: manager.statistics.prompts > 0)
            time.sleep(0.1)
        return False

    prompt = segments.link([DOCUMENT, END], strategy, cancelled=before_each_layer)
    assert is_full_prefill(manager, prompt)
    assert 1 <= prompt.report.ahead_layers < LAYERS


def test_nothing_is_computed_that_the_caller_computes_itself(segments: SegmentManager) -> None:
    one = segments.add(DOCUMENT)
    prompt = segments.link([BEGIN, one, END], computes=False)
    assert (prompt.report.ahead_layers, prompt.cache.get_seq_length()) == (0, 0)


def test_a_look_up_that_a_link_did_not_wait_for_is_withdrawn(segments: SegmentManager, manager: KVCManager, sky: SlowSky) -> None:
    sky.answers.clear()
    assert is_full_prefill(manager, segments.link([DOCUMENT, END], "exact"))
    sky.answers.set()
    wait_until(lambda: manager.statistics.prompts > 0)
    assert sky.withdrawn == 1
    assert not manager.statistics.errors


# ---- what goes wrong ----------------------------------------------------------------------------------------------------


def test_a_segment_that_is_gone_is_told_by_the_next_link(
    segments: SegmentManager, manager: KVCManager, sky: SlowSky, tmp_path: Path
) -> None:
    one = segments.add(DOCUMENT)
    SegmentManager(manager, gate=Gate("there"), folder=tmp_path / "other").expire(one.id)
    sky.answers.clear()
    assert is_full_prefill(manager, segments.link([BEGIN, one, END]))  # as with a silent sky
    sky.answers.set()

    def is_told() -> bool:
        try:
            segments.link([BEGIN, one, END])
        except UnknownSegmentError:
            return True
        return False

    wait_until(is_told)


def test_a_passage_that_is_gone_becomes_a_segment_again(
    segments: SegmentManager, manager: KVCManager, sky: SlowSky, tmp_path: Path
) -> None:
    pieces = [BEGIN, Passage(DOCUMENT), END]
    for _ in range(2):
        segments.link(pieces, "naive")
    [one] = segments.listed()
    SegmentManager(manager, gate=Gate("there"), folder=tmp_path / "other").expire(one.id)
    assert not sky.left
    wait_until(lambda: segments.link(pieces, "naive").report.linked_tokens == len(DOCUMENT))


def test_who_waits_no_more_ends_what_is_computed_ahead(segments: SegmentManager, sky: SlowSky) -> None:
    one = segments.add(DOCUMENT)
    sky.answers.clear()
    with pytest.raises(CancelledLinkError):
        segments.link([BEGIN, one, END], cancelled=iter([False, False, True]).__next__)


def test_a_look_up_that_fails_is_a_prompt_that_is_computed(segments: SegmentManager, manager: KVCManager, sky: SlowSky) -> None:
    one = segments.add(DOCUMENT)
    sky.failing = {"find_longest", "get", "find"}
    for strategy in ("auto", "naive"):
        assert is_full_prefill(manager, segments.link([BEGIN, one, END], strategy))
