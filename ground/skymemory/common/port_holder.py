"""Words about who has an address that a program wants: another program of this user, or another user."""

import errno
import os
import pwd
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

Protocol = Literal["tcp", "udp"]
_LISTENING: Final = {"tcp": 0x0A, "udp": 0x07}
_ANY: Final = "0.0.0.0"  # noqa: S104  # nothing is opened here
_WORDS: Final = 2
"""Words of a command line that are shown: the program and its command."""


def why_not_bound(error: OSError, protocol: Protocol, host: str, port: int) -> str:
    """Return why a socket could not be bound to an IPv4 address: the system's words and, if it is taken, by whom."""
    why = error.strerror or str(error)
    who = holder(protocol, host, port) if error.errno == errno.EADDRINUSE else ""
    return f"{why} ({who} has it)" if who else why


def holder(protocol: Protocol, host: str, port: int) -> str:
    """Return who has an IPv4 address: `skymem relay` (pid 12, SKYMEM_STATE=/a/b), or a program of user bob; '' if unknown."""
    for uid, inode in _sockets(protocol, host, port):
        pid = next((one for one in _pids() if _has(one, inode)), None)
        if pid is not None:
            return f"`{_command(pid)}` (pid {pid}{_state(pid)})"
        return f"a program of user {_user(uid)}"
    return ""


def holder_output(protocol: Protocol, host: str, port: int) -> Path | None:
    """Return the file to which the program that has an address writes its output; None if unknown."""
    for _, inode in _sockets(protocol, host, port):
        for pid in _pids():
            if _has(pid, inode):
                with suppress(OSError):
                    return Path(f"/proc/{pid}/fd/1").readlink()
    return None


def _sockets(protocol: Protocol, host: str, port: int) -> Iterator[tuple[int, int]]:
    """Yield user id and inode of each socket of this network name space that is bound there."""
    try:
        wanted = {socket.gethostbyname(host), _ANY}
        lines = Path(f"/proc/net/{protocol}").read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return
    for line in lines:
        words = line.split()
        address, _, number = words[1].partition(":")
        is_there = int(number, 16) == port and int(words[3], 16) == _LISTENING[protocol]
        if is_there and (socket.inet_ntoa(struct.pack("=I", int(address, 16))) in wanted or host == _ANY):
            yield int(words[7]), int(words[9])


def _pids() -> Iterator[int]:
    return (int(folder.name) for folder in Path("/proc").glob("[0-9]*"))


def _has(pid: int, inode: int) -> bool:
    """Return True if a process has this socket. Those of other users do not tell."""
    name = f"socket:[{inode}]"
    try:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with suppress(OSError):  # it was closed meanwhile
                if os.readlink(entry.path) == name:
                    return True
    except OSError:
        pass
    return False


def _command(pid: int) -> str:
    """Return the program and its first word, without the interpreter and without folders."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
    except OSError:
        words = []
    names = [Path(word).name for word in words if word]
    if len(names) > 1 and names[0].startswith("python"):
        names = names[1:]
    shown = " ".join(name for name in names[:_WORDS] if not name.startswith("-"))
    return shown if shown.isprintable() and shown else "a program"


def _state(pid: int) -> str:
    """Return the state folder that the environment of a process names, for words behind its pid."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    named = next((word for word in environment if word.startswith(b"SKYMEM_STATE=")), b"").decode(errors="replace")
    return f", {named}" if named and named.isprintable() else ""


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
