"""Segments of a real model that come from satellites, and are linked into a prompt."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import torch

from skymemory.prompt.huggingface import HuggingFaceEngine
from skymemory.segments.linker import Linked, Linker
from skymemory.segments.pieces import Piece, TensorSource
from skymemory.segments.sky_segments import SegmentModel, SkySegments
from skymemory.segments.strategy import Strategy
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from support.segments import BLOCK, tokens_of
from support.small_models import small_model

pytestmark = pytest.mark.model

MODEL = small_model("llama")
LINKER = Linker(MODEL)
DOCUMENTS = [[token % 250 for token in tokens_of(count, seed=count)] for count in (50, 37)]
PROMPT = [7, *DOCUMENTS[0], 8, 9, *DOCUMENTS[1], 10, 11]
STARTS = [1, 53]


@pytest.fixture
def sky(start_sky: Callable[..., LocalConstellation]) -> LocalConstellation:
    return start_sky(cache={"deadline_ms": 1000})


@pytest.fixture
def segments(sky: LocalConstellation, tmp_path: Path) -> Iterator[SkySegments]:
    engine = HuggingFaceEngine(MODEL)
    model = SegmentModel(lambda: b"f" * 32, engine.geometry, engine.vocabulary)
    with SkyStore(sky.constellation) as store:
        yield SkySegments(store, model, codec="raw", block_tokens=BLOCK, folder=tmp_path)


def linked_from_memory(strategy: Strategy) -> Linked:
    sources = [TensorSource(LINKER.compute(document)) for document in DOCUMENTS]
    pieces = [Piece(*one) for one in zip(STARTS, map(len, DOCUMENTS), sources, strict=True)]
    return LINKER.link(PROMPT, pieces, strategy)


def linked_from_sky(segments: SkySegments, ids: list[str], strategy: Strategy) -> Linked:
    with segments.fetch([segments.get(one) for one in ids]) as fetch:
        pieces = [
            Piece(start + part.first, part.tokens, part, first=part.first)
            for start, parts in zip(STARTS, fetch.parts, strict=True)
            for part in parts
        ]
        return LINKER.link(PROMPT, pieces, strategy)


def equal(one: Linked, other: Linked) -> bool:
    pairs = zip(one.cache, other.cache, strict=True)
    return all(torch.equal(a, b) for (keys, values, *_), (k, v, *_) in pairs for a, b in ((keys, k), (values, v)))


@pytest.mark.parametrize("word", ["naive", "lego:3", "blend:15"])
def test_what_comes_from_the_sky_links_as_what_is_in_memory(segments: SkySegments, word: str) -> None:
    strategy = Strategy.parse(word)
    ids = [segments.put(document, lambda document=document: LINKER.compute(document)).id for document in DOCUMENTS]
    linked = linked_from_sky(segments, ids, strategy)
    assert linked.report.linked_tokens == sum(map(len, DOCUMENTS))
    assert equal(linked, linked_from_memory(strategy))


def test_a_silent_sky_has_all_computed(
    segments: SkySegments, sky: LocalConstellation, stopped: Callable[..., AbstractContextManager[None]]
) -> None:
    ids = [segments.put(document, LINKER.compute(document)).id for document in DOCUMENTS]
    for one in ids:
        segments.get(one)
    with stopped(sky):
        linked = linked_from_sky(segments, ids, Strategy.parse("naive"))
    assert linked.report.linked_tokens == 0
    assert linked.report.exact_tokens == len(PROMPT) - 1
    assert equal(linked, LINKER.link(PROMPT, [], Strategy.parse("exact")))
