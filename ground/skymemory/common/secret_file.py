"""Files of tenant secrets: made once with mode 0600, and read with care. Needs only the standard library."""

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from skymemory.common.state_folder import engines_secret, first_secret

SECRET_BYTES: Final = 32
"""Bytes of a secret that is made here."""
SECRET_BYTES_MAX: Final = 4096
"""Most bytes of a file's secret."""


class SecretError(RuntimeError):
    """Error: there is no tenant secret. The message names the file, says why, and what is allowed."""


def read_secret(path: Path, *, is_own: bool = False) -> bytes:
    """Return the secret in a file: all its bytes.

    Args:
        path: The file. Its bytes are taken as they are, so a newline at the end counts, too.
        is_own: Take only a file that belongs to this user and that nobody else can read or write. Files that a person or an
            orchestrator names may have other owners and modes.

    Raises:
        SecretError: The file cannot be read, is empty or too long, or others can read it.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (os.O_NOFOLLOW if is_own else 0))
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise SecretError(f"tenant secret {path} is no file")
            if is_own and (status.st_uid != os.geteuid() or status.st_mode & 0o077):
                mode = stat.S_IMODE(status.st_mode)
                raise SecretError(
                    f"tenant secret {path} has mode {mode:04o} and is of user {status.st_uid}; allowed is mode 0600, of user "
                    f"{os.geteuid()}"
                )
            secret = os.read(descriptor, SECRET_BYTES_MAX + 1)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise SecretError(f"tenant secret {path} cannot be read: {error.strerror or error}") from error
    if not 1 <= len(secret) <= SECRET_BYTES_MAX:
        size = "is empty" if not secret else "is too long"
        raise SecretError(f"tenant secret {path} {size}; allowed are 1 to {SECRET_BYTES_MAX:,} bytes")
    return secret


def made_secret(path: Path, first: Path | None = None) -> bytes:
    """Return the secret in a file of this user, which is made if it is not there. Callers at the same time get the same one.

    Args:
        path: The file.
        first: File of this user whose secret a new file takes over, if it is there.

    Raises:
        SecretError: The file cannot be made or read.
    """
    with suppress(FileNotFoundError):
        return _read_own(path)
    secret = None
    if first is not None:
        with suppress(FileNotFoundError):
            secret = _read_own(first)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = _draft(path, secrets.token_bytes(SECRET_BYTES) if secret is None else secret)
        try:
            with suppress(FileExistsError):  # another process was first, and its secret counts
                os.link(draft, path)
        finally:
            draft.unlink()
    except OSError as error:
        raise SecretError(f"tenant secret {path} cannot be made: {error.strerror or error}") from error
    return read_secret(path, is_own=True)


def engines_secret_of(socket: Path) -> bytes:
    """Return the secret that the agent of a socket leaves for engines, else one on which they agree before there is an agent.

    The first agent takes that one over for a constellation that has none yet.

    Raises:
        SecretError: There is none, and none can be made.
    """
    try:
        return _read_own(engines_secret(socket))
    except FileNotFoundError:
        return made_secret(first_secret(socket))


def share_secret(path: Path, secret: bytes) -> None:
    """Write a secret into a file of this user, for programs that look there. Readers see the old secret or the new one.

    Raises:
        SecretError: The file cannot be written.
    """
    with suppress(FileNotFoundError, SecretError):
        if _read_own(path) == secret:
            return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _draft(path, secret).replace(path)
    except OSError as error:
        raise SecretError(f"tenant secret {path} cannot be written: {error.strerror or error}") from error


def _read_own(path: Path) -> bytes:
    """Read a secret of this user; raise FileNotFoundError if the file is not there."""
    try:
        return read_secret(path, is_own=True)
    except SecretError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise error.__cause__ from None
        raise


def _draft(path: Path, secret: bytes) -> Path:
    """Write a secret into a new file beside another."""
    draft = path.with_name(f".{path.name[:200]}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o600)
            file.write(secret)
            file.flush()
            os.fsync(descriptor)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
    return draft
