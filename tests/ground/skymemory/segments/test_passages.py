"""Texts that become segments when they are seen again."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from skymemory.prompt.manager import KVCManager
from skymemory.segments.manager import SegmentManager
from skymemory.segments.passages import Passage, SeenPassages
from support.memory_store import MemoryStore
from support.segments import BLOCK, tokens_of
from support.waiting import PATIENCE_S

DOCUMENT = "Satellites pass over a place in ten minutes. Each keeps a part of what was said before, and hands it on."
QUESTION = " What does each of them keep?"


def never() -> str:
    raise AssertionError("it is seen for the first time, or is there")


# ---- the record --------------------------------------------------------------------------------------------------------


def test_a_passage_is_added_when_it_is_seen_again() -> None:
    seen = SeenPassages()
    assert seen.segment([5, 6], never) is None
    assert seen.segment([5], never) is None
    assert seen.segment([5, 6], None) is None
    assert seen.segment([5, 6], lambda: "seg-1") == "seg-1"
    assert seen.segment([5, 6], never) == "seg-1"
    seen.forget([5, 6])
    assert seen.segment([5, 6], lambda: "seg-2") == "seg-2"


def test_what_was_seen_longest_ago_is_forgotten() -> None:
    seen = SeenPassages(most=3)
    for token in (1, 2, 3):
        assert seen.segment([token], never) is None
    assert seen.segment([1], lambda: "seg-1") == "seg-1"
    assert seen.segment([4], never) is None  # 2 has to go
    assert seen.segment([2], never) is None
    assert seen.segment([1], never) == "seg-1"


def test_a_passage_that_cannot_be_added_is_tried_again() -> None:
    seen = SeenPassages()

    def fails() -> str:
        raise OSError("the sky is falling")

    seen.segment([5], never)
    for _ in range(2):
        with pytest.raises(OSError, match="falling"):
            seen.segment([5], fails)
    assert seen.segment([5], lambda: "seg-1") == "seg-1"


def test_one_thread_adds_a_passage_and_the_others_compute_it() -> None:
    seen, begun, go = SeenPassages(), threading.Event(), threading.Event()
    seen.segment([5], never)

    def slow() -> str:
        begun.set()
        assert go.wait(PATIENCE_S)
        return "seg-1"

    with ThreadPoolExecutor(1) as pool:
        adding = pool.submit(seen.segment, [5], slow)
        assert begun.wait(PATIENCE_S)
        assert seen.segment([5], never) is None
        go.set()
        assert adding.result(PATIENCE_S) == "seg-1"
    assert seen.segment([5], never) == "seg-1"


# ---- in prompts --------------------------------------------------------------------------------------------------------


@pytest.fixture
def manager(make_llama: Callable[..., Any], seed: int, tokenizer: Any, store: MemoryStore) -> KVCManager:
    return KVCManager(make_llama(seed=seed), tokenizer, store, codec="raw", block_tokens=BLOCK)


@pytest.fixture
def linking(manager: KVCManager, tmp_path: Path) -> SegmentManager:
    return SegmentManager(manager, folder=tmp_path)


pytestmark = pytest.mark.model


def test_a_document_that_comes_once_costs_the_sky_nothing(linking: SegmentManager, store: MemoryStore) -> None:
    for number in range(3):
        prompt = linking.link(["Read: ", Passage(tokens_of(40, number)), QUESTION], "naive")
        assert (prompt.report.linked_tokens, prompt.segments, prompt.report.why) == (0, (), "")
    assert not store.blocks
    assert linking.listed() == []


def test_a_document_that_comes_again_is_a_segment(linking: SegmentManager, store: MemoryStore) -> None:
    passage = Passage(DOCUMENT, ttl_s=60, display_name="a document")
    first = linking.link(["Read: ", passage, passage, QUESTION], "naive")  # twice in one prompt is once
    assert first.report.linked_tokens == 0
    again = linking.link([QUESTION, passage, QUESTION], "naive")
    [segment] = linking.listed()
    assert again.report.linked_tokens == segment.tokens
    assert [placed.id for placed in again.segments] == [segment.id]
    assert segment.display_name == "a document"
    assert segment.expires_unix_ms > 0
    puts = dict(store.blocks)
    twice = linking.link([passage, "And: ", passage, QUESTION], "naive")
    assert twice.report.linked_tokens == 2 * segment.tokens
    assert store.blocks == puts  # nothing was put again
    assert linking.add(DOCUMENT).id == segment.id
    assert torch.equal(twice.input_ids[0, : segment.tokens], again.input_ids[0, again.segments[0].start : again.segments[0].end])


def test_a_segment_that_is_gone_is_text_and_then_a_segment_again(linking: SegmentManager, store: MemoryStore) -> None:
    pieces = ["Read: ", Passage(DOCUMENT), QUESTION]
    for _ in range(2):
        linking.link(pieces, "naive")
    [segment] = linking.listed()
    assert linking.expire(segment.id)
    prompt = linking.link(pieces, "naive")
    assert (prompt.report.linked_tokens, store.left) == (0, set())
    assert linking.link(pieces, "naive").report.linked_tokens == segment.tokens


def test_a_silent_sky_does_not_raise(linking: SegmentManager, store: MemoryStore) -> None:
    pieces = ["Read: ", Passage(DOCUMENT), QUESTION]
    linking.link(pieces, "naive")
    store.is_silent = True
    assert linking.link(pieces, "naive").report.linked_tokens == 0
    store.is_silent = False
    assert linking.link(pieces, "naive").report.linked_tokens > 0
    store.failing = {"find"}
    assert linking.link([*pieces, Passage(DOCUMENT)], "naive").report.linked_tokens == 0


def test_nothing_is_stored_where_nothing_may_be_linked(linking: SegmentManager, store: MemoryStore) -> None:
    """No gate is open, or the prompt is to be exact."""
    pieces = ["Read: ", Passage(DOCUMENT), QUESTION]
    for strategy in ("auto", "exact", "auto"):
        assert linking.link(pieces, strategy).report.linked_tokens == 0
    assert not store.blocks
    assert linking.link(pieces, "naive").report.linked_tokens > 0
    # What is a segment is not looked up either
    store.failing = {"get"}
    assert linking.link([Passage(DOCUMENT), QUESTION], "exact").report.linked_tokens == 0


def test_a_passage_of_no_token(linking: SegmentManager) -> None:
    for _ in range(3):
        assert linking.link(["Read: ", Passage(""), QUESTION], "naive").report.linked_tokens == 0
