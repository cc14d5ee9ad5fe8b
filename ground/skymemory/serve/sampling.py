"""Choice of the next token."""

from __future__ import annotations

from dataclasses import dataclass

import torch

_SEEDS = 1 << 63
_TEMPERATURE_MIN = 1e-6
"""Smallest temperature: less would divide by a float32 of 0."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters of a request."""

    max_tokens: int
    temperature: float
    """Temperature; 0 always takes the likeliest token."""
    top_p: float
    """Probability that the likeliest tokens have together; others are not drawn."""
    seed: int | None
    stop: tuple[str, ...]
    choices: int
    """Number of answers to each prompt."""


class TokenSampler:
    """Draws the tokens of one answer, on the CPU, so that a seed gives the same on every device."""

    def __init__(self, sampling: Sampling, choice: int) -> None:
        """Seed the sampler; `choice` makes the answers to one prompt differ."""
        self._sampling = sampling
        self._random = torch.Generator()
        if sampling.seed is None:
            self._random.seed()
        else:
            self._random.manual_seed((sampling.seed + choice) % _SEEDS)

    def next(self, logits: torch.Tensor) -> int:
        """Return a token id.

        Args:
            logits: Logits of all tokens, shape [vocabulary].
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
