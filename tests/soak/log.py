"""Logs of clients: a line as an operation begins and a line as it ends, so nothing that was begun is lost with the client."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, Final

from support.register import Operation

ERROR: Final = "error"


@dataclass
class Outcome:
    """What a call brought, to be filled in."""

    saw: str | None = None
    is_acknowledged: bool = False
    version: int = 0
    answer: str = ERROR
    may_go_on: bool = False
    """True: the call may still take effect, whatever its answer."""
    is_no_write: bool = False
    """True: the call has written nothing, and will not."""


class Log:
    """The log of one client, in a file."""

    def __init__(self, path: Path, client: str) -> None:
        self._file = path.open("ab", buffering=0)  # a line is with the system before the next step
        self._client = client
        self._count = 0

    @contextmanager
    def operation(self, key: str, what: str, wrote: str | None = None) -> Iterator[Outcome]:
        """Write down an operation: its begin before the call, its end and outcome after it."""
        self._count += 1
        self._line(n=self._count, client=self._client, key=key, what=what, wrote=wrote, begin=time.monotonic())
        outcome = Outcome()
        yield outcome
        end: dict[str, Any] = {} if outcome.may_go_on else {"end": time.monotonic()}
        if outcome.is_no_write:
            end["wrote"] = None
        told = {"saw": outcome.saw, "is_acknowledged": outcome.is_acknowledged, "version": outcome.version}
        self._line(n=self._count, answer=outcome.answer, **told, **end)

    def _line(self, **fields: Any) -> None:
        self._file.write(json.dumps(fields).encode() + b"\n")


def operations(path: Path, killed: float | None = None) -> list[Operation]:
    """Read a client's log.

    Args:
        killed: Time by which the client was dead: no operation of it ends later. None: what has no end may go on.
    """
    found: dict[int, Operation] = {}
    if not path.exists():  # it was killed before it began
        return []
    for line in path.read_text().splitlines():
        fields = json.loads(line)
        number = fields.pop("n")
        found[number] = replace(found[number], **fields) if number in found else Operation(answer="none", **fields)
    last = inf if killed is None else killed
    return [one if one.answer != "none" else replace(one, end=last) for one in found.values()]
