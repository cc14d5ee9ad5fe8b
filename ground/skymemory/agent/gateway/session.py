"""`Session`: the state of one client."""

import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Session:
    """State of one connection."""

    number: int
    address: str
    is_trusted: bool
    """True: the client has sent the password, or needs none."""
    database: int = 0
    protocol: int = 2
    name: str = ""
    library: str = ""
    library_version: str = ""
    last_command: str = ""
    commands: int = 0
    started_s: float = field(default_factory=time.monotonic)
    active_s: float = field(default_factory=time.monotonic)
