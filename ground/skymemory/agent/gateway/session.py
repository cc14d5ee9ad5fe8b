"""`Session`: the state of one client."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from skymemory.agent.gateway.users import User
from skymemory.common.addresses import address_text


@dataclass(slots=True)
class Session:
    """State of one connection."""

    number: int
    told_number: int
    """Number among the clients of its tenant, which is all that it may know."""
    host: str
    """Address of the client without the port; what guesses of passwords are counted by."""
    port: int
    user: User | None
    """User that the client has proved to be; None: it has not yet."""
    database: int = 0
    protocol: int = 2
    name: str = ""
    library: str = ""
    library_version: str = ""
    last_command: str = ""
    commands: int = 0
    used_bytes: Callable[[], int] = int
    """Returns the memory of its commands and values that are on their way."""
    started_s: float = field(default_factory=time.monotonic)
    active_s: float = field(default_factory=time.monotonic)

    @property
    def is_trusted(self) -> bool:
        """True: the client has sent a password, or needs none."""
        return self.user is not None

    @property
    def address(self) -> str:
        """Address with the port."""
        return address_text(self.host, self.port)
