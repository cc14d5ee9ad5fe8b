"""The callback by which long work reports its progress."""

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], None]
"""Function that is called with (done, total)."""


def no_progress(done: int, total: int) -> None:
    """Report nothing."""
