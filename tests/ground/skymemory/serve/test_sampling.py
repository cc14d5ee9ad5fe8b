"""Greedy is greedy, a seed is a seed, and what is cut off is not drawn."""

import torch

from skymemory.serve.sampling import Sampling, TokenSampler

LOGITS = torch.log(torch.tensor([0.05, 0.5, 0.15, 0.3]))


def drawn(count: int = 2000, choice: int = 0, logits: torch.Tensor = LOGITS, **settings: object) -> list[int]:
    sampling = Sampling(**{"max_tokens": 1, "temperature": 1.0, "top_p": 1.0, "seed": 7, "stop": (), "choices": 1, **settings})
    sampler = TokenSampler(sampling, choice)
    return [sampler.next(logits) for _ in range(count)]


def test_temperature_0_is_greedy() -> None:
    assert set(drawn(50, temperature=0.0, seed=None)) == {1}


def test_a_seed_gives_the_same_again_and_choices_differ() -> None:
    assert drawn() == drawn()
    assert drawn() != drawn(choice=1)
    assert drawn(seed=-1) == drawn(seed=-1)
    assert drawn(seed=None) != drawn(seed=None)


def test_tokens_come_as_often_as_they_are_likely() -> None:
    tokens = drawn(20_000)
    for token, share in enumerate((0.05, 0.5, 0.15, 0.3)):
        assert abs(tokens.count(token) / 20_000 - share) < 0.02


def test_top_p_keeps_the_likeliest_that_reach_it() -> None:
    assert set(drawn(top_p=0.5)) == {1}
    assert set(drawn(top_p=0.51)) == {1, 3}
    assert set(drawn(top_p=0.96)) == {0, 1, 2, 3}
    assert set(drawn(50, top_p=1e-9)) == {1}


def test_a_low_temperature_sharpens() -> None:
    assert drawn(temperature=0.1).count(1) > 1900
    assert set(drawn(50, temperature=5e-324)) == {1}


def test_half_precision_is_drawn_from_too() -> None:
    assert set(drawn(logits=LOGITS.bfloat16())) == {0, 1, 2, 3}
