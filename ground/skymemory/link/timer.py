"""When a request is sent again (RFC 6298)."""

from typing import Final

from skymemory import defaults

_FIRST_S: Final = defaults.HOST_ASK_INITIAL_US / 1e6
"""until a round trip was measured"""
_MIN_S: Final = defaults.HOST_ASK_MIN_US / 1e6
_MAX_S: Final = defaults.HOST_ASK_MAX_US / 1e6


class Timer:
    """Of the requests to one satellite; from measured round trips."""

    __slots__ = ("rttvar_s", "srtt_s")

    def __init__(self) -> None:
        self.srtt_s = 0.0
        self.rttvar_s = 0.0

    @property
    def measured(self) -> bool:
        """A round trip is known."""
        return self.srtt_s > 0.0

    def measure(self, rtt_s: float) -> None:
        """Take in a round trip. Of a request that was sent again one cannot tell it (Karn)."""
        if not self.measured:
            self.srtt_s, self.rttvar_s = rtt_s, rtt_s / 2
        else:
            self.rttvar_s += (abs(self.srtt_s - rtt_s) - self.rttvar_s) / 4
            self.srtt_s += (rtt_s - self.srtt_s) / 8

    def timeout_s(self, attempt: int) -> float:
        """How long to wait for the answer to sending number `attempt`, from 0."""
        base = self.srtt_s + 4 * self.rttvar_s if self.measured else _FIRST_S
        return float(min(max(base, _MIN_S) * 2**attempt, _MAX_S))
