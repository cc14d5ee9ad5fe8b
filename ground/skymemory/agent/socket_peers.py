"""The process at the other end of a Unix socket, and whether an engine trusts it as its agent. Standard library only."""

import os
import socket
import struct
from pathlib import Path
from typing import Final, NamedTuple

_CREDENTIALS: Final = struct.Struct("3i")
"""Fields of the credentials: pid, uid, gid."""


def peer(link: socket.socket) -> tuple[int, int]:
    """Process and user at the other end, as the system says: of a listener, who made it listen."""
    pid, uid, _ = _CREDENTIALS.unpack(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return pid, uid


class Users(NamedTuple):
    """Users at the two ends of a socket, by number."""

    listener: int
    own: int


def users_of(link: socket.socket) -> Users:
    """Return the user that listens at the other end, and the user of this process."""
    return Users(peer(link)[1], os.geteuid())


def stranger(users: Users, path: Path) -> str:
    """Return why the listener, who will read and write all blocks, is not to be trusted, or '' if it is.

    Root's engines use agents of others too, in folders that are theirs.

    Raises:
        OSError: The folder is gone.
    """
    listens, own = users
    if listens in (own, 0) or (own == 0 and listens == path.parent.stat().st_uid):
        return ""
    return f"who listens is user {listens}; allowed are this user, {own}, and root"
