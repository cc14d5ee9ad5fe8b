"""Strategies: which rows of linked segments are computed again.

A strategy is written as one word: `exact`, `naive`, `lego:8`, `lego0`, `blend:15`, `random:15` or `auto`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_SPREAD: Final = 0.3
"""A blend begins with 1.3 times its share of rows and ends with 0.7 times as many."""


class Kind(StrEnum):
    """Kinds of strategies.

    Attributes:
        EXACT: All rows are computed but those whose keys and values are exact.
        NAIVE: No row of a linked segment is computed.
        LEGO: The first tokens of each linked segment are computed (LegoLink-k of EPIC).
        LEGO0: No row is computed, and the segments were computed behind sinks (LegoLink-0 of EPIC).
        BLEND: The rows whose keys deviate most are computed (CacheBlend).
        RANDOM: Rows drawn at random are computed: the control of BLEND.
        AUTO: The cheapest strategy that has proved itself on the model. It is chosen before segments are linked.
    """

    EXACT = "exact"
    NAIVE = "naive"
    LEGO = "lego"
    LEGO0 = "lego0"
    BLEND = "blend"
    RANDOM = "random"
    AUTO = "auto"


_LARGEST: Final = {Kind.LEGO: 1024, Kind.BLEND: 100, Kind.RANDOM: 100}
"""Largest amount of each kind that has one: tokens, or percent."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """One strategy.

    Attributes:
        kind: Kind of the rows that are computed.
        amount: Tokens of each linked segment (LEGO), or percent of the linked rows (BLEND, RANDOM); else 0.
    """

    kind: Kind
    amount: int = 0

    def __post_init__(self) -> None:
        if not (0 < self.amount <= _LARGEST[self.kind] if self.kind in _LARGEST else self.amount == 0):
            raise ValueError(f"the strategy {str(self)!r} is not one of {strategy_forms()}")

    @classmethod
    def parse(cls, text: str) -> Strategy:
        """Read a strategy from one word.

        Raises:
            ValueError: The word is no strategy.
        """
        match = re.fullmatch(r"([a-z]+0?)(?::([0-9]{1,4}))?", text)
        if match is None or match[1] not in set(Kind) or (match[2] is not None and Kind(match[1]) not in _LARGEST):
            raise ValueError(f"the strategy {text!r} is not one of {strategy_forms()}")
        return cls(Kind(match[1]), int(match[2] or 0))

    def __str__(self) -> str:
        return f"{self.kind}:{self.amount}" if self.kind in _LARGEST or self.amount else str(self.kind)

    @property
    def switch_layer_min(self) -> int:
        """Smallest switch layer. A blend compares keys at the switch layer, and layer 0 depends on the tokens alone."""
        return 1 if self.kind is Kind.BLEND else 0

    def share(self, layer: int, switch_layer: int, last_layer: int) -> float:
        """Return the share of linked rows that a blend computes at a layer, from the switch layer to the last one.

        The mean over these layers is `amount` percent. The share falls from 1.3 to 0.7 times that (CacheBlend, Fig. 9), less
        steeply where it would begin above 1.
        """
        wanted = self.amount / 100
        spread = min(_SPREAD, 1 / wanted - 1)
        done = (layer - switch_layer) / max(1, last_layer - switch_layer)
        return min(1.0, wanted * (1 + spread - 2 * spread * done if last_layer > switch_layer else 1))


def strategy_forms() -> str:
    """Return all forms of strategies, for messages."""
    return ", ".join(f"{kind}:1..{_LARGEST[kind]}" if kind in _LARGEST else str(kind) for kind in Kind)
