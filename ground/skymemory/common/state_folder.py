"""Folder of the records and sockets of this user's constellations and agents. Needs only the standard library."""

import logging
import os
import re
import stat
from pathlib import Path
from typing import Final

_log = logging.getLogger(__name__)

SOCKET_VARIABLE: Final = "SKYMEM_AGENT_SOCKET"
SECRET_VARIABLE: Final = "SKYMEM_TENANT_SECRET_FILE"
"""Variable that names the file of the tenant secret once, for all programs of a user."""
SOCKET_NAME: Final = "agent.sock"
_MODE: Final = 0o700
_OTHERS: Final = 0o077
_OURS: Final = re.compile(
    r"\.?(constellation\.|agent\.sock|gate-|hints-|segments-|tenant-|values-|draft-).*|logs|replays|weights"
)
"""Names of what programs of this package have in a state folder."""


def default_folder() -> Path:
    """Return $SKYMEM_STATE, else $XDG_STATE_HOME/skymemory, else ~/.local/state/skymemory."""
    if chosen := os.environ.get("SKYMEM_STATE"):
        return Path(chosen)
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "skymemory"


def make_folders(folder: Path) -> None:
    """Make a folder, and those above it that are missing, so that only this user may enter them.

    Raises:
        OSError: A folder cannot be made.
    """
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=_MODE, exist_ok=True)  # another program may be as far
    if not folder.is_dir():
        folder.mkdir()  # this says what is there


def make_private(folder: Path) -> None:
    """Make a state folder that only this user may enter. One that is there and that others may enter is closed, which is told.

    One with other things in it, such as a home, stays as it is, which is told as well. So do folders of other users, and those
    that are for all users, such as /tmp: each secret is closed by itself.

    Raises:
        OSError: The folder cannot be made.
    """
    make_folders(folder)
    found = folder.stat()
    if not is_own(found) or not found.st_mode & _OTHERS:
        return
    before = stat.S_IMODE(found.st_mode)
    other = next((name for name in sorted(os.listdir(folder)) if not _OURS.fullmatch(name)), None)
    if other is not None:
        _log.warning(
            "%s has mode %04o, so that others can look into it, and is left so, for it holds %s: let SKYMEM_STATE name another",
            folder,
            before,
            other,
        )
        return
    folder.chmod(_MODE)
    _log.warning("%s had mode %04o, so that others could look into it; it has %04o now", folder, before, _MODE)


def is_own(folder: os.stat_result) -> bool:
    """Return whether a folder belongs to this user, and is not one for all users, such as /tmp."""
    return folder.st_uid == os.geteuid() and not folder.st_mode & stat.S_ISVTX


def agent_socket() -> Path:
    """Return the agent's socket: $SKYMEM_AGENT_SOCKET, else `agent.sock` in the state folder."""
    return Path(os.environ.get(SOCKET_VARIABLE) or default_folder() / SOCKET_NAME)


def http_record(socket: Path) -> Path:
    """Return the file in which the agent of that socket records its HTTP address, for `skymem status`."""
    return Path(f"{socket}.http")


def named_secret() -> Path | None:
    """Return the file of the tenant secret that $SKYMEM_TENANT_SECRET_FILE names, or None."""
    return Path(named) if (named := os.environ.get(SECRET_VARIABLE)) else None


def engines_secret(socket: Path) -> Path:
    """Return the file in which the agent of that socket leaves its tenant secret for engines of the same user."""
    return Path(f"{socket}.secret")


def first_secret(socket: Path) -> Path:
    """Return the file in which engines that come before the first agent of that socket agree on a tenant secret."""
    return Path(f"{socket}.first-secret")
