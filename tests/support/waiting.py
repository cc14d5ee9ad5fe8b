"""Waiting for a condition, with a deadline that only a fault misses."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

from skymemory.link.timing import Timing

Found = TypeVar("Found")

PATIENCE_S = 60.0
"""Seconds to wait, for a machine that is busy with something else."""
PATIENT = Timing(silence_s=5.0)
"""Times of a host that waits for answers that come late. Where no satellite is lost, silence is a busy machine's."""


def wait_until(
    true: Callable[[], Found], what: str | Callable[[], object] = "", *, patience_s: float = PATIENCE_S, pause_s: float = 0.01
) -> Found:
    """Wait until a condition holds, and return what it returned.

    Args:
        what: Text for the failure, or a function that makes it when the wait was in vain.
    """
    end_s = time.monotonic() + patience_s
    while not (found := true()):
        _check(end_s, what)
        time.sleep(pause_s)
    return found


async def wait_until_async(
    true: Callable[[], Found], what: str | Callable[[], object] = "", *, patience_s: float = PATIENCE_S, pause_s: float = 0.01
) -> Found:
    """Wait as `wait_until` does, while other tasks of the loop run."""
    end_s = time.monotonic() + patience_s
    while not (found := true()):
        _check(end_s, what)
        await asyncio.sleep(pause_s)
    return found


def _check(end_s: float, what: str | Callable[[], object]) -> None:
    assert time.monotonic() < end_s, f"in vain: {what() if callable(what) else what}"
