"""A few prefills are measured before the first plan, once, and few of them on slow machines."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from skymemory.prompt.codecs import get_codec
from skymemory.prompt.huggingface import HuggingFaceEngine
from skymemory.segments.controller import Request
from skymemory.segments.gate import Gate
from skymemory.segments.linker import Linked, Linker
from skymemory.segments.planner import PREFILL_S, Planner

pytestmark = pytest.mark.model


class Counted(Linker):
    """Linker that notes how many tokens it was given, and reports so many seconds for each, however busy the machine is."""

    def __init__(self, model: Any, token_s: float = 1e-5) -> None:
        super().__init__(model)
        self.sizes: list[int] = []
        self._token_s = token_s

    def link(self, tokens: Any, *words: Any, **more: Any) -> Linked:
        self.sizes.append(len(tokens))
        linked = super().link(tokens, *words, **more)
        object.__setattr__(linked.report, "total_s", self._token_s * len(tokens))
        return linked


@pytest.fixture
def model(make_llama: Callable[..., Any]) -> Any:
    return make_llama()


def planner(model: Any) -> Planner:
    return Planner(HuggingFaceEngine(model), get_codec("raw"), 16, Gate("here"))


def is_known(plans: Planner) -> bool:
    return plans.controller.plan(Request(100, 50, 1), [], time.monotonic()).expected_s < float("inf")


def test_prefills_are_measured_once_and_then_plans_are_made(model: Any) -> None:
    plans, linker = planner(model), Counted(model)
    assert not is_known(plans)
    plans.measure(linker, list(range(3, 203)))
    assert is_known(plans)
    assert linker.sizes[:3] == [32, 32, 64]
    assert len(linker.sizes) <= 5
    done = len(linker.sizes)
    plans.measure(linker, list(range(3, 203)))
    assert len(linker.sizes) == done


def test_a_slow_model_is_measured_with_few_tokens(model: Any) -> None:
    plans, linker = planner(model), Counted(model, token_s=PREFILL_S / 32)
    plans.measure(linker, list(range(3, 203)))
    assert linker.sizes == [32] * 4
    assert is_known(plans)


@pytest.mark.parametrize("tokens", [2, 20])
def test_a_short_prompt_is_measured_whole(model: Any, tokens: int) -> None:
    plans, linker = planner(model), Counted(model)
    plans.measure(linker, list(range(3, 3 + tokens)))
    assert linker.sizes == [tokens] * 4
    assert is_known(plans)
