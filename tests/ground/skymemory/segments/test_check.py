import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise

import pytest
import torch

from skymemory.prompt.codecs import get_codec
from skymemory.prompt.huggingface import HuggingFaceEngine
from skymemory.segments.check import CheckError, CheckPrompt, check_strategies, read_prompts
from skymemory.segments.controller import Request, chosen_rows
from skymemory.segments.gate import POWER_PROMPTS_MIN, Gate
from skymemory.segments.grid import CONTROLS, STRATEGIES, Option, options
from skymemory.segments.linker import Linked, Linker
from skymemory.segments.measure import compare, full_answer, shuffled, through_codec
from skymemory.segments.pieces import Piece, TensorSource
from skymemory.segments.strategy import Strategy
from support.small_models import small_model

pytestmark = pytest.mark.model
MODEL = "ab" * 32
NAIVE = Option(Strategy.parse("naive"), 0)
ALL = Option(Strategy.parse("blend:100"), 1)


@pytest.fixture(scope="module")
def model():
    """Return a model whose answers have one token, and threads that do not wait for each other on a busy machine."""
    model = small_model("llama", num_hidden_layers=3)
    model.generation_config.eos_token_id = list(range(256))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield model
    torch.set_num_threads(threads)


def prompts(count: int, lengths: tuple[int, ...] = (2, 5, 5, 3)) -> list[CheckPrompt]:
    generator = torch.Generator().manual_seed(2)
    return [
        CheckPrompt(
            tuple(tuple(torch.randint(3, 250, (length,), generator=generator).tolist()) for length in lengths),
            (False, True, True, False),
        )
        for _ in range(count)
    ]


def check(linker, model, given, grid, gate, **settings):
    settings = {"fingerprint": MODEL, "codec": get_codec("raw"), "block_tokens": 4, "bos": 1} | settings
    return check_strategies(linker, model, given, grid, gate, **settings)


