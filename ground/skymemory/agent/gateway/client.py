"""`Client`, as commands see the one that asked, and `Spec`, the entry of a command in the table."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from skymemory.agent.gateway.lmcache import Padding
from skymemory.agent.gateway.memory import Held
from skymemory.agent.gateway.operations import Operation
from skymemory.agent.gateway.replies import Text
from skymemory.agent.gateway.session import Session
from skymemory.agent.gateway.shared import Shared
from skymemory.agent.gateway.slots import Slot
from skymemory.agent.gateway.users import User
from skymemory.agent.gateway.values import Values


class Client(Protocol):
    """The client that sent a command."""

    shared: Shared
    session: Session
    values: Values
    """Values that the client's user sees."""
    commands: Mapping[bytes, Spec]
    """The table, by names in small letters."""
    padding: Padding | None
    """Lengths of answers for LMCache's client; None: any other client."""

    def slot(self) -> Slot:
        """Return the place of the next answer."""

    def do(self, name: bytes, operation: Operation, slot: Slot) -> None:
        """Do something to a value of the client's database; `slot` waits for it."""

    def work(self, coroutine: Coroutine[Any, Any, None], slot: Slot) -> None:
        """Let a command go on in the background until it has answered in `slot`, or the client has left."""

    def hold(self, slot: Slot, held: Held) -> None:
        """Keep memory until the answer in a slot is sent."""

    def trust(self, user: User) -> None:
        """Let the client be this user: it has sent the password."""

    def end(self) -> None:
        """Answer the commands so far, and close the connection."""

    def begin_batch(self) -> None:
        """Let the commands that follow wait for `run_batch`."""

    def drop_batch(self) -> None:
        """Forget the commands that wait."""

    def run_batch(self) -> None:
        """Run the commands that wait, before all others of this client."""


Run = Callable[[Client, Sequence[Any]], Iterator[None] | None]
"""Function of a command. Arguments: the client; the command's name and what follows, all bytes but for large values.

A command on many names returns an iterator, which begins a little of the command at each step: others have their turn between.
"""

NO_NAMES: Final = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class Spec:
    """One command."""

    name: str
    run: Run
    arity: int
    """Number of arguments with the name; negative: at least as many."""
    flags: str = ""
    """Flags as COMMAND INFO tells them, with spaces between them."""
    names: tuple[int, int, int] = NO_NAMES
    """Places of the first and of the last name among the arguments, and the step between names; first 0: there are none."""
    values: slice | None = None
    """Arguments that are values and may be long; all others are short. None: all are short."""
    waits: bool = False
    """True: it waits for all commands of its connection before it."""
    blocks: bool = False
    """True: all commands of its connection behind it wait for it."""
    is_at_once: bool = False
    """True: it does not wait between MULTI and EXEC."""
    is_open: bool = False
    """True: clients without the password may use it."""
    group: str = "string"

    @property
    def writes(self) -> bool:
        """True: it may change values."""
        return self.flags.startswith("write")

    @property
    def is_for_loading(self) -> bool:
        """True: it is done while the agent has not found its constellation yet, as Redis does it while it loads."""
        return "loading" in self.flags.split()

    def takes(self, count: int) -> bool:
        """Return whether it may have so many arguments."""
        return count == self.arity if self.arity >= 0 else count >= -self.arity

    def described(self) -> list[object]:
        """Return the ten fields of COMMAND INFO, as in Redis 7."""
        return [self.name, self.arity, [Text(flag) for flag in self.flags.split()], *self.names, [], [], [], []]

    def documented(self) -> dict[str, object]:
        """Return what COMMAND DOCS tells."""
        summary = (self.run.__doc__ or "").partition("\n")[0]
        return {"summary": summary, "since": "1.0.0", "group": self.group, "complexity": "O(1) for each name"}
