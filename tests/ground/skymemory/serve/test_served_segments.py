"""Segments in prompts of the generator, without HTTP: what is linked, and what of it others may find."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import pytest
import torch
from transformers import DynamicCache

from skymemory.agent.constellation_source import FixedSource
from skymemory.common.state_folder import default_folder
from skymemory.demo.model import load
from skymemory.prompt.huggingface import LinkedCache
from skymemory.segments.directory import SegmentDirectory
from skymemory.segments.layout import SegmentId
from skymemory.serve.batch import Batch, beginning, exact_tokens, with_room
from skymemory.serve.errors import ApiError
from skymemory.serve.generation import Begun, Ended, Event, Generator, Job, Piece
from skymemory.serve.prompt_cache import PromptCache
from skymemory.serve.sampling import Sampling
from skymemory.serve.seen_texts import AGAIN_S
from skymemory.serve.segments import ServedSegments
from skymemory.serve.tokens import NewSegment, PromptPiece
from skymemory.store.sky_store import SkyStore
from support.open_gates import open_gate
from support.served_segments import DOCUMENT, KEY, QUESTION, front_of, lay_out_again, tokens_of
from support.waiting import wait_until

BLOCK = 16

pytestmark = pytest.mark.model


@pytest.fixture
def make_generator(loaded) -> Iterator[Callable[[PromptCache], Generator]]:
    with ExitStack() as stack:

        def make(cache: PromptCache) -> Generator:
            generator = Generator(*loaded, cache, 4)
            stack.callback(generator.close)
            return generator

        yield make


def linked_job(
    segments: ServedSegments, pieces: Sequence[PromptPiece], events: list[Event], max_tokens: int = 40, scope: bytes = b""
) -> Job:
    laid = lay_out_again(segments, pieces, scope)
    finders = {0: segments.finder(laid, scope, scope)} if laid.placed else {}
    return Job([laid.tokens], _greedy(max_tokens), events.append, scope, finders)


def _greedy(max_tokens: int) -> Sampling:
    return Sampling(max_tokens=max_tokens, temperature=0.0, top_p=1.0, seed=None, stop=(), choices=1)


def finish(generator: Generator, *jobs: Job) -> None:
    for job in jobs:
        generator.admit(job)
    while generator.busy:
        generator.turn()


def text_of(events: list[Event]) -> str:
    assert events[-1] == Ended()
    return "".join(event.text for event in events if isinstance(event, Piece))


def plain(generator: Generator, tokens: Sequence[int], max_tokens: int = 40, scope: bytes = b"") -> list[Event]:
    events: list[Event] = []
    finish(generator, Job([tokens], _greedy(max_tokens), events.append, scope))
    return events


@pytest.fixture
def computed(loaded, make_generator, tmp_path) -> Iterator[Callable[[Sequence[int]], str]]:
    """What the model answers where there is no sky."""

    class NoSource:
        def changed(self) -> bool:
            return False

    cache = PromptCache(*loaded, NoSource())  # type: ignore[arg-type]
    generator = make_generator(cache)
    yield lambda tokens: text_of(plain(generator, tokens))
    cache.close()


# ---- nothing approximate under an exact key --------------------------------------------------------------------------


def test_what_depends_on_a_linked_segment_is_found_under_no_exact_key(cache, make_segments, make_generator, computed) -> None:
    generator, segments = make_generator(cache), make_segments("naive")
    front = front_of(21)
    events: list[Event] = []
    finish(generator, linked_job(segments, [front, NewSegment(DOCUMENT), QUESTION], events))
    assert events[0] == Begun(0, 0, len(DOCUMENT), 0)
    wait_until(lambda: not cache.waiting, "all answers are stored")
    prompt = front + DOCUMENT + QUESTION
    exact = computed(prompt)
    assert text_of(events) != exact, "the test would not notice approximate blocks"
    again = plain(generator, prompt)
    assert again[0] == Begun(0, len(front) // BLOCK * BLOCK), "only whole blocks before the segment are stored"
    assert text_of(again) == exact
    wait_until(lambda: not cache.waiting, "all answers are stored")
    other: list[Event] = []  # begins with exact blocks, in the middle of the segment
    question = QUESTION[::-1]
    finish(generator, linked_job(segments, [front, NewSegment(DOCUMENT), question], other))
    covered = len(front + DOCUMENT) // BLOCK * BLOCK
    assert other[0] == Begun(0, covered, len(front + DOCUMENT) - covered, 0)
    wait_until(lambda: not cache.waiting, "all answers are stored")
    whole = plain(generator, front + DOCUMENT + question)
    assert whole[0] == Begun(0, covered)
    assert text_of(whole) == computed(front + DOCUMENT + question)


def test_a_prompt_beside_takes_only_exact_tokens_of_a_linked_one(cache, make_segments, make_generator, computed) -> None:
    generator, segments = make_generator(cache), make_segments("naive")
    front = front_of(22)
    prompt = front + DOCUMENT + QUESTION
    linked: list[Event] = []
    beside: list[Event] = []
    generator.admit(linked_job(segments, [front, NewSegment(DOCUMENT), QUESTION], linked, max_tokens=400))
    while not any(isinstance(event, Piece) for event in linked):
        generator.turn()
    finish(generator, Job([prompt], _greedy(40), beside.append))
    assert beside[0] == Begun(0, len(front) // BLOCK * BLOCK)
    assert text_of(beside) == computed(prompt)
    assert isinstance(linked[-1], Ended)


def test_a_job_that_is_cancelled_while_it_links_keeps_only_exact_tokens(cache, make_segments, make_generator) -> None:
    generator, segments = make_generator(cache), make_segments("naive")
    front = front_of(23)
    events: list[Event] = []
    job = linked_job(segments, [front, NewSegment(DOCUMENT), QUESTION], events)
    generator.admit(job)
    while not events:
        generator.turn()
    job.cancelled.set()
    finish(generator)
    wait_until(lambda: not cache.waiting, "what was computed is stored")
    assert plain(generator, front + DOCUMENT + QUESTION)[0] == Begun(0, len(front) // BLOCK * BLOCK)


@torch.no_grad()
def test_copies_of_a_linked_cache_stay_linked(loaded) -> None:
    model, _ = loaded
    batch = Batch(model)
    cache = LinkedCache(model.config, 20)
    batch.read(tokens_of(1, 30), cache)
    row = with_room(cache)
    batch.read([5] * 9, row)
    assert (row.get_seq_length(), exact_tokens(row), exact_tokens(beginning(row, 12))) == (39, 20, 12)
    assert type(beginning(row, 20)) is DynamicCache, "what goes on from exact tokens is exact"
    with pytest.raises(AssertionError):
        beginning(row, 21)


# ---- what is linked --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("strategy", "recomputed"), [("naive", 0), ("lego:8", 8), ("auto", None), ("exact", None)])
def test_what_is_linked_is_counted(cache, make_segments, make_generator, computed, strategy, recomputed) -> None:
    generator, segments = make_generator(cache), make_segments(strategy)
    front = front_of(30 + ("naive", "lego:8", "auto", "exact").index(strategy))
    pieces = [front, NewSegment(DOCUMENT), QUESTION]
    events: list[Event] = []
    finish(generator, linked_job(segments, pieces, events, scope=strategy.encode()))
    if recomputed is None:  # nothing is open, so all is computed, and is exact
        assert events[0] == Begun(0, 0, 0, 0)
        assert text_of(events) == computed(front + DOCUMENT + QUESTION)
        wait_until(lambda: not cache.waiting, "all answers are stored")
        assert plain(generator, front + DOCUMENT + QUESTION, scope=strategy.encode())[0] == Begun(0, 112)
        assert segments.listed(strategy.encode()) == [], "a segment would be of no use"
    else:
        assert events[0] == Begun(0, 0, len(DOCUMENT), recomputed)


def test_a_segment_that_is_sent_again_is_the_same_one(cache, make_segments, make_generator) -> None:
    generator, segments = make_generator(cache), make_segments("naive")
    first: list[Event] = []
    finish(generator, linked_job(segments, [front_of(41), NewSegment(DOCUMENT), QUESTION], first, scope=KEY))
    [listed] = segments.listed(KEY)
    second: list[Event] = []
    finish(generator, linked_job(segments, [front_of(41), SegmentId(listed.id), QUESTION], second, scope=KEY))
    third: list[Event] = []
    finish(generator, linked_job(segments, [front_of(41), NewSegment(DOCUMENT), QUESTION], third, scope=KEY))
    assert text_of(first) == text_of(second) == text_of(third)
    assert [one.id for one in segments.listed(KEY)] == [listed.id]
    segments.expire(listed.id, KEY)
    fourth: list[Event] = []
    finish(generator, linked_job(segments, [front_of(41), NewSegment(DOCUMENT), QUESTION], fourth, scope=KEY))  # adds it again
    assert fourth[0].linked_tokens == len(DOCUMENT)
    assert text_of(fourth) == text_of(first)


def test_text_becomes_a_segment_when_it_is_seen_again(make_segments) -> None:
    segments, scope = make_segments("naive"), b"again"
    pieces = [NewSegment(DOCUMENT), QUESTION, NewSegment(DOCUMENT)]
    placed = [[one.start for one in segments.lay_out(pieces, scope, "messages").placed] for _ in range(2)]
    assert placed == [[], [0, len(DOCUMENT + QUESTION)]]
    assert len(segments.listed(scope)) == 1
    both = [NewSegment(QUESTION), NewSegment(DOCUMENT)]
    assert [one.start for one in segments.lay_out(both, scope, "messages").placed] == [len(QUESTION)]
    assert segments.lay_out(both, b"other", "messages").placed == (), "it was seen with another key"


def test_a_segment_that_the_sky_lacks_is_stored_again(cache, make_segments) -> None:
    """A store that is full evicts blocks of a segment, and not what says that there is one."""
    now_s = 1000.0
    segments, scope = make_segments("naive", clock=lambda: now_s), b"evicted"
    pieces = [front_of(76), NewSegment(DOCUMENT), QUESTION]

    def linked() -> int:
        laid = segments.lay_out(pieces, scope, "messages")
        return segments.finder(laid, scope, scope)(lambda: False).linked_tokens

    assert [linked(), linked()] == [0, len(DOCUMENT)]
    [placed] = segments.lay_out(pieces, scope, "messages").placed
    with cache.in_use() as kvc:
        directory = SegmentDirectory(kvc.store, tenant_secret=kvc.tenant_secret, scope=scope)
        kvc.store.purge(directory.keys(placed.manifest).all)
    assert [linked(), linked()] == [0, 0]
    now_s += AGAIN_S
    assert linked() == len(DOCUMENT)


class Questions:
    """Blocks that the store of a cache was asked for since the last look."""

    def __init__(self, cache: PromptCache) -> None:
        self._cache = cache
        self._before = self._now()

    def _now(self) -> int:
        with self._cache.in_use() as kvc:
            assert isinstance(kvc.store, SkyStore)
            return kvc.store.stats().questions

    def count(self) -> int:
        before, self._before = self._before, self._now()
        return self._before - before


def test_an_unknown_id_beside_texts_is_refused_at_the_first_look_up(cache, make_segments) -> None:
    segments, scope = make_segments("naive"), b"unknown id"
    texts = [NewSegment(tokens_of(first, 20)) for first in range(5)]
    added = segments.add(DOCUMENT, scope, 60, "")
    unknown = SegmentId(added.id[:-4] + "0000")
    segments.lay_out(texts, scope, "messages")  # they are seen for the first time
    questions = Questions(cache)

    def refused() -> int:
        with pytest.raises(ApiError) as caught:
            segments.lay_out([*texts, unknown, SegmentId(added.id)], scope, "messages")
        assert (caught.value.status, caught.value.body["error"]["code"]) == (404, "cached_content_not_found")
        return questions.count()

    once = refused()
    assert len(segments.listed(scope)) == 1, "no text is computed for a request that is refused"
    assert len(segments.lay_out(texts, scope, "messages").placed) == 5
    questions.count()
    assert 0 < refused() <= once + len(texts), "beside it only homes of the texts' records are asked for the newest version"


def test_only_texts_that_are_gone_are_stored_again(cache, make_segments) -> None:
    segments, scope = make_segments("naive"), b"one is gone"
    texts = [NewSegment(tokens_of(first, 20)) for first in range(3)]
    laid = lay_out_again(segments, [*texts, QUESTION], scope)
    before = {one.id: one.created_unix_ms for one in segments.listed(scope)}
    gone = laid.placed[1].id
    segments.expire(gone, scope)
    assert segments.lay_out([*texts, QUESTION], scope, "messages").placed[1].id == gone
    after = {one.id: one.created_unix_ms for one in segments.listed(scope)}
    assert after.keys() == before.keys()
    assert {one for one in after if after[one] != before[one]} == {gone}


def test_segments_of_another_scope_are_unknown(make_segments) -> None:
    segments = make_segments("naive")
    added = segments.add(DOCUMENT, KEY, 60, "manual")
    assert segments.get(added.id, KEY).display_name == "manual"
    for scope in (b"", b"other"):
        assert added.id not in [one.id for one in segments.listed(scope)]
        for refused in (
            lambda scope=scope: segments.get(added.id, scope),
            lambda scope=scope: segments.update(added.id, scope, ttl_s=1.0, expires_unix_s=None, display_name=None),
            lambda scope=scope: segments.expire(added.id, scope),
            lambda scope=scope: segments.lay_out([SegmentId(added.id)], scope, "messages"),
        ):
            with pytest.raises(ApiError) as caught:
                refused()
            assert (caught.value.status, caught.value.body["error"]["code"]) == (404, "cached_content_not_found")
    other = segments.add(DOCUMENT, b"other", 60, "")
    assert other.id != added.id
    segments.expire(other.id, b"other")
    assert segments.get(added.id, KEY).id == added.id


def test_segments_of_another_model_are_refused(loaded, cache, make_segments, small_source) -> None:
    segments = make_segments("naive")
    added = segments.add(DOCUMENT, KEY, 60, "")
    model, tokenizer = load(loaded[0].name_or_path, device="cpu")
    with torch.no_grad():
        model.model.norm.weight.mul_(2)
    other_cache = PromptCache(model, tokenizer, small_source())
    other = make_segments("naive", other_cache)
    for refused in (
        lambda: other.get(added.id, KEY),
        lambda: other.update(added.id, KEY, ttl_s=1.0, expires_unix_s=None, display_name=None),
        lambda: other.lay_out([SegmentId(added.id)], KEY, "messages"),
    ):
        with pytest.raises(ApiError) as caught:
            refused()
        assert (caught.value.status, caught.value.body["error"]["code"]) == (409, "other_model")
    assert other.listed(KEY) == []
    assert added.id in [one.id for one in segments.listed(KEY)]
    other_cache.close()


def test_segments_that_do_not_go_with_the_strategy_are_refused(make_segments) -> None:
    added = make_segments("naive").add(DOCUMENT, KEY, 60, "")
    with pytest.raises(ApiError, match="lego0 needs segments that were computed behind 4") as caught:
        make_segments("lego0").lay_out([front_of(50), SegmentId(added.id)], KEY, "messages")
    assert (caught.value.status, caught.value.body["error"]["param"]) == (400, "messages")


def test_a_model_that_cannot_be_linked_computes_new_segments_and_refuses_ids(cache, make_segments, make_generator) -> None:
    """The babbler has no BOS, which segments behind sinks need."""
    segments = make_segments("lego0")
    laid = lay_out_again(segments, [front_of(51), NewSegment(DOCUMENT)], KEY)
    assert (laid.tokens, laid.placed) == (front_of(51) + DOCUMENT, ())
    with pytest.raises(ApiError, match="needs a model with a BOS") as caught:
        segments.add(DOCUMENT, KEY, 60, "")
    assert caught.value.status == 400


# ---- limits ----------------------------------------------------------------------------------------------------------


def test_a_prompt_that_is_too_long_is_refused_before_its_segments_are_put_together(make_segments) -> None:
    segments = make_segments("naive")
    added = segments.add(DOCUMENT, KEY, 60, "")
    lengths: list[int] = []

    def refuse(tokens: int) -> None:
        lengths.append(tokens)
        raise ApiError("too long")

    for pieces in ([SegmentId(added.id)] * 60, [QUESTION, NewSegment(DOCUMENT), SegmentId(added.id)]):
        with pytest.raises(ApiError, match="too long"):
            segments.lay_out(pieces, KEY, "messages", check_length=refuse)
    assert lengths == [60 * len(DOCUMENT), len(QUESTION) + 2 * len(DOCUMENT)]


@pytest.mark.parametrize("strategy", ["auto", "exact"])
def test_what_is_not_linked_is_left_to_the_generator_and_its_pieces(cache, make_segments, make_generator, strategy) -> None:
    segments, scope = make_segments(strategy), strategy.encode() + b" in pieces"
    added = segments.add(DOCUMENT, scope, 60, "")
    laid = segments.lay_out([front_of(72), SegmentId(added.id), QUESTION], scope, "messages")
    find = segments.finder(laid, scope, scope)
    cold = find(lambda: False)
    assert (cold.cache.get_seq_length(), cold.cached_tokens) == (0, 0)
    plain(make_generator(cache), laid.tokens, scope=scope)
    wait_until(lambda: not cache.waiting, "all answers are stored")
    warm = find(lambda: False)
    assert (warm.cache.get_seq_length(), warm.cached_tokens) == (112, 112)
    assert type(warm.cache) is DynamicCache


@pytest.mark.parametrize("strategy", ["auto", "exact"])
def test_what_stands_behind_a_segment_at_the_beginning_is_read_in_pieces(
    cache, make_segments, make_generator, computed, strategy
) -> None:
    segments, scope = make_segments(strategy), strategy.encode() + b" at the beginning"
    added = segments.add(DOCUMENT, scope, 60, "")
    laid = segments.lay_out([SegmentId(added.id), front_of(75), QUESTION], scope, "messages")
    found = segments.finder(laid, scope, scope)(lambda: False)
    assert (found.cache.get_seq_length(), found.cached_tokens, found.linked_tokens) == (len(DOCUMENT), 0, len(DOCUMENT))
    assert type(found.cache) is DynamicCache
    events: list[Event] = []
    finish(make_generator(cache), Job([laid.tokens], _greedy(40), events.append, scope, {0: lambda _: found}))
    assert text_of(events) == computed(laid.tokens)


@pytest.fixture
def open_cache(babbler, small_sky, small_source, tmp_path) -> Iterator[PromptCache]:
    """The cache of a model whose gate is open for lego:8."""
    model, tokenizer = load(str(babbler), device="cpu")
    with torch.no_grad():
        model.model.norm.weight.mul_(1.5)  # another model than that of other tests, whose gate is closed
    open_gate(model, tokenizer, small_sky.constellation, "lego:8", 0, default_folder())
    cache = PromptCache(model, tokenizer, small_source())
    yield cache
    cache.close()


@pytest.mark.parametrize(("tokens", "covered"), [(1300, 512), (300, 301)])
def test_of_what_is_slower_to_link_so_much_is_computed_that_the_controller_learns(
    open_cache, make_segments, tokens, covered
) -> None:
    """To link two tokens saves next to nothing."""
    segments, scope = make_segments("auto", open_cache), b"slower" + bytes([tokens % 256])
    added = segments.add([1, 2], scope, 60, "")
    laid = segments.lay_out([tokens_of(4, tokens), SegmentId(added.id)], scope, "messages")
    found = segments.finder(laid, scope, scope)(lambda: False)
    assert (found.cache.get_seq_length(), found.cached_tokens, found.linked_tokens) == (covered, 0, 0)
    assert type(found.cache) is DynamicCache


# ---- a sky that is silent --------------------------------------------------------------------------------------------


def test_a_sky_that_falls_silent_has_all_computed(loaded, make_segments, make_generator, start_sky, computed) -> None:
    sky = start_sky(cache={"block_tokens": BLOCK, "chunk_bytes": 1000, "deadline_ms": 500})
    cache = PromptCache(*loaded, FixedSource(sky.constellation))
    generator, segments = make_generator(cache), make_segments("naive", cache)
    added = segments.add(DOCUMENT, b"", 60, "")
    pieces = [front_of(60), SegmentId(added.id), QUESTION]
    warm: list[Event] = []
    finish(generator, linked_job(segments, pieces, warm))
    assert warm[0].linked_tokens == len(DOCUMENT)
    wait_until(lambda: not cache.waiting, "all answers are stored")
    for satellite in list(sky.processes):
        sky.kill(satellite)
    cold: list[Event] = []
    finish(generator, linked_job(segments, pieces, cold))
    assert cold[0] == Begun(0, 0, 0, 0)
    exact = computed(front_of(60) + DOCUMENT + QUESTION)
    assert text_of(cold) == exact
    new: list[Event] = []
    finish(generator, linked_job(segments, [front_of(60), NewSegment(DOCUMENT), QUESTION], new))
    assert text_of(new) == exact
    with pytest.raises(ApiError, match="nobody answers") as caught:
        segments.get(added.id[:-4] + "0000", b"")
    assert (caught.value.status, caught.value.body["error"]["code"]) == (503, "sky_silent")
    cache.close()
