"""`FewLines`: a log that whoever sends nonsense cannot fill."""

import time
from collections.abc import Callable
from typing import Final

LINES_MAX: Final = 20
"""Lines in a period."""
PERIOD_S: Final = 60.0


class FewLines:
    """Tells some lines in each period, the same one once, and then how many it left out. Thread-safe if `tell` is."""

    def __init__(self, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        """`tell`: gets the lines; `clock`: returns seconds."""
        self._tell = tell
        self._clock = clock
        self._since_s = clock()
        self._told: set[str] = set()
        self._left_out = 0

    def __call__(self, text: str) -> None:
        """Tell a line, unless there were many, or this one, in the same period."""
        now_s = self._clock()
        if now_s - self._since_s >= PERIOD_S:
            self._since_s, self._told = now_s, set()
            self._tell_left_out()
        if text in self._told or len(self._told) >= LINES_MAX:
            self._left_out += 1
            return
        self._told.add(text)
        self._tell(text)

    def close(self) -> None:
        """Tell how many lines were left out since that was told last."""
        self._tell_left_out()

    def _tell_left_out(self) -> None:
        left_out, self._left_out = self._left_out, 0
        if left_out:
            self._tell(f"{left_out:,} more line{' like these was' if left_out == 1 else 's like these were'} left out")
