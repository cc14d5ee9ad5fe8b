"""Files of tenant secrets: made once with mode 0600, and read with care. Needs only the standard library."""

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

from skymemory.common.secret_files import (
    Kept,
    SecretFileError,
    drafted,
    read_secret,
    replace_secret,
    sync,
    write_secret,
)
from skymemory.common.state_folder import engines_secret, first_secret, make_folders

SECRET_BYTES: Final = 32
"""Bytes of a secret that is made here."""
SECRET_BYTES_MAX: Final = 4096
"""Most bytes of a file's secret."""
_WHAT: Final = "tenant secret"


def read_tenant_secret(path: Path, kept: Kept = Kept.ANYWHERE) -> bytes:
    """Return the secret in a file: all its bytes, also a newline at the end.

    Raises:
        SecretFileError: The file cannot be read, is empty or too long, or others may read or change it.
    """
    secret = read_secret(path, SECRET_BYTES_MAX, kept=kept, what=_WHAT)
    if not secret:
        raise SecretFileError(f"{_WHAT} {path} is empty; allowed are 1 to {SECRET_BYTES_MAX:,} bytes")
    return secret


def made_secret(path: Path, first: Path | None = None) -> bytes:
    """Return the secret in a file of this user, which is made if it is not there. Callers at the same time get the same one.

    Args:
        path: The file.
        first: File of this user whose secret a new file takes over, if it is there.

    Raises:
        SecretFileError: The file cannot be made or read.
    """
    with suppress(FileNotFoundError):
        return _read_own(path)
    secret = None
    if first is not None:
        with suppress(FileNotFoundError):
            secret = _read_own(first)
    give_secret(path, secrets.token_bytes(SECRET_BYTES) if secret is None else secret)  # if another was first, its secret counts
    return read_tenant_secret(path, Kept.OWN)


def give_secret(path: Path, secret: bytes) -> bool:
    """Write a secret into a new file of this user, whole or not at all. Return False if there is a file of that name.

    Raises:
        SecretFileError: The file cannot be made.
    """
    try:
        make_folders(path.parent)
        with drafted(path.parent) as draft:
            write_secret(draft / path.name, secret)
            sync(draft / path.name)
            with suppress(FileExistsError):
                os.link(draft / path.name, path)
                return True
    except (OSError, SecretFileError) as error:
        raise SecretFileError(f"{_WHAT} {path} cannot be made: {_why(error)}") from error
    return False


def engines_secret_of(socket: Path) -> bytes:
    """Return the secret that the agent of a socket leaves for engines, else one on which they agree before there is an agent.

    The first agent takes that one over for a constellation that has none yet.

    Raises:
        SecretFileError: There is none, and none can be made.
    """
    try:
        return _read_own(engines_secret(socket))
    except FileNotFoundError:
        return made_secret(first_secret(socket))


def share_secret(path: Path, secret: bytes) -> None:
    """Write a secret into a file of this user, for programs that look there. Readers see the old secret or the new one.

    Raises:
        SecretFileError: The file cannot be written.
    """
    with suppress(FileNotFoundError, SecretFileError):
        if _read_own(path) == secret:
            return
    try:
        make_folders(path.parent)
        replace_secret(path, secret)
    except (OSError, SecretFileError) as error:
        raise SecretFileError(f"{_WHAT} {path} cannot be written: {_why(error)}") from error


def _read_own(path: Path) -> bytes:
    """Read a secret of this user; raise FileNotFoundError if the file is not there."""
    try:
        return read_tenant_secret(path, Kept.OWN)
    except SecretFileError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise error.__cause__ from None
        raise


def _why(error: Exception) -> str:
    cause = error if isinstance(error, OSError) else error.__cause__
    return (cause.strerror or str(cause)) if isinstance(cause, OSError) else str(error)
