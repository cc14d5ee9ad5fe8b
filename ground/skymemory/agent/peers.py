"""Who is at the other end of a Unix socket, and whom an engine takes for its agent. Needs the standard library only."""

import os
import socket
import struct
from pathlib import Path
from typing import Final

_CREDENTIALS: Final = struct.Struct("3i")
"""pid, uid, gid"""


def peer(link: socket.socket) -> tuple[int, int]:
    """Process and user at the other end, as the system says: of a listener, who made it listen."""
    pid, uid, _ = _CREDENTIALS.unpack(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return pid, uid


def stranger(link: socket.socket, path: Path) -> str:
    """Why who listens is not to be trusted: it reads all blocks, and says what blocks are; empty: it is.

    Root's engines use agents of others too, in folders that are theirs.

    Raises:
        OSError: the folder is gone.
    """
    _, listens = peer(link)
    own = os.geteuid()
    if listens in (own, 0) or (own == 0 and listens == path.parent.stat().st_uid):
        return ""
    return f"who listens is user {listens}; allowed are this user, {own}, and root"
