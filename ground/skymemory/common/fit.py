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
        self._surprises = 0
        """Number of surprises in a row; below 0: durations were shorter than expected."""

    @property
    def knows(self) -> bool:
        """Return True if there were samples enough to go by."""
        return self.samples >= FEW

    def duration_s(self, features: Sequence[float]) -> float:
        """Return the expected duration."""
        return math.fsum(map(mul, self.costs, features))

    def learn(self, features: Sequence[float], duration_s: float) -> None:
        """Take in a measured duration; ignore one without work, and numbers that are negative or too large."""
        if not any(features) or not all(0 <= number <= _MOST for number in (*features, duration_s)):
            return
        duration_s = max(duration_s, _LEAST_S)
        expected_s = max(self.duration_s(features), _LEAST_S) if self.knows else duration_s
        surprise = math.log(duration_s / expected_s)
        most = max(_SURPRISE, _SPREADS * self._spread)
        self._spread += _SPREAD_GAIN * (min(abs(surprise), most) - self._spread)
        side = (surprise > most) - (surprise < -most)
        self._surprises = side if side * self._surprises <= 0 else self._surprises + side
        keep = _KEEP
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
