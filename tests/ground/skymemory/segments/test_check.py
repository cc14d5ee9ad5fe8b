import json
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


def prompts(count: int) -> list[CheckPrompt]:
    generator = torch.Generator().manual_seed(2)
    return [
        CheckPrompt(
            tuple(tuple(torch.randint(3, 250, (length,), generator=generator).tolist()) for length in (2, 5, 5, 3)),
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
        self._made = [*self._made[-1:], super().compute(tokens, **sinks)]
        return self._made[-1]

    def link(self, tokens, pieces, strategy, **rest) -> Linked:
        linked = super().link(tokens, pieces, strategy, **rest)
        own = all(torch.equal(piece.source.layer(1), tensor[0]) for piece, tensor in zip(pieces, self._made, strict=True))
        return Linked(self._engine.prefill(tokens[:-1]), linked.report) if own else linked


def test_a_strategy_that_keeps_all_answers_opens_and_one_that_does_not_stays_closed(model) -> None:
    told, gate = [], Gate("a")
    perfect = check(PerfectLinker(model), model, prompts(200), [NAIVE], gate, progress=lambda *where: told.append(where))
    assert told == [(number, 200) for number in range(1, 201)]
    (row,) = json.loads(json.dumps(perfect))
    assert (row["open"], row["why"], row["prompts"], row["strategy"], row["switch_layer"]) == (True, "open", 200, "naive", 0)
    assert row["shuffled_prompts"] == POWER_PROMPTS_MIN
    assert row["shuffled_agreement"] < 0.9
    assert gate.is_open(NAIVE.point(MODEL, "raw"))

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
