"""The commands that there are, and what COMMAND tells of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from skymemory.agent.resp.replies import Text

if TYPE_CHECKING:
    from skymemory.agent.resp.connection import Connection
    from skymemory.agent.resp.gateway import Gateway

Run = Callable[["Gateway", "Connection", Sequence[Any]], None]
"""Arguments: the command's name and what follows; all are bytes but for a value that is large"""


@dataclass(frozen=True, slots=True)
class Spec:
    """One command."""

    name: str
    run: Run
    arity: int
    """arguments with the name; negative: at least as many"""
    flags: tuple[str, ...]
    first: int
    """place of the first name among the arguments; 0: none"""
    last: int
    step: int
    waits: bool
    """for all commands of its connection before it"""
    blocks: bool
    """all commands of its connection behind it wait for it"""
    is_open: bool
    """also for those who have not said the password"""
    values: slice
    """which arguments are values: of a large one it gets the memory; all others are short"""
    group: str
    summary: str

    def takes(self, count: int) -> bool:
        """May it have so many arguments?"""
        return count == self.arity if self.arity >= 0 else count >= -self.arity


NO_VALUES: Final = slice(0)
COMMANDS: Final[dict[bytes, Spec]] = {}
"""by name in small letters"""


def command(
    arity: int,
    *flags: str,
    keys: tuple[int, int, int] = (0, 0, 0),
    waits: bool = False,
    blocks: bool = False,
    is_open: bool = False,
    values: slice = NO_VALUES,
    group: str = "string",
    name: str | None = None,
) -> Callable[[Run], Run]:
    """Enter a function as a command, under its name; its docstring's first line is the summary."""

    def enter(run: Run) -> Run:
        called = name or getattr(run, "__name__", "").rstrip("_")
        summary = (run.__doc__ or "").partition("\n")[0]
        COMMANDS[called.encode()] = Spec(called, run, arity, flags, *keys, waits, blocks, is_open, values, group, summary)
        return run

    return enter


def described(spec: Spec) -> list[object]:
    """As COMMAND INFO tells it (Redis 7: ten fields)."""
    flags = [Text(flag) for flag in spec.flags]
    return [spec.name, spec.arity, flags, spec.first, spec.last, spec.step, [], [], [], []]


def documented(spec: Spec) -> dict[str, object]:
    """As COMMAND DOCS tells it."""
    return {"summary": spec.summary, "since": "1.0.0", "group": spec.group, "complexity": "O(1) for each name"}
