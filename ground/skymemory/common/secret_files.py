"""Files with secrets: only their owner may read them, they appear whole or not at all, and never take another's place.

Needs only the standard library.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import Final

FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700
_OTHERS: Final = 0o077
DRAFT: Final = ".draft-"
"""Beginning of the names of drafts: what a killed command leaves."""


class SecretFileError(RuntimeError):
    """A file with secrets is missing, open to others, damaged, or in the way. The message names it and says what is allowed."""


class Kept(Enum):
    """Places of a file with secrets that is to be read, by who may have put it there."""

    ANYWHERE = 0
    """A person or an orchestrator named the file: any owner and mode."""
    PRIVATE = 1
    """Nobody but its owner may read or change the file, and that is this user or root."""
    OWN = 2
    """This user's alone, made by a program of this user, and no link. Root takes what is its folder's owner's, too."""


def read_secret(path: Path, most_bytes: int, *, kept: Kept = Kept.PRIVATE, what: str = "") -> bytes:
    """Return the content of a file with secrets.

    Args:
        path: The file. Its bytes are taken as they are.
        most_bytes: Most bytes that it may have.
        kept: Kind of the place, which says who may read it.
        what: Word for the content, for messages; the path follows it.

    Raises:
        SecretFileError: The file cannot be read, is too large, or others may read or change it.
    """
    name = f"{what} {path}" if what else str(path)
    no_link = os.O_NOFOLLOW if kept is Kept.OWN else 0
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | no_link)  # a pipe holds nobody up
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise SecretFileError(f"{name} is no file")
            if kept is not Kept.ANYWHERE:
                _check_status(name, path, status, kept)
            with open(descriptor, "rb", closefd=False) as file:
                content = file.read(most_bytes + 1)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise SecretFileError(f"{name} cannot be read: {error.strerror or error}") from error
    if len(content) > most_bytes:
        raise SecretFileError(f"{name} is too long; allowed are up to {most_bytes:,} bytes")
    return content


def _check_status(name: str, path: Path, status: os.stat_result, kept: Kept) -> None:
    own = os.geteuid()
    if status.st_mode & _OTHERS:
        told = f"{name} has mode {stat.S_IMODE(status.st_mode):04o}, so that others may read or change it"
        raise SecretFileError(f"{told}; allowed are modes such as 0600: chmod 600 {path}")
    others = (own, 0) if kept is Kept.PRIVATE else (own, path.parent.stat().st_uid) if own == 0 else (own,)
    if status.st_uid not in others:
        allowed = f"is this user, {own}" if kept is Kept.OWN else f"are this user, {own}, and root"
        raise SecretFileError(f"{name} belongs to user {status.st_uid}; allowed {allowed}")


def write_secret(path: Path, content: bytes, mode: int = FILE_MODE) -> None:
    """Write a file that does not exist yet into a folder that nobody looks at yet, whatever the umask is."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(content)


def make_folder(path: Path) -> None:
    """Make a folder for secrets, whatever the umask is."""
    path.mkdir(mode=FOLDER_MODE)
    path.chmod(FOLDER_MODE)


def replace_secret(path: Path, content: bytes) -> None:
    """Write a file in the place of an older one, whole, and on the disk before this returns."""
    with drafted(path.parent) as draft:
        write_secret(draft / path.name, content)
        sync(draft / path.name)
        (draft / path.name).replace(path)
    sync(path.parent)


@contextmanager
def drafted(parent: Path) -> Iterator[Path]:
    """Give an empty folder, only for its owner, on the disk of `parent`; it goes afterwards with what is left in it."""
    try:
        draft = Path(tempfile.mkdtemp(prefix=DRAFT, dir=parent))
    except OSError as error:
        raise SecretFileError(f"{parent}: {error.strerror or error}") from error
    try:
        draft.chmod(FOLDER_MODE)
        yield draft
    except OSError as error:
        raise SecretFileError(f"{error.filename or parent}: {error.strerror or error}; nothing was written") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def put_folder(draft: Path, path: Path) -> None:
    """Give a folder that was drafted its name.

    Raises:
        SecretFileError: The name is taken.
    """
    if os.path.lexists(path):
        raise SecretFileError(f"{path} exists; allowed is a folder that does not")
    try:
        draft.rename(path)
    except OSError as error:  # somebody else was faster
        raise SecretFileError(f"{path}: {error.strerror or error}") from error


def clear_drafts(folder: Path) -> None:
    """Remove what killed commands have left; nobody else may work in the folder meanwhile."""
    for draft in folder.glob(f"{DRAFT}*"):
        shutil.rmtree(draft, ignore_errors=True)


def sync(path: Path) -> None:
    """Wait until a file or a folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems cannot
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
