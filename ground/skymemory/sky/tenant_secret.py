"""The tenant secret of a constellation's users, which goes into all keys (`skymemory.wire.key_derivation`).

All tools of a user take the same secret, so they see the same names. By default it is made once for each constellation, in this
user's state folder. A user on another machine, or in a container, needs the same file (`--tenant-secret-file`, or the variable
$SKYMEM_TENANT_SECRET_FILE).

What was stored under a secret is never found without it, so a secret that is lost is not replaced silently: a file beside it says
that there was one.
"""

import logging
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from skymemory.common.secret_files import FILE_MODE, SecretFileError
from skymemory.common.state_folder import SECRET_VARIABLE, default_folder, named_secret
from skymemory.common.tenant_secrets import made_secret, read_tenant_secret
from skymemory.sky.constellation import Constellation

_log = logging.getLogger(__name__)

_MADE: Final = ".made"
"""Suffix of the note that there was a secret, an empty file."""


def secret_file(constellation: Constellation) -> Path:
    """Return the file of the default secret. Constellations on the same network have the same one."""
    return default_folder() / f"tenant-{constellation.network.base}.secret"


def secret_of(constellation: Constellation, file: Path | None = None, *, first: Path | None = None) -> bytes:
    """Return the secret in a file; without one the constellation's default secret, which is made if there was none before.

    A secret that is made is told in the log, because hosts that share a sky need the same one.

    Args:
        constellation: The constellation.
        file: File that a person named; by default the one that $SKYMEM_TENANT_SECRET_FILE names.
        first: File of this user whose secret a new default takes over, if it is there.

    Raises:
        SecretFileError: There is no secret, and none can be made, or there was one.
    """
    file = named_secret() if file is None else file
    if file is not None:
        return read_tenant_secret(file)
    path, note = secret_file(constellation), _note_of(constellation)
    was_there = note.exists()  # before the look at the secret itself, which another process may make meanwhile
    is_there = os.path.lexists(path)
    if not is_there and was_there:
        raise SecretFileError(
            f"tenant secret {path} is missing, and without it nothing is found that was stored under it. Put a copy of it there "
            f"(an agent leaves one beside its socket, agent.sock.secret), or name another file by {SECRET_VARIABLE}. To begin "
            f"anew, without what was stored, remove {note}"
        )
    secret = made_secret(path, first)
    if _leave(note) and not is_there:
        _log.warning(
            "%s: a tenant secret was made. What other hosts or users have stored in this sky is found only with theirs: name a "
            "copy of that one by %s",
            path,
            SECRET_VARIABLE,
        )
    return secret


def begin_secret(constellation: Constellation) -> Path | None:
    """Make the default secret of a constellation that starts now, and so holds nothing that needs another one, if it is missing.

    Returns:
        The file, if it was made.

    Raises:
        SecretFileError: It cannot be made.
    """
    path = secret_file(constellation)
    if named_secret() is not None or os.path.lexists(path):
        return None
    made_secret(path)
    _leave(_note_of(constellation))
    return path


def _note_of(constellation: Constellation) -> Path:
    return Path(f"{secret_file(constellation)}{_MADE}")


def _leave(note: Path) -> bool:
    """Leave a note that there is a secret. Return True if nobody did before."""
    with suppress(OSError):  # without the note all works, until the secret is lost
        os.close(os.open(note, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE))
        return True
    return False
