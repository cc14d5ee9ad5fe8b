"""Files with secrets: only their owner may read them, they appear whole or not at all, and never take another's place."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

FILE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700
_OTHERS: Final = 0o077
DRAFT: Final = ".draft-"
"""Beginning of the names of drafts: what a killed command leaves."""


class SecretFileError(RuntimeError):
    """A file with secrets is missing, open to others, damaged, or in the way. The message names it and says what is allowed."""


def read_secret(path: Path, most_bytes: int) -> bytes:
    """Return the content of a file that only its owner may read.

    Raises:
        SecretFileError: The file cannot be read, is larger than `most_bytes`, or others may read or change it.
    """
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not stat.S_ISREG(mode):
                raise SecretFileError(f"{path} is no file")
            if mode & _OTHERS:
                told = f"{path} has mode {stat.S_IMODE(mode):04o}, so that others may read or change it"
                raise SecretFileError(f"{told}; allowed are modes such as 0600: chmod 600 {path}")
            content = file.read(most_bytes + 1)
    except OSError as error:
        raise SecretFileError(f"{path}: {error.strerror or error}") from error
    if len(content) > most_bytes:
        raise SecretFileError(f"{path} is damaged: it has more than {most_bytes} bytes")
    return content


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
