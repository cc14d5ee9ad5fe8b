"""The callback by which long work reports its progress."""

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], None]
"""Function that is called with (done, total)."""
