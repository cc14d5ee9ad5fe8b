"""The agent's Unix socket: one agent at a time, readable by its user alone, taken over from an agent that was killed."""

import fcntl
import logging
import os
import socket
import stat
from pathlib import Path
from typing import Final

from skymemory.common.state_folder import default_folder, make_folders, make_private

_log = logging.getLogger(__name__)

PATH_BYTES_MAX: Final = 107
"""Bytes that `sun_path` holds, with its end."""
_BACKLOG: Final = 128


class SocketError(RuntimeError):
    """Engines cannot be served at this path; the message says why."""


class OwnedSocket:
    """A listening socket and the lock beside it (`PATH.lock`), which the kernel gives up with the process."""

    def __init__(self, path: Path) -> None:
        """Listen.

        Raises:
            SocketError: Another agent serves there, or the path cannot be one of a socket.
            OSError: The system does not let us.
        """
        name = os.fsencode(path)
        if len(name) > PATH_BYTES_MAX:
            raise SocketError(
                f"{path}: {len(name)} bytes; the path of a socket has at most {PATH_BYTES_MAX} (--socket names a shorter one)"
            )
        if not path.name:
            raise SocketError(f"{str(path)!r} is no path of a socket (--socket names one)")
        self.path = path
        lock_path = path.with_name(path.name + ".lock")
        try:
            if path.parent == default_folder():
                make_private(path.parent)
            else:
                make_folders(path.parent)
            self._lock = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise SocketError(f"{path}: no socket can be there: {error.strerror}; --socket names another place") from error
        try:
            self._take(lock_path)
            self.listener = self._listen()
        except BaseException:
            os.close(self._lock)
            raise

    def close(self) -> None:
        """Stop listening; the next agent may begin."""
        self.listener.close()
        self.path.unlink(missing_ok=True)
        os.close(self._lock)

    def _take(self, lock_path: Path) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            pid = os.pread(self._lock, 20, 0).decode("ascii", "replace").strip()
            who = f"pid {pid}" if pid.isdigit() else f"it holds {lock_path}"
            raise SocketError(f"another agent ({who}) serves {self.path}; end it, or name another --socket") from error
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    def _listen(self) -> socket.socket:
        try:
            if not stat.S_ISSOCK(self.path.lstat().st_mode):
                raise SocketError(f"{self.path} is there and is no socket; it is left alone")
            self.path.unlink()  # the owner of the lock owns it
            _log.warning("%s was left by an agent that was killed, and is taken over", self.path)
        except FileNotFoundError:
            pass
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        try:
            os.fchmod(listener.fileno(), 0o600)  # Linux makes the file with this mode, so others can never connect
            listener.bind(str(self.path))
            listener.listen(_BACKLOG)
        except BaseException:
            listener.close()
            raise
        return listener
