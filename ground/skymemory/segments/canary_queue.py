"""Canaries that wait: a thread computes them once no prompt was linked for a while. It lives only as long as one waits."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from threading import Condition, Lock, Thread, main_thread
from typing import TYPE_CHECKING, Final

from skymemory.segments.evidence import Point

if TYPE_CHECKING:
    from transformers import DynamicCache

_log = logging.getLogger(__name__)

QUIET_S: Final = 2.0
"""Seconds without a linked prompt after which canaries are computed."""
POSTPONED_S: Final = 60.0
"""Seconds after which a canary is computed though prompts come all the time."""
WAITING_MAX: Final = 2
"""Most canaries that wait. Each holds the memory of a prompt's keys and values; further ones are left out."""
_LOOK_S: Final = 0.1


@dataclass(frozen=True)
class Canary:
    """A request that is to be computed in full."""

    tokens: list[int]
    """Token ids of the prompt."""
    point: Point
    """The point by which its segments were linked."""
    cache: DynamicCache
    """Linked keys and values of all tokens but the last one, in a cache of its own."""
    scope: bytes = b""
    """Scope of the prompt's blocks."""


class Canaries:
    """Canaries that wait. Thread-safe."""

    def __init__(self, check: Callable[[Canary], None], *, quiet_s: float = QUIET_S, postponed_s: float = POSTPONED_S) -> None:
        """Begin without any.

        Args:
            check: Computes a canary.
            quiet_s: Seconds without a prompt after which canaries are computed.
            postponed_s: Seconds after which one is computed although prompts come.
        """
        self._check = check
        self._quiet_s = quiet_s
        self._postponed_s = postponed_s
        self._changed = Condition()
        self._computing = Lock()
        self._waiting: deque[tuple[float, Canary]] = deque()
        self._thread: Thread | None = None
        self._linked_s = time.monotonic()

    @property
    def waiting(self) -> int:
        """Number of canaries that wait."""
        return len(self._waiting)

    def linked(self) -> None:
        """Tell that a prompt is linked now, whose answer shall not wait for a canary."""
        self._linked_s = time.monotonic()

    def add(self, canary: Canary) -> bool:
        """Have a canary computed later; return False if too many wait."""
        with self._changed:
            if len(self._waiting) >= WAITING_MAX:
                return False
            self._waiting.append((time.monotonic(), canary))
            if self._thread is None:
                # No daemon: the interpreter must not end while torch computes in it
                self._thread = Thread(target=self._work, name="skymem-canaries", daemon=False)
                self._thread.start()
            return True

    def check_now(self) -> int:
        """Compute all that wait, and return their number. One that the thread computes is waited for."""
        count = 0
        while self._check_one():
            count += 1
        return count

    def _work(self) -> None:
        while self._await_pause():
            self._check_one()

    def _await_pause(self) -> bool:
        """Return True when a canary is due; False if none waits any more, or the program ends."""
        while True:
            with self._changed:
                if not self._waiting or not main_thread().is_alive():
                    self._thread = None
                    return False
                since_s, now_s = self._waiting[0][0], time.monotonic()
                if now_s >= min(self._linked_s + self._quiet_s, since_s + self._postponed_s):
                    return True
                self._changed.wait(_LOOK_S)

    def _check_one(self) -> bool:
        with self._computing:
            with self._changed:
                if not self._waiting:
                    return False
                _, canary = self._waiting.popleft()
            try:
                self._check(canary)
            except Exception:  # a canary never breaks a program
                _log.warning("a canary could not be computed", exc_info=True)
            return True
