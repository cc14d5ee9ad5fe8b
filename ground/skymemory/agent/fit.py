"""A duration as a sum of costs, learned as it goes, in constant time and memory."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

_KEEP: Final = 0.9
"""of the weight of all samples before, with each new one"""
_SURPRISE: Final = 0.3
"""a sample is one if the logarithm of its ratio to what was expected is beyond this, and ..."""
_SPREADS: Final = 3.0
"""... beyond so many times what it mostly is: on a busy machine all durations spread"""
_SPREAD_GAIN: Final = 0.1
FEW: Final = 3
"""samples; before so many nothing is a surprise, and nothing is known"""
_DEPENDENT: Final = 1e-6
"""a feature of which no more than this share is its own cannot be told from those before it"""
_LEAST_S: Final = 1e-6
"""no duration is shorter: clocks tell no less"""
_MOST: Final = 1e9
"""no feature is larger, and no duration longer: so that nothing overflows"""
_NOTHING: Final = 1e-20
"""a feature whose samples weigh no more keeps the cost that it had"""
_LAST: Final = 48
"""samples that are kept for a median; those before would weigh less than a hundredth of the newest"""
_ROUNDS: Final = 6
"""of squares, to come near the median"""
_NEAR: Final = 0.05
"""a sample that is nearer than this, relatively, is right"""
_FAR: Final = 3.0
"""times what was expected, or a part; when as many as a `FEW` are so in a row, what was before them is forgotten"""


class _Sum:
    """`duration = c1 f1 + c2 f2 + ...` with costs c that are never negative, so more work is never expected to end sooner."""

    def __init__(self, features: int) -> None:
        """`features` is how many a sample has. Those that come first are the likelier cause of what could be due to several."""
        self.samples = 0
        self._costs = [0.0] * features

    @property
    def knows(self) -> bool:
        """There were samples enough to go by."""
        return self.samples >= FEW

    @property
    def costs(self) -> list[float]:
        """Of each feature one unit, in seconds; all 0 before the first sample."""
        return self._costs

    def duration_s(self, features: Sequence[float]) -> float:
        """What to expect."""
        return math.fsum(cost * feature for cost, feature in zip(self.costs, features, strict=True))


class Fit(_Sum):
    """Least squares of relative errors, in which older samples count less and less. A sample that surprises is taken for one that
    surprises a little: a packet was lost, another process ran. If the next one surprises in the same direction it is the past
    that counts little from then on: the link is another one.
    """

    def __init__(self, features: int) -> None:
        super().__init__(features)
        self._squares = [[0.0] * features for _ in range(features)]
        self._products = [0.0] * features
        self._surprise = 0.0
        self._spread = 0.0
        self._is_solved = True

    @property
    def costs(self) -> list[float]:
        """As they are after the last sample."""
        if not self._is_solved:
            self._solve()
        return self._costs

    def learn(self, features: Sequence[float], duration_s: float) -> None:
        """Take in what was measured. What cannot be (negative, beyond all bounds, no work at all) is passed over."""
        if not _can_be(features, duration_s):
            return
        duration_s = max(duration_s, _LEAST_S)
        keep, scale_s = _KEEP, duration_s
        if self.knows:
            expected_s = max(self.duration_s(features), _LEAST_S)
            surprise = math.log(duration_s / expected_s)
            most = max(_SURPRISE, _SPREADS * self._spread)
            self._spread += _SPREAD_GAIN * (min(abs(surprise), most) - self._spread)
            if abs(surprise) > most and surprise * self._surprise > 0:
                keep *= (_SURPRISE / surprise) ** 2
            else:
                if abs(surprise) > most:
                    duration_s = expected_s * math.exp(math.copysign(most, surprise))
                # Errors relative to what is measured make the small samples count most, relative to what is expected the large
                # ones; this is where the sum of both ends at the middle, for durations that spread as these do (log-normal)
                scale_s = expected_s**0.75 * duration_s**0.25
            self._surprise = surprise if abs(surprise) > most else 0.0
        scaled = [feature / scale_s for feature in features]
        target = duration_s / scale_s
        for row, (squares, of_row) in enumerate(zip(self._squares, scaled, strict=True)):
            for column, of_column in enumerate(scaled):
                squares[column] = squares[column] * keep + of_row * of_column
            self._products[row] = self._products[row] * keep + target * of_row
        self.samples += 1
        self._is_solved = False

    def _solve(self) -> None:
        _solve(self._squares, self._products, self._costs)
        self._is_solved = True


class MedianFit(_Sum):
    """Right in the median: of the last durations half were longer than it says, half shorter.

    For durations that a packet lost, or another process, makes twice as long now and then: what happens mostly is what counts,
    however far off the others are. Of a link that is another one most of the weight is new after ten samples, and all of it after
    three if it is far from what it was.
    """

    def __init__(self, features: int) -> None:
        super().__init__(features)
        self._last = 0  # samples that count
        self._far = 0  # in a row that were far off, below 0: that took far less than expected
        self._work: Numbers = np.zeros((_LAST, features))
        self._durations_s: Numbers = np.zeros(_LAST)

    def learn(self, features: Sequence[float], duration_s: float) -> None:
        """Take in what was measured, as `Fit` does; it takes time here, 0.1 ms, and none where `costs` are asked for."""
        if not _can_be(features, duration_s):
            return
        duration_s = max(duration_s, _LEAST_S)
        far = 0
        if self.knows:
            ratio = duration_s / max(self.duration_s(features), _LEAST_S)
            far = (ratio > _FAR) - (ratio < 1 / _FAR)
        self._far = far if far * self._far <= 0 else self._far + far
        at = self.samples % _LAST
        self._work[at], self._durations_s[at] = features, duration_s
        self.samples += 1
        self._last = FEW if abs(self._far) == FEW else min(self._last + 1, _LAST)
        ages = np.arange(self._last)
        rows = (at - ages) % _LAST
        work, durations_s, weights = self._work[rows], self._durations_s[rows], _KEEP**ages
        expected_s = durations_s
        if self._last > FEW:  # errors are relative: what is far too short would be all that matters at first
            expected_s = np.maximum(durations_s, work @ np.array(self._costs) / _FAR)
        for _ in range(_ROUNDS):
            # Squares over distances are distances: what is least then is their sum, and that is so at the median
            distances = np.maximum(np.abs(durations_s / expected_s - 1), _NEAR)
            weighed = work * (weights / distances / expected_s**2)[:, None]
            _solve((weighed.T @ work).tolist(), (weighed.T @ durations_s).tolist(), self._costs)
            expected_s = np.maximum(work @ np.array(self._costs), _LEAST_S)


def _can_be(features: Sequence[float], duration_s: float) -> bool:
    return all(0 <= feature <= _MOST for feature in features) and any(features) and 0 <= duration_s <= _MOST


def _solve(squares: list[list[float]], products: list[float], costs: list[float]) -> None:
    """Least squares; a cost that would be negative is none, and the others are sought again without it."""
    used = [at for at, row in enumerate(squares) if row[at] > _NOTHING]
    while used:
        found = _least_squares(squares, products, used)
        worst = min(range(len(used)), key=lambda at: found[at] * math.sqrt(squares[used[at]][used[at]]))
        if found[worst] >= 0:
            for at, cost in zip(used, found, strict=True):
                costs[at] = cost
            break
        costs[used.pop(worst)] = 0.0


def _least_squares(squares: list[list[float]], products: list[float], used: list[int]) -> list[float]:
    """Elimination in order: what could be due to several features is due to the first of them."""
    rows = [[*(squares[row][column] for column in used), products[row]] for row in used]
    count = len(used)
    for at in range(count):
        if rows[at][at] <= _DEPENDENT * squares[used[at]][used[at]]:
            rows[at] = [float(column == at) for column in range(count)] + [0.0]
            for below in rows[at + 1 :]:
                below[at] = 0.0
            continue
        for below in rows[at + 1 :]:
            share = below[at] / rows[at][at]
            for column in range(at, count + 1):
                below[column] -= share * rows[at][column]
    costs = [0.0] * count
    for at in reversed(range(count)):
        behind = math.fsum(rows[at][column] * costs[column] for column in range(at + 1, count))
        costs[at] = (rows[at][count] - behind) / rows[at][at]
    return costs
