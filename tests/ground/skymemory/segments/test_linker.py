"""Linked prompts: what must be equal to a prefill is, whatever comes late or broken."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import DynamicCache

from skymemory.prompt.fingerprint import Fingerprint
from skymemory.prompt.huggingface import HuggingFaceEngine, LinkedCache
from skymemory.segments.errors import CancelledLinkError, CancelledSegmentError
from skymemory.segments.linker import Linked, Linker
from skymemory.segments.pieces import Piece, TensorSource
from skymemory.segments.strategy import Strategy
from support.small_models import MODELS, small_model

pytestmark = pytest.mark.model

LAYERS = 5
SEGMENTS = ((6, 30), (40, 25), (65, 9), (80, 20))  # start and tokens; the second and the third touch
LENGTH = 110
ALL = ("exact", "naive", "lego:3", "blend:15", "blend:60", "random:15")
DTYPES = (torch.float32, torch.bfloat16)
FULL = ("exact", "lego:1024", "blend:100", "random:100")


def some_tokens(number: int, seed: int = 1) -> list[int]:
    return torch.randint(3, 250, (number,), generator=torch.Generator().manual_seed(seed)).tolist()


class Garbage:
    """Segments whose numbers are not those of the model."""

    def __init__(self, like: torch.Tensor, value: float = torch.nan) -> None:
        self._layer = torch.full_like(like[0], value)

    def layer(self, index: int) -> torch.Tensor | None:
        return self._layer


@dataclass
class Late:
    """A segment that does not come from a layer on; `how` tells what happens instead."""

    tensor: torch.Tensor
    at: int
    how: str = "none"

    def layer(self, index: int) -> torch.Tensor | None:
        if index < self.at:
            return self.tensor[index - 1]
        if self.how == "raises":
            raise OSError("the link is gone")
        return {"none": None, "shape": self.tensor[0, :, :, :-1], "batch": self.tensor[:1].expand(3, *self.tensor[0].shape)}[
            self.how
        ]


def full_cache(model, tokens: list[int]) -> DynamicCache:
    with torch.no_grad():
        return model(torch.tensor([tokens]), use_cache=True).past_key_values


def pieces_of(linker: Linker, tokens: list[int], segments=SEGMENTS, sinks: int = 0) -> list[Piece]:
    return [
        Piece(start, number, TensorSource(linker.compute(tokens[start : start + number], sinks=sinks, bos=1)), sinks)
        for start, number in segments
    ]


def equal(one: DynamicCache, other: DynamicCache, layers: range = range(LAYERS), tokens: slice = slice(None)) -> bool:
    return all(
        torch.equal(one.layers[index].keys[:, :, tokens], other.layers[index].keys[:, :, tokens])
        and torch.equal(one.layers[index].values[:, :, tokens], other.layers[index].values[:, :, tokens])
        for index in layers
    )


def close(one: DynamicCache, other: DynamicCache, tolerance: float = 1e-4) -> bool:
    return all(
        torch.allclose(a.keys, b.keys, tolerance, tolerance) and torch.allclose(a.values, b.values, tolerance, tolerance)
        for a, b in zip(one.layers, other.layers, strict=True)
    )


@pytest.fixture(scope="module")
def llama():
    return small_model("llama")


@pytest.fixture(scope="module")
def linker(llama) -> Linker:
    return Linker(llama)


@pytest.fixture(scope="module")
def tokens() -> list[int]:
    return some_tokens(LENGTH)


def test_a_prompt_that_nobody_waits_for_is_given_up_between_two_layers(linker, tokens) -> None:
    for strategy in ("naive", "blend:15"):
        with pytest.raises(CancelledLinkError):
            linker.link(
                tokens, pieces_of(linker, tokens), Strategy.parse(strategy), cancelled=iter([False, False, True]).__next__
            )


def test_a_segment_that_nobody_waits_for_is_given_up_between_two_layers(linker, tokens) -> None:
    looks = iter([False, False, True])
    with pytest.raises(CancelledSegmentError):
        linker.compute(tokens, cancelled=looks.__next__)
    assert next(looks, None) is None, "it was given up before it was asked to"


@pytest.fixture(scope="module")
def full(llama, tokens) -> DynamicCache:
    return full_cache(llama, tokens[:-1])


@pytest.mark.parametrize(
    ("name", "dtype", "attention"),
    [
        *((name, dtype, attention) for name in ("llama", "qwen3") for dtype in DTYPES for attention in ("sdpa", "eager")),
        *((name, dtype, "sdpa") for name in MODELS if name not in {"llama", "qwen3"} for dtype in DTYPES),
    ],
)
def test_all_rows_computed_again_is_a_prefill_bit_by_bit(name: str, dtype: torch.dtype, attention: str, tokens) -> None:
    model = small_model(name, dtype, attention)
    linker = Linker(model)
    expected = full_cache(model, tokens[:-1])
    captured = pieces_of(linker, tokens)
    garbage = [Piece(start, number, Garbage(linker.compute(tokens[:number]))) for start, number in SEGMENTS]
    switches = (None, 2, LAYERS - 2, LAYERS - 1, LAYERS) if name == "llama" else (None, 2)
    for strategy in FULL:
        for pieces in captured, garbage:
            for switch in switches:
                linked = linker.link(tokens, pieces, Strategy.parse(strategy), switch_layer=switch)
                assert linked.report.why == ""
                assert equal(linked.cache, expected), (strategy, switch)
    naive = linker.link(tokens, captured, Strategy.parse("naive"))
    assert not close(naive.cache, expected)


@pytest.mark.parametrize("strategy", ALL)
@pytest.mark.parametrize("switch", [None, 1, 2, 3])
def test_layers_up_to_the_switch_layer_and_text_before_segments_are_exact(linker, tokens, full, strategy, switch) -> None:
    linked = linker.link(tokens, pieces_of(linker, tokens), Strategy.parse(strategy), switch_layer=switch)
    report = linked.report
    assert equal(linked.cache, full, range(min(report.switch_layer + 1, LAYERS)))
    assert close_tokens(linked.cache, full, report.exact_tokens)
    assert report.exact_tokens == (LENGTH - 1 if strategy == "exact" else SEGMENTS[0][0])
    # Nobody else's rows are touched: a segment's first values are those that it was computed with
    if strategy != "exact":
        assert report.linked_tokens == sum(number for _, number in SEGMENTS)
        assert report.rows[: report.switch_layer] == (LENGTH - 1,) * report.switch_layer
        assert max(report.rows[report.switch_layer :]) < LENGTH - 1


def close_tokens(one: DynamicCache, other: DynamicCache, tokens: int) -> bool:
    return all(
        torch.allclose(a.keys[:, :, :tokens], b.keys[:, :, :tokens], 1e-4, 1e-4)
        and torch.allclose(a.values[:, :, :tokens], b.values[:, :, :tokens], 1e-4, 1e-4)
        for a, b in zip(one.layers, other.layers, strict=True)
    )


def test_rows_are_as_many_as_the_strategies_say(linker, tokens) -> None:
    pieces = pieces_of(linker, tokens)
    linked = sum(number for _, number in SEGMENTS)
    text = LENGTH - 1 - linked

    def rows(strategy: str) -> tuple[int, ...]:
        return linker.link(tokens, pieces, Strategy.parse(strategy)).report.rows

    assert rows("naive") == (text,) * LAYERS
    assert rows("lego:3") == (text + 4 * 3,) * LAYERS
    assert rows("lego:20") == (text + 3 * 20 + 9,) * LAYERS
    assert rows("random:50") == (text + linked // 2,) * LAYERS
    assert rows("exact") == (LENGTH - 1,) * LAYERS
    # 1.3 times, as much as, and 0.7 times 50 %; the last layer has the rows of the one before
    assert rows("blend:50") == (LENGTH - 1, *(text + round(linked * share) for share in (0.65, 0.5, 0.35, 0.35)))
    report = linker.link(tokens, pieces, Strategy.parse("lego:3")).report
    assert report.recomputed_tokens == 12
    assert str(report.strategy) == "lego:3"
    assert report.total_s >= report.waited_s >= 0


def test_values_of_linked_rows_are_those_of_the_segment(linker, tokens) -> None:
    pieces = pieces_of(linker, tokens)
    linked = linker.link(tokens, pieces, Strategy.parse("naive"))
    for (start, number), piece in zip(SEGMENTS, pieces, strict=True):
        for index in range(1, LAYERS):
            assert torch.equal(linked.cache.layers[index].values[0, :, start : start + number], piece.source.layer(index)[1])


def test_a_blend_finds_the_rows_that_deviate(llama, linker, tokens, full) -> None:
    # All but five rows of a segment are exact: these five are found by their keys
    start, number = SEGMENTS[1]
    exact = torch.stack([torch.stack((layer.keys[0], layer.values[0])) for layer in full.layers[1:]])[
        :, :, :, start : start + number
    ]
    from skymemory.segments.decoder import Decoder

    decoder = Decoder(llama)
    turns = decoder.rows(torch.arange(start, start + number)[None], decoder.embed(torch.tensor([tokens[:1]]))).turns
    for index in range(LAYERS - 1):
        exact[index, 0] = decoder.rotations[index + 1].unrotate(exact[index, :1], *turns)[0]
    wrong = [2, 3, 11, 17, 24]
    broken = exact.clone()
    broken[..., wrong, :] += 1.0
    linked = linker.link(tokens, [Piece(start, number, TensorSource(broken))], Strategy.parse("blend:29"))  # 0.7 * 0.29 * 25 = 5
    assert close(linked.cache, full)
    random = linker.link(tokens, [Piece(start, number, TensorSource(broken))], Strategy.parse("random:29"))
    assert not close(random.cache, full)


@pytest.mark.parametrize("strategy", ["exact", "naive", "lego:3", "blend:15", "random:15", "lego0"])
def test_one_segment_at_the_beginning_is_exact(llama, linker, tokens, full, strategy) -> None:
    linked = linker.link(tokens, pieces_of(linker, tokens, [(0, 70)]), Strategy.parse(strategy))
    assert linked.report.exact_tokens == LENGTH - 1
    assert linked.report.linked_tokens == 70
    assert linked.report.rows[-1] == LENGTH - 1 - 70
    assert close(linked.cache, full, 1e-5)
    assert generated(llama, tokens, linked) == generated(llama, tokens, None)


def generated(model, tokens: list[int], linked: Linked | None) -> list[int]:
    cache = None if linked is None else linked.cache
    output = model.generate(torch.tensor([tokens]), past_key_values=cache, max_new_tokens=12, do_sample=False)
    return output[0, len(tokens) :].tolist()


@pytest.mark.parametrize("lossless", [True, False])
@pytest.mark.parametrize("sinks", [0, 4])
def test_a_segment_at_the_beginning_is_not_always_exact(linker, tokens, lossless, sinks) -> None:
    (piece,) = pieces_of(linker, tokens, [(0, 70)], sinks)
    piece = Piece(0, 70, piece.source, sinks, lossless)
    exact = lossless and sinks == 0
    for strategy in "exact", "naive", "blend:50":
        report = linker.link(tokens, [piece], Strategy.parse(strategy)).report
        assert report.exact_tokens == (LENGTH - 1 if exact or strategy == "exact" else 0)
        assert report.linked_tokens == (70 if exact or strategy != "exact" else 0)


@pytest.mark.parametrize("strategy", FULL)
def test_generate_takes_the_cache(llama, linker, tokens, strategy) -> None:
    linked = linker.link(tokens, pieces_of(linker, tokens), Strategy.parse(strategy))
    assert type(linked.cache) is (DynamicCache if linked.report.exact_tokens == LENGTH - 1 else LinkedCache)
    assert linked.cache.get_seq_length() == LENGTH - 1
    assert generated(llama, tokens, linked) == generated(llama, tokens, None)


@pytest.mark.parametrize("prefix_tokens", [0, 3, 6, 20, 45, 70, LENGTH - 1, LENGTH])
@pytest.mark.parametrize("strategy", ["exact", "naive", "lego:3", "blend:100", "random:100"])
def test_an_exact_prefix_comes_first(llama, linker, tokens, full, strategy, prefix_tokens) -> None:
    prefix = HuggingFaceEngine(llama).prefill(tokens[:prefix_tokens])
    linked = linker.link(tokens, pieces_of(linker, tokens), Strategy.parse(strategy), prefix=prefix)
    report = linked.report
    assert report.prefix_tokens == min(prefix_tokens, LENGTH - 1)
    assert equal_prefix(linked.cache, prefix, report.prefix_tokens)
    assert linked.cache.get_seq_length() == LENGTH - 1
    assert prefix.get_seq_length() == prefix_tokens
    assert close_tokens(linked.cache, full, report.exact_tokens)
    assert report.exact_tokens >= report.prefix_tokens
    if strategy in FULL:
        assert close(linked.cache, full)
    if strategy == "naive":
        left = sum(max(0, start + number - max(start, prefix_tokens)) for start, number in SEGMENTS)
        assert report.linked_tokens == left
        assert report.rows == ((LENGTH - 1 - report.prefix_tokens - left,) * LAYERS if prefix_tokens < LENGTH - 1 else ())


def equal_prefix(one: DynamicCache, prefix: DynamicCache, tokens: int) -> bool:
    return (
        tokens == 0
        or equal(one, prefix, tokens=slice(tokens))
        or all(torch.equal(a.keys[:, :, :tokens], b.keys[:, :, :tokens]) for a, b in zip(one.layers, prefix.layers, strict=True))
    )


@pytest.mark.parametrize("how", ["none", "raises", "shape", "batch"])
@pytest.mark.parametrize("strategy", ["naive", "lego:3", "blend:15"])
def test_a_segment_that_does_not_come_in_time_is_computed(linker, tokens, full, strategy, how) -> None:
    pieces = pieces_of(linker, tokens)
    late = Piece(pieces[1].start, pieces[1].tokens, Late(linker.compute(tokens[:25]), 0, how))
    linked = linker.link(tokens, [pieces[0], late, *pieces[2:]], Strategy.parse(strategy))
    without = linker.link(tokens, [pieces[0], *pieces[2:]], Strategy.parse(strategy))
    assert linked.report.why == "1 of 4 segments did not come in time"
    assert equal(linked.cache, without.cache)
    assert linked.report.rows == without.report.rows
    nothing = linker.link(tokens, [late], Strategy.parse(strategy))
    assert nothing.report.why == "1 of 1 segments did not come in time"
    assert nothing.report.linked_tokens == 0
    assert nothing.report.exact_tokens == LENGTH - 1
    assert equal(nothing.cache, full)


@pytest.mark.parametrize("how", ["none", "raises", "shape"])
@pytest.mark.parametrize("strategy", ["naive", "lego:3", "blend:15", "random:30"])
@pytest.mark.parametrize("at", range(3, LAYERS))
def test_a_layer_that_comes_too_late_has_all_computed_from_the_switch_layer_on(linker, tokens, full, strategy, at, how) -> None:
    pieces = pieces_of(linker, tokens, [(0, 30), (40, 25), (80, 20)])
    late = Piece(40, 25, Late(linker.compute(tokens[40:65]), at, how))
    linked = linker.link(tokens, [pieces[0], late, pieces[2]], Strategy.parse(strategy), switch_layer=1)
    assert linked.report.why == f"layer {at} of the segment at position 40 did not come in time"
    assert linked.report.rows == (LENGTH - 1,) * LAYERS
    assert linked.report.linked_tokens == linked.report.recomputed_tokens == 0
    assert linked.report.exact_tokens == LENGTH - 1
    assert equal(linked.cache, full)


@pytest.mark.parametrize("at", range(1, LAYERS))
def test_an_exact_segment_may_be_late_too(linker, tokens, full, at) -> None:
    late = Piece(0, 30, Late(linker.compute(tokens[:30]), at))
    linked = linker.link(tokens, [late], Strategy.parse("exact"))
    assert "did not come in time" in linked.report.why
    assert linked.report.exact_tokens == LENGTH - 1
    assert equal(linked.cache, full)


class Bomb:
    """A source whose tensors fail only when they are used."""

    class _Tensor:
        def dim(self) -> int:
            raise RuntimeError("no such luck")

    def layer(self, index: int) -> object:
        return self._Tensor()


@pytest.mark.parametrize("prefix_tokens", [0, 20])
def test_an_error_on_the_way_has_all_computed(llama, linker, tokens, full, prefix_tokens) -> None:
    prefix = HuggingFaceEngine(llama).prefill(tokens[:prefix_tokens])
    linked = linker.link(tokens, [Piece(40, 10, Bomb())], Strategy.parse("naive"), prefix=prefix)
    assert linked.report.why == "an error: RuntimeError('no such luck')"
    assert linked.report.linked_tokens == 0
    assert linked.report.exact_tokens == LENGTH - 1
    assert close(linked.cache, full)


def test_lego0_needs_segments_behind_sinks(linker, tokens) -> None:
    with pytest.raises(ValueError, match="was computed behind 0 sinks; lego0 needs segments that were computed behind 4"):
        linker.link(tokens, pieces_of(linker, tokens), Strategy.parse("lego0"))
    linked = linker.link(tokens, pieces_of(linker, tokens, sinks=4), Strategy.parse("lego0"))
    assert linked.report.recomputed_tokens == 0
    assert linked.report.linked_tokens == 84
    with pytest.raises(ValueError, match="behind 4 sinks needs a model with a BOS token"):
        linker.compute(tokens[:10], sinks=4)


def parts_of(pieces: list[Piece], at: int) -> list[Piece]:
    """Cut each segment in two; the source of each part knows its part alone."""
    parts = []
    for piece in pieces:
        for begin, end in ((0, at), (at, piece.tokens)):
            tensor = torch.stack([piece.source.layer(index)[..., begin:end, :] for index in range(1, LAYERS)])
            parts.append(Piece(piece.start + begin, end - begin, TensorSource(tensor), first=begin))
    return parts


@pytest.mark.parametrize("strategy", ["naive", "lego:3", "lego:8", "blend:30", "random:30"])
def test_a_segment_may_come_in_parts(linker, tokens, strategy) -> None:
    pieces = pieces_of(linker, tokens, [(0, 20), *SEGMENTS[1:]])
    whole = linker.link(tokens, pieces, Strategy.parse(strategy))
    parts = linker.link(tokens, parts_of(pieces, 5), Strategy.parse(strategy))
    assert parts.report.rows == whole.report.rows
    assert parts.report.exact_tokens == whole.report.exact_tokens == SEGMENTS[1][0]
    assert equal(parts.cache, whole.cache)
    with pytest.raises(ValueError, match="does not lie behind"):
        linker.link(tokens, [Piece(3, 5, pieces[0].source, first=4)], Strategy.parse(strategy))


@pytest.mark.parametrize("strategy", ["naive", "lego:8", "blend:30", "exact"])
def test_what_a_segment_at_the_beginning_lacks_is_computed_and_all_is_exact(linker, tokens, full, strategy) -> None:
    (piece,) = pieces_of(linker, tokens, [(0, 60)])
    _, behind = parts_of([piece], 20)
    linked = linker.link(tokens, [behind], Strategy.parse(strategy))
    assert linked.report.linked_tokens == 40
    assert linked.report.exact_tokens == LENGTH - 1
    assert close(linked.cache, full)


@pytest.mark.parametrize(
    ("segments", "why"),
    [
        ([(5, 10), (14, 10)], "positions 14 to 23 does not lie behind the one before"),
        ([(20, 10), (5, 10)], "does not lie behind the one before"),
        ([(105, 10)], "in the prompt of 110 tokens"),
        ([(-1, 10)], "does not lie behind"),
        ([(5, 0)], "does not lie behind"),
    ],
)
def test_pieces_that_do_not_fit_are_errors(linker, tokens, segments, why) -> None:
    source = TensorSource(linker.compute(tokens[:10]))
    with pytest.raises(ValueError, match=why):
        linker.link(tokens, [Piece(start, number, source) for start, number in segments], Strategy.parse("naive"))


def test_other_bad_input_is_an_error(linker, tokens) -> None:
    naive, blend = Strategy.parse("naive"), Strategy.parse("blend:15")
    with pytest.raises(ValueError, match="the model has 0 to 255"):
        linker.link([3, 256], [], naive)
    with pytest.raises(ValueError, match="the model has 0 to 255"):
        linker.compute([-1])
    with pytest.raises(ValueError, match="a prompt has one token or more"):
        linker.link([], [], naive)
    with pytest.raises(ValueError, match="a segment has one token or more"):
        linker.compute([])
    with pytest.raises(ValueError, match="the strategy auto is to be chosen before"):
        linker.link(tokens, [], Strategy.parse("auto"))
    with pytest.raises(ValueError, match="the switch layer is 0; allowed for blend:15 are 1 to 5"):
        linker.link(tokens, [], blend, switch_layer=0)
    with pytest.raises(ValueError, match="the switch layer is 6; allowed for naive are 0 to 5"):
        linker.link(tokens, [], naive, switch_layer=6)


@pytest.mark.parametrize("number", [1, 2])
def test_short_prompts(llama, linker, number) -> None:
    tokens = some_tokens(number)
    linked = linker.link(tokens, [Piece(0, number, TensorSource(linker.compute(tokens)))], Strategy.parse("naive"))
    assert linked.cache.get_seq_length() == number - 1
    assert generated(llama, tokens, linked) == generated(llama, tokens, None)


def test_a_segment_at_the_end_leaves_its_last_token_out(llama, linker, tokens) -> None:
    linked = linker.link(tokens, pieces_of(linker, tokens, [(60, LENGTH - 60)]), Strategy.parse("naive"))
    assert linked.report.linked_tokens == LENGTH - 60 - 1
    assert len(generated(llama, tokens, linked)) == 12


@pytest.mark.parametrize("strategy", ["naive", "lego:3", "blend:100", "random:100", "exact"])
def test_long_prompts_are_computed_in_parts(llama, linker, tokens, full, strategy) -> None:
    pieces = pieces_of(linker, tokens)
    whole = linker.link(tokens, pieces, Strategy.parse(strategy))
    parts = Linker(llama, prefill_tokens=16).link(tokens, pieces, Strategy.parse(strategy))
    assert close(whole.cache, parts.cache, 1e-4)
    assert whole.report.rows == parts.report.rows


@pytest.mark.parametrize("strategy", ALL)
def test_a_batch_is_linked_as_its_rows_are(linker, strategy) -> None:
    prompts = [some_tokens(LENGTH, seed) for seed in (5, 6, 7)]
    batch = torch.tensor(prompts)
    pieces = [Piece(start, number, TensorSource(linker.compute(batch[:, start : start + number]))) for start, number in SEGMENTS]
    linked = linker.link(batch, pieces, Strategy.parse(strategy))
    if strategy.startswith("random"):  # a batch draws its own rows
        return
    for row, prompt in enumerate(prompts):
        alone = linker.link(prompt, pieces_of(linker, prompt), Strategy.parse(strategy))
        assert alone.report.rows == linked.report.rows
        for one, other in zip(alone.cache.layers, linked.cache.layers, strict=True):
            torch.testing.assert_close(one.keys[0], other.keys[row], rtol=1e-3, atol=1e-3)
            torch.testing.assert_close(one.values[0], other.values[row], rtol=1e-3, atol=1e-3)


def test_several_threads_may_link_and_the_model_may_be_digested_meanwhile(make_llama, tokenizer) -> None:
    model = make_llama(num_hidden_layers=LAYERS)
    fingerprint = Fingerprint(model, tokenizer)
    digest = fingerprint.digest()
    linker = Linker(model)
    prompts = [some_tokens(LENGTH, seed) for seed in range(6)]

    class Watching(TensorSource):
        def layer(self, index: int) -> torch.Tensor | None:
            assert Fingerprint(model, tokenizer).digest() == digest
            return super().layer(index)

    def link(tokens: list[int]) -> DynamicCache:
        pieces = [
            Piece(start, number, Watching(linker.compute(tokens[start : start + number]))) for start, number in SEGMENTS[:2]
        ]
        linked = linker.link(tokens, pieces, Strategy.parse("blend:30"))
        assert linked.report.why == ""
        return linked.cache

    one_by_one = [link(tokens) for tokens in prompts]
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(link, prompts))
    assert all(equal(one, other) for one, other in zip(one_by_one, together, strict=True))


@st.composite
def cuts(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    """Draw the length of a prompt, and segments in it that may touch each other and its ends."""
    bounds = sorted(draw(st.lists(st.integers(0, 60), min_size=2, max_size=8)))
    segments = [(low, high - low) for low, high in zip(bounds[::2], bounds[1::2], strict=False) if high > low]
    length = draw(st.integers(max(1, bounds[-1]), 62))
    return length, segments


@settings(max_examples=40)
@given(cut=cuts(), switch=st.integers(0, LAYERS), prefix_tokens=st.integers(0, 30), data=st.data())
def test_any_cut_of_a_prompt(llama, linker, cut, switch, prefix_tokens, data) -> None:
    length, segments = cut
    tokens = some_tokens(length, seed=9)
    strategy = Strategy.parse(data.draw(st.sampled_from((*ALL, *FULL))))
    switch = max(switch, strategy.switch_layer_min)
    prefix_tokens = min(prefix_tokens, length)
    prefix = HuggingFaceEngine(llama).prefill(tokens[:prefix_tokens])
    linked = linker.link(tokens, pieces_of(linker, tokens, segments), strategy, prefix=prefix, switch_layer=switch)
    report = linked.report
    assert report.why == ""
    assert linked.cache.get_seq_length() == length - 1
    assert report.prefix_tokens <= report.exact_tokens <= max(report.prefix_tokens, length - 1)
    assert report.linked_tokens <= sum(number for _, number in segments)
    assert len(report.rows) == (LAYERS if length - 1 > report.prefix_tokens else 0)
    assert list(report.rows) == sorted(report.rows, reverse=True)
    if length == 1:
        return
    expected = full_cache(llama, tokens[:-1])
    assert close_tokens(linked.cache, expected, report.exact_tokens)
    assert all(torch.isfinite(layer.keys).all() and torch.isfinite(layer.values).all() for layer in linked.cache.layers)
    if str(strategy) in FULL:
        assert close(linked.cache, expected)
    naive = linker.link(tokens, pieces_of(linker, tokens, segments), Strategy.parse("naive"), prefix=prefix)
    assert report.linked_tokens in {0, naive.report.linked_tokens} or str(strategy) == "exact"
