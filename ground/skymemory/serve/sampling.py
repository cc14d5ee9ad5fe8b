"""How the next token is chosen."""

from __future__ import annotations

from dataclasses import dataclass

import torch

_SEEDS = 1 << 63
_TEMPERATURE_MIN = 1e-6
"""less would divide by a float32 of 0"""


@dataclass(frozen=True, slots=True)
class Sampling:
    """What a request says about its answers."""

    max_tokens: int
    temperature: float
    """0: always the likeliest token"""
    top_p: float
    """of the likeliest tokens those that together have this probability"""
    seed: int | None
    stop: tuple[str, ...]
    choices: int
    """answers to each prompt"""


class Sampler:
    """Draws the tokens of one answer. The draws are made on the CPU, so that a seed gives the same on every device."""

    def __init__(self, sampling: Sampling, choice: int) -> None:
        """The answers to one prompt differ by `choice`."""
        self._sampling = sampling
        self._random = torch.Generator()
        if sampling.seed is None:
            self._random.seed()
        else:
            self._random.manual_seed((sampling.seed + choice) % _SEEDS)

    def next(self, logits: torch.Tensor) -> int:
        """A token id.

        Args:
            logits: of all tokens, shape [vocabulary].
        """
        if self._sampling.temperature == 0:
            return int(logits.argmax())
        below = logits.float().cpu() - logits.max().item()
        probabilities = torch.softmax(below / max(self._sampling.temperature, _TEMPERATURE_MIN), dim=-1)
        if self._sampling.top_p < 1:
            ordered, tokens = probabilities.sort(descending=True, stable=True)
            before = ordered.cumsum(dim=-1) - ordered
            ordered[before >= self._sampling.top_p] = 0
            return int(tokens[torch.multinomial(ordered, 1, generator=self._random)])
        return int(torch.multinomial(probabilities, 1, generator=self._random))
