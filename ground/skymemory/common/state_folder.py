"""Folder of the records and sockets of this user's constellations and agents. Needs only the standard library."""

import os
from pathlib import Path
from typing import Final

SOCKET_VARIABLE: Final = "SKYMEM_AGENT_SOCKET"
SOCKET_NAME: Final = "agent.sock"


def default_folder() -> Path:
    """Return $SKYMEM_STATE, else $XDG_STATE_HOME/skymemory, else ~/.local/state/skymemory."""
    if chosen := os.environ.get("SKYMEM_STATE"):
        return Path(chosen)
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "skymemory"


def agent_socket() -> Path:
    """Return the agent's socket: $SKYMEM_AGENT_SOCKET, else `agent.sock` in the state folder."""
    return Path(os.environ.get(SOCKET_VARIABLE) or default_folder() / SOCKET_NAME)


def http_record(socket: Path) -> Path:
    """Return the file in which the agent of that socket records its HTTP address, for `skymem status`."""
    return Path(f"{socket}.http")
