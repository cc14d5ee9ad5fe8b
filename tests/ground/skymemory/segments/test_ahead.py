"""Layers that are computed before it is known what can be loaded."""

from __future__ import annotations

import pytest
import torch
from transformers import DynamicCache

from skymemory.segments.errors import CancelledLinkError
from skymemory.segments.linker import Linked, Linker
from skymemory.segments.linking import Linking
from skymemory.segments.pieces import Piece, TensorSource
from skymemory.segments.strategy import Strategy
from support.small_models import small_model

pytestmark = pytest.mark.model

LAYERS = 5
LENGTH = 110
PREFIX = 50
SEGMENTS = ((6, 30), (40, 25), (80, 20))
MODEL = small_model("llama")
LINKER = Linker(MODEL)
TOKENS = torch.randint(3, 250, (LENGTH,), generator=torch.Generator().manual_seed(1)).tolist()
EXACT = Strategy.parse("exact")


def ahead(layers: int) -> Linking:
    work = LINKER.begin(TOKENS)
    work.compute_ahead(layers, lambda: False)
    return work


def pieces() -> list[Piece]:
    return [Piece(start, count, TensorSource(LINKER.compute(TOKENS[start : start + count]))) for start, count in SEGMENTS]


def prefilled(tokens: int) -> DynamicCache:
    with torch.no_grad():
        return MODEL(torch.tensor([TOKENS[:tokens]]), use_cache=True).past_key_values


def equal(one: DynamicCache, other: DynamicCache, layers: range = range(LAYERS)) -> bool:
    return all(
        torch.equal(one.layers[index].keys, other.layers[index].keys)
        and torch.equal(one.layers[index].values, other.layers[index].values)
        for index in layers
    )


def close(one: DynamicCache, other: DynamicCache) -> bool:
    return all(
        torch.allclose(a.keys, b.keys, 1e-4, 1e-4) and torch.allclose(a.values, b.values, 1e-4, 1e-4)
        for a, b in zip(one.layers, other.layers, strict=True)
    )


@pytest.mark.parametrize("layers", range(LAYERS + 1))
def test_the_whole_is_a_prefill_bit_by_bit(layers: int) -> None:
    work = ahead(layers)
    assert work.is_complete == (layers == LAYERS)
    linked = LINKER.link(work, [], EXACT)
    assert equal(linked.cache, prefilled(LENGTH - 1))
    report = linked.report
    assert (report.ahead_layers, report.rows, report.exact_tokens) == (layers, (LENGTH - 1,) * LAYERS, LENGTH - 1)


@pytest.mark.parametrize("word", ["naive", "lego:3", "blend:15", "random:15"])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_segments_are_linked_as_if_nothing_had_been_computed_ahead(word: str, layers: int) -> None:
    for switch in (layers, 3):
        linked = LINKER.link(ahead(layers), pieces(), Strategy.parse(word), switch_layer=switch)
        without = LINKER.link(TOKENS, pieces(), Strategy.parse(word), switch_layer=switch)
        assert equal(linked.cache, without.cache)
        assert linked.report.linked_tokens == without.report.linked_tokens > 0
        assert (linked.report.rows, linked.report.switch_layer) == (without.report.rows, switch)


@pytest.mark.parametrize("layers", [1, 3, LAYERS - 1])
@pytest.mark.parametrize("word", ["exact", "naive"])
def test_a_prefix_that_comes_late_counts_from_the_next_layer_on(word: str, layers: int) -> None:
    prefix, full = prefilled(PREFIX), prefilled(LENGTH - 1)
    linked = LINKER.link(ahead(layers), pieces() if word == "naive" else [], Strategy.parse(word), prefix=prefix)
    assert equal(linked.cache, full, range(layers))
    report = linked.report
    assert report.rows[:layers] == (LENGTH - 1,) * layers
    assert max(report.rows[layers:]) <= LENGTH - 1 - PREFIX
    assert report.prefix_tokens == PREFIX
    if word == "exact":
        assert close(linked.cache, full)
    garbage = prefilled(PREFIX)
    for layer in garbage.layers[:layers]:
        layer.keys.fill_(torch.nan)
    again = LINKER.link(ahead(layers), pieces() if word == "naive" else [], Strategy.parse(word), prefix=garbage)
    assert equal(again.cache, linked.cache)  # layers that are there are not taken from the prefix


def test_a_prefix_of_all_tokens_leaves_nothing_to_do() -> None:
    linked = LINKER.link(ahead(2), [], EXACT, prefix=prefilled(LENGTH))
    assert equal(linked.cache, prefilled(LENGTH - 1), range(2))
    assert close(linked.cache, prefilled(LENGTH - 1))
    assert linked.report.rows == (LENGTH - 1,) * 2
    # ... and nothing of it is taken where all is there
    whole = LINKER.link(ahead(LAYERS), [], EXACT, prefix=prefilled(PREFIX))
    assert (whole.report.prefix_tokens, whole.report.rows) == (0, (LENGTH - 1,) * LAYERS)


def test_layers_are_computed_until_no_more_is_wanted() -> None:
    work, asked = LINKER.begin(TOKENS), iter([False, False, False, True])
    work.compute_ahead(LAYERS, asked.__next__)
    assert work.ahead_layers == 2
    work.compute_ahead(LAYERS, lambda: True)
    work.compute_ahead(1, lambda: False)
    assert work.ahead_layers == 2
    work.compute_ahead(4, lambda: False)
    assert (work.ahead_layers, work.is_complete) == (4, False)
    assert equal(LINKER.link(work, [], EXACT).cache, prefilled(LENGTH - 1))


def test_who_waits_no_more_ends_it_between_two_layers() -> None:
    work = LINKER.begin(TOKENS, iter([False, False, True]).__next__)
    with pytest.raises(CancelledLinkError):
        work.compute_ahead(LAYERS, lambda: False)
    assert work.ahead_layers < LAYERS


def test_no_layer_that_is_computed_may_be_loaded() -> None:
    with pytest.raises(ValueError, match="the switch layer is 1; allowed for naive are 2 to 5"):
        LINKER.link(ahead(2), pieces(), Strategy.parse("naive"), switch_layer=1)
    assert LINKER.link(ahead(2), pieces(), Strategy.parse("naive")).report.switch_layer == 2


class Gone:
    """A segment that does not come."""

    def layer(self, index: int) -> torch.Tensor | None:
        return None


class Wrong:
    """A segment that breaks the linker itself."""

    def layer(self, index: int) -> torch.Tensor:
        return object()  # type: ignore[return-value]


@pytest.mark.parametrize("source", [Gone(), Wrong()])
def test_what_does_not_come_is_computed(source: Gone | Wrong) -> None:
    linked: Linked = LINKER.link(ahead(1), [Piece(40, 25, source)], Strategy.parse("naive"), switch_layer=2)
    assert equal(linked.cache, prefilled(LENGTH - 1))
    assert linked.report.why
    assert linked.report.linked_tokens == 0


def test_a_prompt_of_one_token() -> None:
    work = LINKER.begin([5])
    work.compute_ahead(LAYERS, lambda: False)
    assert LINKER.link(work, [], EXACT).cache.get_seq_length() == 0
    with pytest.raises(ValueError, match="a prompt has one token or more"):
        LINKER.begin([])
