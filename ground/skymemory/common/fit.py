"""A formula for durations, `duration = cost1 * feature1 + cost2 * feature2 + ...`, learned as they are measured."""

import math
from collections.abc import Sequence
from operator import mul
from typing import Final

FEW: Final = 3
"""Samples before which nothing is known, and surprises in a row after which the past is forgotten."""
_KEEP: Final = 0.9
"""Weight of a sample relative to the next one."""
_FORGET: Final = 0.001
"""The same when the past is forgotten."""
_NEAR: Final = 0.05
"""Relative error below which a sample counts as right."""
HALF_S: Final = 60.0
"""Time without a sample in which the weight of the past halves. After as long, one shorter duration makes it be forgotten."""
_STALE: Final = 0.05
"""Least weight of the past after a long time: one sample alone may be one that something has held up."""
_SURPRISE: Final = 0.3
"""A sample surprises if the logarithm of measured over expected duration is beyond this, and ..."""
_SPREADS: Final = 3.0
"""... beyond so many times what it usually is: on a busy machine all durations spread."""
_SPREAD_GAIN: Final = 0.1
"""Weight of a new sample in what is usual."""
_SWEEPS: Final = 4
"""Descents along each cost for a sample; they go on with the next one."""
_LEAST_S: Final = 1e-6
"""Shortest duration: clocks resolve no less."""
_MOST: Final = 1e9
"""Largest feature, and longest duration, so that nothing overflows."""
_UNUSED: Final = 1e-20
"""Weighted square of a feature below which its cost stays as it is."""


class Fit:
    """Costs that are right in the median, in constant time and memory. Older samples count less and less.

    A sample counts by the inverse of its relative error, which makes errors of squared errors; their sum is least at the median
    (iteratively reweighted least squares). So it does not matter how far off a duration is to which a lost packet, or another
    process, has added. After three surprises in a row in the same direction the link has changed, and the past counts no more.
    After a pause one that is shorter is enough: chance makes durations longer, and hardly ever shorter.

    Costs are never negative, so more work is never expected to take less time.
    """

    def __init__(self, features: int) -> None:
        """Know nothing yet. Features come in the order in which they are taken for the cause of what could be due to several."""
        self.samples = 0
        self.costs = [0.0] * features
        """Seconds a unit of each feature."""
        self._equations = [[0.0] * (features + 1) for _ in range(features)]
        """Normal equations of least squares: weighted sums of feature times feature, and of feature times duration."""
        self._spread = 0.0
        self._learned_s = 0.0
        self._surprises = 0
        """Number of surprises in a row; below 0: durations were shorter than expected."""

    @property
    def knows(self) -> bool:
        """Return True if there were samples enough to go by."""
        return self.samples >= FEW

    def duration_s(self, features: Sequence[float]) -> float:
        """Return the expected duration."""
        return math.fsum(map(mul, self.costs, features))

    def learn(self, features: Sequence[float], duration_s: float, now_s: float = 0.0) -> None:
        """Take in a measured duration; ignore one without work, and numbers that are negative or too large.

        Args:
            features: Features of what took the time.
            duration_s: The time.
            now_s: Time by any clock, by which older samples count less; by default they only do as others come.
        """
        if not any(features) or not all(0 <= number <= _MOST for number in (*features, duration_s)):
            return
        duration_s = max(duration_s, _LEAST_S)
        expected_s = max(self.duration_s(features), _LEAST_S) if self.knows else duration_s
        surprise = math.log(duration_s / expected_s)
        most = max(_SURPRISE, _SPREADS * self._spread)
        self._spread += _SPREAD_GAIN * (min(abs(surprise), most) - self._spread)
        side = (surprise > most) - (surprise < -most)
        self._surprises = side if side * self._surprises <= 0 else self._surprises + side
        pause_s = max(0.0, now_s - self._learned_s)
        self._learned_s = now_s
        if side < 0 and pause_s >= HALF_S:
            self._surprises = -FEW
        keep = _KEEP * max(_STALE, 0.5 ** (pause_s / HALF_S))
        if abs(self._surprises) >= FEW:
            keep, expected_s = _FORGET, duration_s
        sample = [number / expected_s for number in (*features, duration_s)]
        weight = 1 / max(_NEAR, abs(sample[-1] - 1))
        for row, one in zip(self._equations, sample, strict=False):
            row[:] = [keep * old + weight * one * other for old, other in zip(row, sample, strict=True)]
        for _ in range(_SWEEPS):  # each cost in turn becomes the best beside the others
            for at, row in enumerate(self._equations):
                if row[at] > _UNUSED:
                    self.costs[at] = max(0.0, self.costs[at] + (row[-1] - sum(map(mul, row, self.costs))) / row[at])
        self.samples += 1


class SizedFit:
    """Costs of small and of large work, each learned from its own kind.

    What holds up small work is a queue, a lost packet, another process. Its features are tiny, so that such a time, taken for
    their cost, would make large work look endless.
    """

    def __init__(self, features: int, large: float) -> None:
        """Know nothing yet.

        Args:
            features: Number of features, as of `Fit`.
            large: Size from which work is large.
        """
        self._from = large
        self._small, self._large = Fit(features), Fit(features)

    @property
    def samples(self) -> int:
        """Return the number of samples of any size."""
        return self._small.samples + self._large.samples

    def learn(self, size: float, features: Sequence[float], duration_s: float, now_s: float = 0.0) -> None:
        """Take in how long work of a size took (`Fit.learn`)."""
        fit = self._large if size >= self._from else self._small
        fit.learn(features, duration_s, now_s)

    def knows(self, size: float) -> bool:
        """Return True if there were samples enough of work like that, or of larger work."""
        return self._large.knows or (size < self._from and self._small.knows)

    def costs(self, size: float) -> list[float]:
        """Return the costs of work of a size; as long as there are too few samples of it, those of the other size."""
        if size >= self._from:
            return self._large.costs if self._large.knows or not self._small.knows else self._small.costs
        return self._small.costs if self._small.knows or not self._large.knows else self._large.costs

    def own_costs(self, size: float) -> list[float] | None:
        """Return the costs of work of a size by samples of that kind alone; None: there is none."""
        fit = self._large if size >= self._from else self._small
        return fit.costs if fit.samples else None

    def learned_costs(self, size: float) -> list[float] | None:
        """Return the costs of work of a size by samples of that kind, or for small work of large work; None: there is none.

        Large work is not judged by small work: who has none of its own is better off to try it.
        """
        return self.own_costs(size) or self.own_costs(self._from)

    def duration_s(self, size: float, features: Sequence[float]) -> float:
        """Return the expected duration."""
        return math.fsum(map(mul, self.costs(size), features))
