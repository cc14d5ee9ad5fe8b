"""Times of a ground host: it waits for satellites, and asks them again."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from skymemory.common import defaults


@dataclass(frozen=True)
class Timing:
    """Times of a ground host in seconds, and its clock. The defaults are in `icd/defaults.toml`, which the twin has too."""

    first_s: float = defaults.HOST_ASK_INITIAL_US / 1e6
    """Timer of a question before a round trip was measured."""
    min_s: float = defaults.HOST_ASK_MIN_US / 1e6
    """Least timer of a question."""
    max_s: float = defaults.HOST_ASK_MAX_US / 1e6
    """Largest timer of a question. It doubles after three sendings."""
    silence_s: float = defaults.HOST_PATIENCE_MIN_US / 1e6
    """Least silence after which a satellite counts as silent."""
    lookup_s: float = 1.0
    """Least time that a lookup waits for its answer, unless the deadline of blocks is shorter."""
    lost_s: float = defaults.HOST_LOST_US / 1e6
    """Time after which a lost satellite is asked again. Until then routes avoid it."""
    doubt_s: float = defaults.HOST_DOUBT_US / 1e6
    """The same time, if a stand-in did not have a share of the lost satellite."""
    back_s: float = defaults.HOST_PROBE_US / 1e6
    """Time to wait for a lost satellite's answer: more than the longest round trip takes."""
    pause_first_s: float = defaults.HOST_PAUSE_FIRST_US / 1e6
    """Time without questions after no satellite has answered. It doubles with each further failure."""
    pause_max_s: float = defaults.HOST_PAUSE_MAX_US / 1e6
    """Longest such pause."""
    clock: Callable[[], float] = time.monotonic
    """Clock by which the host knows when satellites are to be asked again."""

    def now_us(self) -> int:
        """Return the time of the clock in microseconds, as the core takes it."""
        return round(1e6 * self.clock())
