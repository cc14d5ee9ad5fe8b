"""A duration as a sum of costs, learned as it goes, in constant time and memory."""

import math
from collections.abc import Sequence
from typing import Final

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


class Fit:
    """`duration = c1 f1 + c2 f2 + ...` with costs c that are never negative, so that more work is never expected to end sooner.

    Least squares of relative errors, in which older samples count less and less. A sample that surprises is taken for one that
    surprises a little: a packet was lost, another process ran. If the next one surprises in the same direction it is the past
    that counts little from then on: the link is another one.
    """

    def __init__(self, features: int) -> None:
        """`features` is how many a sample has. Those that come first are the likelier cause of what could be due to several."""
        self.samples = 0
        self._squares = [[0.0] * features for _ in range(features)]
        self._products = [0.0] * features
        self._costs = [0.0] * features
        self._surprise = 0.0
        self._spread = 0.0
        self._is_solved = True

    @property
    def knows(self) -> bool:
        """There were samples enough to go by."""
        return self.samples >= FEW

    @property
    def costs(self) -> list[float]:
        """Of each feature one unit, in seconds; all 0 before the first sample."""
        if not self._is_solved:
            self._solve()
        return self._costs

    def duration_s(self, features: Sequence[float]) -> float:
        """What to expect."""
        return math.fsum(cost * feature for cost, feature in zip(self.costs, features, strict=True))

    def learn(self, features: Sequence[float], duration_s: float) -> None:
        """Take in what was measured. What cannot be (negative, beyond all bounds, no work at all) is passed over."""
        if not all(0 <= feature <= _MOST for feature in features) or not any(features) or not 0 <= duration_s <= _MOST:
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
        """Least squares; a cost that would be negative is none, and the others are sought again without it."""
        used = [at for at, squares in enumerate(self._squares) if squares[at] > _NOTHING]
        while used:
            costs = self._least_squares(used)
            worst = min(range(len(used)), key=lambda at: costs[at] * math.sqrt(self._squares[used[at]][used[at]]))
            if costs[worst] >= 0:
                for at, cost in zip(used, costs, strict=True):
                    self._costs[at] = cost
                break
            self._costs[used.pop(worst)] = 0.0
        self._is_solved = True

    def _least_squares(self, used: list[int]) -> list[float]:
        """Elimination in order: what could be due to several features is due to the first of them."""
        rows = [[*(self._squares[row][column] for column in used), self._products[row]] for row in used]
        count = len(used)
        for at in range(count):
            if rows[at][at] <= _DEPENDENT * self._squares[used[at]][used[at]]:
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