class PerfectLinker(Linker):
    """Linker that computes all if the segments are those that it has made itself."""

    def __init__(self, model) -> None:
        super().__init__(model)
        self._engine = HuggingFaceEngine(model)
        self._made: list[torch.Tensor] = []

    def compute(self, tokens, **sinks) -> torch.Tensor:
        both = super().compute(tokens, **sinks)
        self._made = list(both.split(both.shape[2] // 2, 2))
        return both

    def link(self, work, pieces, strategy, **rest) -> Linked:
        linked = super().link(work, pieces, strategy, **rest)
        for row in range(self._made[0].shape[2]):
            of_all = zip(pieces, self._made, strict=True)
            if all(torch.equal(piece.source.layer(1)[:, row], tensor[0][:, row]) for piece, tensor in of_all):
                exact = self._engine.prefill(work.tokens[row, :-1].tolist())
                for layer, (keys, values, *_) in zip(linked.cache.layers, exact, strict=True):
                    layer.keys[row], layer.values[row] = keys[0], values[0]
        return linked


def test_a_strategy_that_keeps_all_answers_opens_and_one_that_does_not_stays_closed(model) -> None:
    told, gate = [], Gate("a")
    perfect = check(PerfectLinker(model), model, prompts(200), [NAIVE], gate, progress=lambda *where: told.append(where))
    assert told == [(number, 200) for number in range(1, 201)]
    (row,) = json.loads(json.dumps(perfect))
    assert (row["open"], row["why"], row["prompts"], row["strategy"], row["switch_layer"]) == (True, "open", 200, "naive", 0)
    assert row["shuffled_prompts"] == POWER_PROMPTS_MIN
    assert (row["covered_segments"], row["covered_segment_tokens"], row["covered_tokens"]) == (2, 5, 15)
    assert gate.verdict(NAIVE.point(MODEL, "raw", 4)).covered == prompts(1)[0].size
    assert row["shuffled_agreement"] < 0.9
    assert gate.is_open(NAIVE.point(MODEL, "raw", 4))

    # The same check with the linker itself drops that evidence, and ends for a strategy as soon as it cannot open
    (row,) = check(Linker(model), model, prompts(200), [NAIVE], gate)
    assert not row["open"]
    assert row["prompts"] < 200
    assert row["why"].endswith("since a new check was begun")


def test_where_all_rows_are_computed_the_prompts_cannot_tell(model) -> None:
    (row,) = check(Linker(model), model, prompts(200), [ALL], Gate("a"))
    assert row["kl"] == pytest.approx(0, abs=1e-6)
    assert row["agreement"] == 1
    assert not row["open"]
    assert row["why"].startswith("the prompts cannot tell")
    assert row["prompts"] == POWER_PROMPTS_MIN, "more would not help"


def one_by_one(linker, model, given: list[CheckPrompt], grid, codec) -> dict[tuple[str, int], dict[str, object]]:
    """Return the figures of a check that computes one prompt after the other, by strategy and switch layer."""
    gate, engine = Gate("plain"), HuggingFaceEngine(model)
    for number, prompt in enumerate(given):
        answer = full_answer(model, prompt.tokens, engine.prefill(prompt.tokens[:-1]))
        for option in grid:
            point = option.point(MODEL, codec.name, 4)
            if not gate.can_open(point, len(given) - number):
                continue
            sinks = 4 if str(option.strategy) == "lego0" else 0
            tensors = [linker.compute(tokens, sinks=sinks, bos=1) for _, tokens in prompt.segments]
            if codec.name != "raw":
                tensors = [through_codec(tensor, codec, 4) for tensor in tensors]
            seeds = range(number * len(prompt.tokens), number * len(prompt.tokens) + len(tensors))
            wrong = [shuffled(tensor, seed) for tensor, seed in zip(tensors, seeds, strict=True)]
            for given_tensors, count in ((tensors, partial(gate.checked, size=prompt.size)), (wrong, gate.checked_shuffled)):
                if given_tensors is wrong and gate.verdict(point).counts.shuffled.prompts >= POWER_PROMPTS_MIN:
                    continue
                pieces = [
                    Piece(start, len(tokens), TensorSource(tensor), sinks, codec.name == "raw")
                    for (start, tokens), tensor in zip(prompt.segments, given_tensors, strict=True)
                ]
                cache = linker.link(prompt.tokens, pieces, option.strategy, switch_layer=option.switch_layer).cache
                count(point, compare(model, prompt.tokens, answer, cache))
    return {(verdict.point.strategy, verdict.point.switch_layer): verdict.figures() for verdict in gate.verdicts(MODEL)}


@contextmanager
def rows_computed(model) -> Iterator[list[tuple[int, int]]]:
    """Note each call of the first layer: how many rows it computes, and how many of each prompt or segment."""
    computed: list[tuple[int, int]] = []

    def note(layer, args) -> None:
        batch, width, _ = args[0].shape
        computed.append((batch * width, width))

    with model.base_model.layers[0].register_forward_pre_hook(note):
        yield computed


def test_prompts_that_are_computed_at_once_give_what_they_give_alone() -> None:
    """Answers have several tokens, of which some end early, and prompts have several layouts."""
    model, codec = small_model("llama", num_hidden_layers=3), get_codec("int8")
    model.generation_config.eos_token_id = list(range(0, 256, 4))
    linker = Linker(model)
    given = [one for pair in zip(prompts(110), prompts(110, (2, 3, 6, 4)), strict=True) for one in pair]
    given.sort(key=lambda one: len(one.tokens), reverse=True)
    words = ("naive", "lego:2", "lego0", "blend:15", "blend:50", "random:30")
    grid = [Option(strategy := Strategy.parse(word), strategy.switch_layer_min) for word in words] + [ALL]
    rows = check(linker, model, given, grid, Gate("a"), codec=codec)
    alone = one_by_one(linker, model, given, grid, codec)
    assert len(alone) == len(rows) == len(grid)
    for row in rows:
        other = alone[str(row["strategy"]), row["switch_layer"]]
        for name in ("open", "prompts", "shuffled_prompts", "covered_segments", "covered_tokens"):
            assert row[name] == other[name], name
        for name in ("kl", "agreement", "shuffled_agreement"):
            assert row[name] == pytest.approx(other[name], rel=1e-3, abs=2e-3), name


def test_layers_below_the_switch_layer_are_computed_once_for_all_options(model) -> None:
    given = prompts(200)
    blends = [Option(Strategy.parse(word), 1) for word in ("blend:15", "blend:30", "blend:50")]
    linker = Linker(model)
    with rows_computed(model) as computed:
        check(linker, model, given, blends, Gate("a"), stop_early=False)
    width = len(given[0].tokens) - 1
    # Once for the full answer, and once for all options and their shuffled runs
    assert sum(rows for rows, of_each in computed if of_each == width) == 2 * width * len(given)


def test_equal_prompts_count_once(model) -> None:
    with pytest.raises(ValueError, match="199 different prompts; a check needs 200"):
        check(Linker(model), model, prompts(199) * 2, [NAIVE], Gate("a"))


def test_a_prompt_that_cannot_be_linked_is_an_error_and_no_evidence(model) -> None:
    class Silent(Linker):
        def link(self, tokens, pieces, strategy, **rest) -> Linked:
            class Nothing:
                def layer(self, index):
                    return None

            return super().link(tokens, [Piece(one.start, one.tokens, Nothing()) for one in pieces], strategy, **rest)

    gate = Gate("a")
    with pytest.raises(CheckError, match="2 of 2 segments did not come"):
        check(Silent(model), model, prompts(200), [NAIVE], gate)
    assert gate.verdicts(MODEL) == []


def test_lego0_gets_segments_behind_sinks(model) -> None:
    lego0 = Option(Strategy.parse("lego0"), 0)
    (row,) = check(Linker(model), model, prompts(200), [lego0], Gate("a"), codec=get_codec("int8"))
    assert (row["strategy"], row["codec"]) == ("lego0", "int8")
    assert row["prompts"] >= 1


def test_prompts_are_read_from_lines() -> None:
    lines = ['["be brief", {"segment": "one two"}, {"segment": [7, 8]}, [9]]', "", '[[1], {"segment": [2]}, [3]]']
    told = []

    def tokenize(text: str, index: int) -> list[int]:
        told.append((text, index))
        return [len(word) for word in text.split()]

    first, second = read_prompts(lines, tokenize)
    assert told == [("be brief", 0), ("one two", 1)]
    assert first.tokens == [2, 5, 3, 3, 7, 8, 9]
    assert first.segments == [(2, (3, 3)), (4, (7, 8))]
    assert second.segments == [(1, (2,))]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1 is no JSON"),
        ("[]", "line 1: a prompt is a JSON list"),
        ('"text"', "line 1: a prompt is a JSON list"),
        ('[[1], {"segments": [2]}, [3]]', "line 1, piece 2"),
        ('[[1], {"segment": [2], "more": 1}, [3]]', "line 1, piece 2"),
        ('[[1], {"segment": []}, [3]]', "piece 2: .* none of them empty"),
        ('[[1], {"segment": [true]}, [3]]', "line 1, piece 2"),
        ('[[1], {"segment": 5}, [3]]', "line 1, piece 2"),
        ('[[1], {"segment": [2]}]', "the last piece is a text"),
        ('[{"segment": [2]}, [3]]', "must stand behind other tokens"),
        ("[[1], [2]]", "must stand behind other tokens"),
    ],
)
def test_lines_that_are_no_prompts_say_what_is_wrong(line, message) -> None:
    with pytest.raises(ValueError, match=message):
        read_prompts([line], lambda text, index: [1])


def test_the_controller_counts_the_rows_that_the_linker_computes() -> None:
    model = small_model("llama", num_hidden_layers=7)
    linker, given = Linker(model), prompts(1)[0]
    bounds = [1, 2, 3, 5, 7]
    grid = options(STRATEGIES + CONTROLS, [range(*pair) for pair in pairwise(bounds)])
    request = Request(tokens=len(given.tokens) - 1, linked_tokens=10, segments=2)
    assert {option.switch_layer for option in grid} == {0, 1, 2, 3, 4, 5}
    for option in grid:
        sinks = 4 if str(option.strategy) == "lego0" else 0
        pieces = [
            Piece(start, len(tokens), TensorSource(linker.compute(tokens, sinks=sinks, bos=1)), sinks)
            for start, tokens in given.segments
        ]
        rows = linker.link(given.tokens, pieces, option.strategy, switch_layer=option.switch_layer).report.rows
        below = [request.tokens] * option.switch_layer
        assert list(rows) == below + [chosen_rows(request, option, layer, 6) for layer in range(option.switch_layer, 7)]
