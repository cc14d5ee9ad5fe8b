"""Tells systemd how the agent is (sd_notify(3)); does nothing where nobody listens."""

import os
import socket
from contextlib import suppress


def notify(*words: str) -> None:
    """Send assignments such as `READY=1` to the socket that `$NOTIFY_SOCKET` names."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address[:1] not in ("/", "@"):
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.sendto("\n".join(words).encode(), address.replace("@", "\0", 1) if address[0] == "@" else address)
