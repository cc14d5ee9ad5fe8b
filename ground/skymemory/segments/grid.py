"""Grid of strategies and switch layers. Only these are checked and used, so that each has evidence of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from skymemory.segments.evidence import Point, PromptSize
from skymemory.segments.gate import Gate
from skymemory.segments.strategy import Kind, Strategy

STRATEGIES: Final = tuple(
    map(Strategy.parse, ("naive", "lego:2", "lego:8", "lego:16", "lego0", "blend:5", "blend:15", "blend:30", "blend:50"))
)
"""Strategies that `auto` chooses from."""
CONTROLS: Final = tuple(map(Strategy.parse, ("random:15", "random:30")))
"""Strategies that others are compared with; `auto` never takes them."""
_SHARES: Final = (0, 1 / 8, 1 / 4, 1 / 2, 3 / 4)
"""Shares of the layer groups that are not loaded."""


@dataclass(frozen=True, slots=True)
class Option:
    """A strategy with a switch layer."""

    strategy: Strategy
    """Strategy; never `auto` or `exact`."""
    switch_layer: int
    """Layer below which all rows are computed."""

    @property
    def first_loaded(self) -> int:
        """First layer that is loaded. A blend compares keys at the switch layer; others compute all keys and values there."""
        return self.switch_layer + (self.strategy.kind is not Kind.BLEND)

    def point(self, fingerprint: str, codec: str, block_tokens: int) -> Point:
        """Return what the gate decides about. The block size matters where the codec loses something."""
        return Point(fingerprint, codec, str(self.strategy), self.switch_layer, 0 if codec == "raw" else block_tokens)


def options(strategies: Sequence[Strategy], groups: Sequence[range]) -> list[Option]:
    """Return the grid of some strategies for a model whose layers above the first one are in these groups.

    Loading begins with a whole group. Where it would begin with the last layer, it would save nothing, so there is no such point.
    """
    starts = sorted({groups[int(len(groups) * share)].start for share in _SHARES})
    last = groups[-1].stop - 1
    grid = [Option(strategy, start - (strategy.kind is not Kind.BLEND)) for strategy in strategies for start in starts]
    return [option for option in grid if option.switch_layer < last and option.first_loaded <= last]


def checked_strategies(words: Sequence[str], bos: int | None) -> list[Strategy]:
    """Return the strategies to check that somebody named, by default those that `auto` chooses from.

    Args:
        words: Words of strategies.
        bos: The model's BOS, without which there is no LegoLink-0.

    Raises:
        ValueError: A word is none of a strategy that can be checked.
    """
    if not words:
        return [strategy for strategy in STRATEGIES if strategy.kind is not Kind.LEGO0 or bos is not None]
    known = {str(strategy): strategy for strategy in (*STRATEGIES, *CONTROLS)}
    for word in words:
        if word not in known:
            raise ValueError(f"the strategy {word!r} cannot be checked; allowed are {', '.join(known)}")
        if known[word].kind is Kind.LEGO0 and bos is None:
            raise ValueError("lego0 needs a model with a BOS token, and this one has none")
    return [known[word] for word in dict.fromkeys(words)]


def open_options(
    gate: Gate, model: tuple[str, str, int], wanted: Strategy, groups: Sequence[range], sinks: int, size: PromptSize
) -> list[Option]:
    """Return what the gate allows for a prompt of some size, whose segments were computed behind so many sinks.

    Segments behind sinks are for LegoLink-0, and there is evidence of no other strategy for them.

    Args:
        gate: The gate.
        model: Fingerprint of the model, codec and tokens of a block.
        wanted: The strategy; `auto` stands for all that it chooses from.
        groups: Groups of layers.
        sinks: Number of sinks.
        size: Size of the prompt; `NO_SIZE` for what is allowed for any.
    """
    strategies = {Kind.AUTO: STRATEGIES, Kind.EXACT: ()}.get(wanted.kind, (wanted,))
    fitting = [strategy for strategy in strategies if (strategy.kind is Kind.LEGO0) == (sinks > 0)]
    return [option for option in options(fitting, groups) if gate.is_open(option.point(*model), size)]
