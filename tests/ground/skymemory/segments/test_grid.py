from itertools import pairwise

import pytest

from skymemory.segments.evidence import NO_SIZE, PromptSize, Sample
from skymemory.segments.gate import Gate
from skymemory.segments.grid import CONTROLS, STRATEGIES, Option, open_options, options
from skymemory.segments.strategy import Kind, Strategy

MODEL = "ab" * 32
SIZE = PromptSize(segments=6, segment_tokens=32, tokens=197)
GROUPS = (range(1, 2), range(2, 4), range(4, 6), range(6, 8))


def text(grid) -> list[str]:
    return [f"{option.strategy}@{option.switch_layer}" for option in grid]


def test_loading_begins_with_a_whole_group() -> None:
    grid = options(STRATEGIES + CONTROLS, GROUPS)
    assert {option.first_loaded for option in grid} == {1, 2, 4, 6}
    assert text(options([Strategy.parse("naive"), Strategy.parse("blend:15")], GROUPS)) == [
        *("naive@0", "naive@1", "naive@3", "naive@5"),
        *("blend:15@1", "blend:15@2", "blend:15@4", "blend:15@6"),
    ]


@pytest.mark.parametrize("layers", range(2, 40))
def test_every_model_has_a_grid_that_its_layers_allow(layers) -> None:
    count = min(8, layers - 1)
    bounds = [1 + number * (layers - 1) // count for number in range(count + 1)]
    groups = [range(first, end) for first, end in pairwise(bounds)]
    grid = options(STRATEGIES, groups)
    assert len(set(grid)) == len(grid)
    for option in grid:
        assert option.strategy.switch_layer_min <= option.switch_layer < layers - 1
        assert option.first_loaded in {group.start for group in groups}
    assert Option(Strategy.parse("naive"), 0) in grid


def opened(*points) -> Gate:
    gate = Gate("a")
    for point in points:
        for _ in range(200):
            gate.checked(point, Sample(0.0, 1.0), SIZE)
            gate.checked_shuffled(point, Sample(3.0, 0.2))
    return gate


def test_only_what_is_open_for_this_model_and_codec_is_allowed() -> None:
    one, other = Option(Strategy.parse("blend:15"), 2), Option(Strategy.parse("random:15"), 3)
    off_grid = Option(Strategy.parse("blend:15"), 3)
    gate = opened(*(option.point(MODEL, "int8", 128) for option in (one, other, off_grid)))

    def allowed(wanted: str, *model: str | int, sinks: int = 0, size: PromptSize = NO_SIZE):
        return open_options(gate, (*model, *(MODEL, "int8", 128)[len(model) :]), Strategy.parse(wanted), GROUPS, sinks, size)

    assert allowed("auto") == [one]
    assert allowed("auto", size=SIZE) == [one]
    assert allowed("blend:15") == [one]
    assert allowed("random:15") == [other]
    for nothing in (
        allowed("exact"),
        allowed("blend:5"),
        allowed("auto", MODEL, "int4"),
        allowed("auto", MODEL, "int8", 64),
        allowed("auto", "cd" * 32),
        allowed("auto", sinks=4),
        allowed("auto", size=SIZE._replace(segments=7)),
        allowed("auto", size=SIZE._replace(segment_tokens=33)),
        allowed("auto", size=SIZE._replace(tokens=198)),
    ):
        assert nothing == []


def test_segments_behind_sinks_are_for_lego0_alone() -> None:
    lego0, naive = Option(Strategy(Kind.LEGO0), 0), Option(Strategy(Kind.NAIVE), 0)
    gate = opened(lego0.point(MODEL, "raw", 128), naive.point(MODEL, "raw", 128))
    other_blocks = (MODEL, "raw", 64)  # which say nothing where nothing is lost
    assert open_options(gate, other_blocks, Strategy(Kind.AUTO), GROUPS, 4, SIZE) == [lego0]
    assert open_options(gate, other_blocks, Strategy(Kind.AUTO), GROUPS, 0, SIZE) == [naive]
