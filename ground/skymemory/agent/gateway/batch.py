"""`Batch`: the commands between MULTI and EXEC."""

import time
from dataclasses import dataclass, field
from typing import Final

from skymemory.agent.gateway.requests import FREE_BYTES, Command

COMMANDS_MAX: Final = 100_000
"""Commands of one batch: all of them are forgotten at once."""
STALL_S: Final = 60.0
"""Time without progress after which a client is cut off."""
LEAST_BYTES: Final = 8 << 20
"""Bytes in that time that are progress where a client takes the gateway's memory: 140 kB/s. A slower one keeps it from others."""


@dataclass(slots=True)
class Batch:
    """Commands of one client that wait for EXEC. They keep their memory until then."""

    commands: list[Command] = field(default_factory=list)
    held_bytes: int = 0
    """Memory of all arguments."""
    is_aborted: bool = False
    """True: a command was wrong, or there was no memory for it; EXEC does nothing."""
    _moved_s: float = field(default_factory=time.monotonic)
    _moved_bytes: int = 0

    def add(self, command: Command) -> None:
        """Take a command."""
        self.commands.append(command)
        self.held_bytes += command.small_bytes + command.large_bytes
        if self.held_bytes - self._moved_bytes >= LEAST_BYTES:
            self._moved_s, self._moved_bytes = time.monotonic(), self.held_bytes

    def is_stalled(self, now_s: float) -> bool:
        """Return whether it takes memory and does not come to its end."""
        return self.held_bytes > FREE_BYTES and now_s - self._moved_s >= STALL_S
