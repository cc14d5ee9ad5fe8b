"""Segments that are given up, refused or left to their prompt: nobody waits, the server ends, or the model cannot."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import torch

from skymemory.demo.model import load
from skymemory.serve.errors import ApiError
from skymemory.serve.generation import Cancelled
from skymemory.serve.prompt_cache import PromptCache
from skymemory.serve.segments import ServedSegments
from skymemory.serve.tokens import NewSegment
from support.served_segments import DOCUMENT, KEY, QUESTION, front_of, lay_out_again, tokens_of

LOOKS_FOR_ONE = 4
"""Looks whether a segment is still wanted: before it is added, and before each of three layers."""

pytestmark = pytest.mark.model


def test_no_more_segments_are_added_once_nobody_waits(make_segments) -> None:
    segments = make_segments("naive")
    scope = b"nobody waits"
    pieces = [NewSegment(tokens_of(first, 20)) for first in range(5)]
    looks = itertools.count()
    with pytest.raises(Cancelled):
        lay_out_again(segments, pieces, scope, cancelled=lambda: next(looks) >= 2 * LOOKS_FOR_ONE)
    assert len(segments.listed(scope)) == 2


def test_a_server_that_ends_adds_no_more_segments(make_segments) -> None:
    segments = make_segments("naive")
    scope = b"ends"
    pieces = [NewSegment(tokens_of(first, 20)) for first in range(5)]
    looks = 0

    def never() -> bool:
        nonlocal looks
        looks += 1
        if looks == 2 * LOOKS_FOR_ONE:
            segments.stop()
        return False

    for refused in (
        lambda: lay_out_again(segments, pieces, scope, cancelled=never),
        lambda: segments.add(DOCUMENT, scope, 60, ""),
    ):
        with pytest.raises(ApiError, match="about to end") as caught:
            refused()
        assert (caught.value.status, caught.value.body["error"]["code"]) == (503, "shutting_down")
    assert len(segments.listed(scope)) == 2


def test_closing_does_not_wait_for_what_is_computed(make_segments) -> None:
    segments = make_segments("naive")
    is_computed = threading.Event()
    computing = segments.threads.submit(is_computed.wait, 60)
    segments.close()
    assert not computing.done()
    is_computed.set()


def test_a_prompt_that_nobody_waits_for_is_not_linked(make_segments) -> None:
    segments = make_segments("naive")
    laid = lay_out_again(segments, [front_of(71), NewSegment(DOCUMENT), QUESTION], KEY)
    whole = segments.finder(laid, KEY, KEY)(lambda: False)
    assert (whole.cache.get_seq_length(), whole.linked_tokens) == (len(laid.tokens) - 1, len(DOCUMENT))
    for looks_before in (0, 1, 2, 3):
        looks = itertools.count()
        given_up = segments.finder(laid, KEY, KEY)(lambda looks=looks, before=looks_before: next(looks) >= before)
        assert (given_up.cache.get_seq_length(), given_up.cached_tokens, given_up.linked_tokens) == (0, 0, 0)
        assert next(looks) <= looks_before + 3, "it goes on"  # who waits for blocks, the look-up and the next layer look


class Watched(torch.nn.Module):
    """A part of a model that tells when it runs."""

    def __init__(self, inner: torch.nn.Module, tell: Callable[[], None]) -> None:
        super().__init__()
        self.inner = inner
        self.tell = tell

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        self.tell()
        return self.inner(hidden)


@pytest.fixture
def make_watched(babbler, small_source) -> Iterator[Callable[[Callable[[], None]], PromptCache]]:
    """Makes the cache of a model that calls a function in its first layer."""
    with ExitStack() as stack:

        def make(tell: Callable[[], None]) -> PromptCache:
            model, tokenizer = load(str(babbler), device="cpu")
            model.model.layers[0].mlp = Watched(model.model.layers[0].mlp, tell)
            cache = PromptCache(model, tokenizer, small_source())
            stack.callback(cache.close)
            return cache

        yield make


def test_one_segment_is_computed_at_a_time(make_watched, make_segments) -> None:
    running: set[int] = set()
    most: list[int] = []

    def tell() -> None:
        running.add(threading.get_ident())
        most.append(len(running))
        time.sleep(0.1)
        running.discard(threading.get_ident())

    segments = make_segments("naive", make_watched(tell))
    segments.listed(KEY)
    most.clear()
    added = [segments.threads.submit(segments.add, tokens_of(first, 40), KEY, 60, "") for first in range(4)]
    assert len({one.result().id for one in added}) == 4
    assert most == [1] * 4


@pytest.mark.parametrize("ends", [False, True], ids=["its client leaves", "the server ends"])
def test_a_segment_that_nobody_waits_for_is_given_up_between_two_layers(make_watched, make_segments, ends) -> None:
    scope = b"given up" + bytes([ends])
    is_watched = is_left = False
    segments: ServedSegments

    def tell() -> None:
        nonlocal is_left
        if is_watched and ends:
            segments.stop()
        is_left = is_watched

    segments = make_segments("naive", make_watched(tell))

    def has_left() -> bool:
        return is_left and not ends

    for given_up in (
        lambda: segments.add(tokens_of(1, 40), scope, 60, "", cancelled=has_left),
        lambda: lay_out_again(segments, [NewSegment(tokens_of(1, 40))], scope, cancelled=has_left),
    ):
        segments.listed(scope)
        is_watched, is_left = True, False
        with pytest.raises(ApiError if ends else Cancelled):
            given_up()
        is_watched = False
        assert segments.listed(scope) == []


def test_a_segment_for_which_there_is_no_memory_is_computed_with_its_prompt(make_watched, make_segments) -> None:
    is_full = False

    def tell() -> None:
        if is_full:
            raise torch.OutOfMemoryError

    segments = make_segments("naive", make_watched(tell))
    segments.listed(KEY)
    is_full = True
    laid = lay_out_again(segments, [front_of(73), NewSegment(tokens_of(3, 40))], KEY)
    assert (laid.tokens, laid.placed) == (front_of(73) + tokens_of(3, 40), ())


def test_new_segments_of_a_model_that_cannot_be_digested_now_are_computed_with_their_prompt(babbler, small_source, make_segments):
    model, tokenizer = load(str(babbler), device="cpu")
    cache = PromptCache(model, tokenizer, small_source())
    segments = make_segments("auto", cache)
    segments.listed(KEY)
    model.model.norm.register_forward_hook(lambda *_: None)
    laid = lay_out_again(segments, [front_of(74), NewSegment(DOCUMENT)], KEY)
    assert (laid.tokens, laid.placed) == (front_of(74) + DOCUMENT, ())
    cache.close()
