"""`skymem` in this process, as a user types it."""

from collections.abc import Callable
from typing import TypeAlias

from click.testing import Result

Run: TypeAlias = Callable[..., Result]
"""A function that runs the command of these words: `run("segment", "list")`."""
