"""What the model computes, without HTTP."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import torch
from transformers import DynamicCache

from skymemory.agent.constellation_source import RunningSource
from skymemory.prompt.huggingface import HuggingFaceEngine
from skymemory.serve.batch import Batch
from skymemory.serve.generation import (
    Begun,
    Cancelled,
    Ended,
    Event,
    Finder,
    Finished,
    Found,
    Generator,
    Job,
    Piece,
)
from skymemory.serve.prompt_cache import PromptCache
from skymemory.serve.sampling import Sampling
from skymemory.testbed.run_record import Running, RunRecord
from support.waiting import wait_until

BLOCK = 16
PROMPT = [(3 + 7 * index) % 90 for index in range(100)]

pytestmark = pytest.mark.model


@pytest.fixture
def make_generator(loaded, cache: PromptCache) -> Iterator[Callable[..., Generator]]:
    with ExitStack() as stack:

        def make(cache: PromptCache = cache, **settings: int) -> Generator:
            generator = Generator(*loaded, cache, **{"answers_max": 4, **settings})
            stack.callback(generator.close)
            return generator

        yield make


@pytest.fixture
def generator(make_generator) -> Generator:
    return make_generator()


def run(generator: Generator, prompt: list[int] = PROMPT, cancel_after: int | None = None, **settings: object) -> list[Event]:
    sampling = Sampling(**{"max_tokens": 8, "temperature": 0.0, "top_p": 1.0, "seed": None, "stop": (), "choices": 1, **settings})
    events: list[Event] = []
    job = Job([prompt], sampling, events.append)

    def tell(event: Event) -> None:
        events.append(event)
        if len(events) == cancel_after:
            job.cancelled.set()

    job.tell = tell
    finish(generator, job)
    return events


def finish(generator: Generator, *jobs: Job) -> None:
    for job in jobs:
        generator.admit(job)
    ended: list[Job] = []
    while generator.busy:
        ended += generator.turn()
    assert set(ended) == set(jobs)


def settled(cache: PromptCache) -> None:
    wait_until(lambda: not cache.waiting, "all answers are stored")


def test_a_cancelled_prompt_is_not_looked_for_any_more(generator) -> None:
    may_go_on, begun = threading.Event(), []

    def find(name: str) -> Finder:
        def find(cancelled: Callable[[], bool]) -> Found:
            begun.append(name)
            may_go_on.wait(60)
            return Found(DynamicCache(), 0)

        return find

    sampling = Sampling(max_tokens=1, temperature=0.0, top_p=1.0, seed=None, stop=(), choices=1)
    jobs = [Job([PROMPT[::-1]], sampling, lambda _: None, finders={0: find(name)}) for name in ("first", "second", "third")]
    for job in jobs:
        generator.admit(job)
    for job in jobs[:2]:
        generator.turn()
        job.cancelled.set()
        generator.turn()
    may_go_on.set()
    while generator.busy:
        generator.turn()
    assert begun == ["first", "third"]


def test_blocks_from_the_sky_give_the_same_logits_to_the_last_bit(make_generator, cache, monkeypatch) -> None:
    seen: list[torch.Tensor] = []
    read = Batch.read

    def watched(self, tokens, row):
        seen.append(read(self, tokens, row))
        return seen[-1]

    generator = make_generator(piece_tokens=40)  # it reads something itself, for a try
    monkeypatch.setattr(Batch, "read", watched)
    cold = run(generator)
    settled(cache)
    warm = run(generator)
    assert cold[0] == Begun(0, 0)
    assert warm[0] == Begun(0, 96)
    assert cold[1:] == warm[1:]
    half = len(seen) // 2
    assert all(torch.equal(a, b) for a, b in zip(seen[:half], seen[half:], strict=True))


@pytest.mark.parametrize("length", [1, BLOCK - 1, BLOCK, BLOCK + 1, 4 * BLOCK])
def test_prompts_at_the_edges_of_blocks(cache, generator, length) -> None:
    prompt = [(length + 5 * index) % 90 for index in range(length)]
    cold = run(generator, prompt)
    settled(cache)
    warm = run(generator, prompt)
    assert cold[0] == Begun(0, 0)
    assert warm[0] == Begun(0, min(length // BLOCK * BLOCK, length - 1))
    assert cold[1:] == warm[1:]


def test_the_size_of_blocks_changes_while_a_prompt_is_read(loaded, make_generator, small_sky, tmp_path) -> None:
    RunRecord(tmp_path).save(Running("local", small_sky.constellation, dict(small_sky.processes)))
    cache = PromptCache(*loaded, RunningSource(RunRecord(tmp_path)))
    generator = make_generator(cache)
    cold = run(generator)
    settled(cache)
    events: list[Event] = []

    def tell(event: Event) -> None:
        events.append(event)
        if isinstance(event, Begun):
            RunRecord(tmp_path).clear()
            cache.get([1], lambda: False)  # the constellation has gone: blocks have the size of another one now

    settings = Sampling(max_tokens=8, temperature=0.0, top_p=1.0, seed=None, stop=(), choices=1)
    finish(generator, Job([PROMPT], settings, tell))
    assert cache.block_tokens != BLOCK
    assert events[0] == Begun(0, 96)
    assert events[1:] == cold[1:]
    cache.close()


def test_choices_do_not_disturb_each_other(cache, generator) -> None:
    events = run(generator, choices=3)
    texts = ["".join(event.text for event in events if isinstance(event, Piece) and event.choice == one) for one in range(3)]
    assert len(set(texts)) == 1
    assert [event for event in events if isinstance(event, Finished)] == [Finished(one, "length", 8) for one in range(3)]


def test_a_prompt_that_nobody_waits_for_is_not_computed_to_its_end_but_kept(make_generator, cache, monkeypatch) -> None:
    generator = make_generator(piece_tokens=2 * BLOCK)
    prompt = [(11 + 3 * index) % 90 for index in range(100)]
    pieces: list[int] = []
    prefill = HuggingFaceEngine.prefill

    def counted(self, tokens, past=None):
        pieces.append(len(tokens))
        return prefill(self, tokens, past)

    monkeypatch.setattr(HuggingFaceEngine, "prefill", counted)
    events = run(generator, prompt, cancel_after=1)  # Begun is the first event
    assert isinstance(events[-1], Ended)
    assert isinstance(events[-1].error, Cancelled)
    assert pieces == []
    events = run(generator, prompt, cancel_after=4)
    assert [type(event) for event in events] == [Begun, Piece, Piece, Piece, Ended]
    settled(cache)
    assert run(generator, prompt)[0] == Begun(0, 96)


def test_an_error_of_the_model_is_told_and_the_next_job_runs(cache, generator, monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Batch, "read", lambda *_: 1 / 0)
        events = run(generator)
    assert isinstance(events[-1].error, ZeroDivisionError)
    with monkeypatch.context() as patch:
        patch.setattr(Batch, "step", lambda *_: 1 / 0)
        events = run(generator)
    assert [type(event) for event in events] == [Begun, Piece, Ended]
    assert isinstance(events[-1].error, ZeroDivisionError)
    assert run(generator)[-1] == Ended()


def job_of(prompt: list[int], events: list[Event], **settings: object) -> Job:
    sampling = Sampling(**{"max_tokens": 8, "temperature": 0.0, "top_p": 1.0, "seed": None, "stop": (), "choices": 1, **settings})
    return Job([prompt], sampling, events.append)


def text(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, Piece))


def test_answers_together_are_those_of_one_by_one(loaded, cache, generator) -> None:
    prompts = [
        [(seed + step * index) % 90 for index in range(length)]
        for seed, step, length in ((1, 7, 5), (2, 11, 100), (3, 13, 33), (4, 17, 300), (5, 19, 16), (6, 23, 64))
    ]
    settings = [{"max_tokens": 20 + 30 * index, "seed": index, "temperature": index % 2 * 0.7} for index in range(len(prompts))]
    alone = Generator(*loaded, cache, answers_max=1)
    one_by_one = [run(alone, prompt, **words) for prompt, words in zip(prompts, settings, strict=True)]
    alone.close()
    together: list[list[Event]] = [[] for _ in prompts]
    finish(generator, *(job_of(*words[:2], **words[2]) for words in zip(prompts, together, settings, strict=True)))
    assert [text(events) for events in together] == [text(events) for events in one_by_one]
    assert all(events[-1] == Ended() for events in together)


def test_rows_run_together_and_all_get_their_first_token_before_one_is_done(generator, monkeypatch) -> None:
    steps: list[int] = []
    step = Batch.step
    monkeypatch.setattr(Batch, "step", lambda self, tokens, rows: steps.append(len(rows)) or step(self, tokens, rows))
    events: list[list[Event]] = [[] for _ in range(4)]
    jobs = [job_of([50 + index, *PROMPT], events[index], max_tokens=10_000) for index in range(4)]
    for job in jobs:
        generator.admit(job)
    while not all(any(isinstance(event, Piece) for event in each) for each in events):
        assert generator.turn() == []
    generator.turn()
    assert steps[-1] == 4
    for job in jobs:
        job.cancelled.set()
    assert set(generator.turn()) == set(jobs)
    assert not generator.busy


def test_a_prompt_that_begins_as_one_beside_it_is_not_read_twice(loaded, generator, monkeypatch) -> None:
    monkeypatch.setattr(PromptCache, "get", lambda self, *_: self.engine.empty_cache())  # nothing comes from the sky
    document = [(5 + 3 * index) % 90 for index in range(20 * BLOCK)]
    alone = [text(run(generator, [*document, question])) for question in (1, 2)]
    events: list[list[Event]] = [[], []]
    finish(generator, *(job_of([*document, question], events[question - 1]) for question in (1, 2)))
    assert [each[0] for each in events] == [Begun(0, 0), Begun(0, len(document))]
    assert [text(each) for each in events] == alone


def test_who_goes_away_frees_a_place_and_disturbs_nobody(generator) -> None:
    wanted = text(run(generator, max_tokens=60))
    events: list[list[Event]] = [[], [], []]
    jobs = [job_of([70 + index, *PROMPT] if index else PROMPT, events[index], max_tokens=60) for index in range(3)]
    for job in jobs:
        generator.admit(job)
    while not all(any(isinstance(event, Piece) for event in each) for each in events):
        generator.turn()
    jobs[1].cancelled.set()
    assert generator.turn() == [jobs[1]]
    assert isinstance(events[1][-1].error, Cancelled)
    while generator.busy:
        generator.turn()
    assert text(events[0]) == wanted
    assert events[0][-1] == events[2][-1] == Ended()


def test_more_answers_than_places(generator) -> None:
    events = run(generator, choices=11, max_tokens=5)
    assert sorted(event.choice for event in events if isinstance(event, Finished)) == list(range(11))
    assert generator.room


def test_an_answer_that_fails_takes_only_its_job_along(generator, monkeypatch) -> None:
    events: list[list[Event]] = [[], []]
    good, bad = (job_of([80 + index, *PROMPT], events[index], max_tokens=30) for index in range(2))
    tell = bad.tell

    def fail(event: Event) -> None:
        tell(event)
        if len([one for one in events[1] if isinstance(one, Piece)]) == 3 and isinstance(event, Piece):
            raise ZeroDivisionError

    bad.tell = fail
    finish(generator, good, bad)
    assert isinstance(events[1][-1].error, ZeroDivisionError)
    assert events[0][-1] == Ended()
    assert [event for event in events[0] if isinstance(event, Finished)] == [Finished(0, "length", 30)]
