"""What the model computes, without HTTP."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from skymemory.demo.model import load
from skymemory.engines.huggingface import HuggingFaceEngine
from skymemory.serve import generation
from skymemory.serve.generation import Begun, Cancelled, Ended, Event, Finished, Generator, Job, Piece
from skymemory.serve.prompt_cache import PromptCache
from skymemory.serve.sampling import Sampling

BLOCK = 16
PROMPT = [(3 + 7 * index) % 90 for index in range(100)]

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def loaded(babbler: Path):
    return load(str(babbler), device="cpu")


@pytest.fixture
def cache(loaded, small_source) -> Iterator[PromptCache]:
    cache = PromptCache(*loaded, small_source())
    yield cache
    cache.close()


@pytest.fixture
def generator(loaded, cache: PromptCache) -> Generator:
    return Generator(*loaded, cache)


def run(generator: Generator, prompt: list[int] = PROMPT, cancel_after: int | None = None, **settings: object) -> list[Event]:
    sampling = Sampling(
        **{"max_tokens": 8, "temperature": 0.0, "top_p": 1.0, "seed": None, "stop": (), "choices": 1, **settings}
    )
    events: list[Event] = []
    job = Job([prompt], sampling, events.append)

    def tell(event: Event) -> None:
        events.append(event)
        if len(events) == cancel_after:
            job.cancelled.set()

    job.tell = tell
    generator.run(job)
    return events


def settled(cache: PromptCache) -> None:
    with cache._changed:
        cache._changed.wait_for(lambda: not cache.waiting)


def test_blocks_from_the_sky_give_the_same_logits_to_the_last_bit(loaded, cache, generator, monkeypatch) -> None:
    seen: list[torch.Tensor] = []
    step = Generator._step

    def watched(self, tokens, past):
        seen.append(step(self, tokens, past))
        return seen[-1]

    monkeypatch.setattr(Generator, "_step", watched)
    monkeypatch.setattr(generation, "_PIECE_TOKENS", 40)
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


def test_choices_do_not_disturb_each_other(cache, generator) -> None:
    events = run(generator, choices=3)
    texts = ["".join(event.text for event in events if isinstance(event, Piece) and event.choice == one) for one in range(3)]
    assert len(set(texts)) == 1
    assert [event for event in events if isinstance(event, Finished)] == [Finished(one, "length", 8) for one in range(3)]


def test_a_prompt_that_nobody_waits_for_is_not_computed_to_its_end_but_kept(cache, generator, monkeypatch) -> None:
    monkeypatch.setattr(generation, "_PIECE_TOKENS", 2 * BLOCK)
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
        patch.setattr(Generator, "_step", lambda *_: 1 / 0)
        events = run(generator)
    assert isinstance(events[-1].error, ZeroDivisionError)
    assert run(generator)[-1] == Ended()
