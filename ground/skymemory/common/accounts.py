"""Files of accounts: who may use a server, each with the digest of a secret word (`secret_words`), in TOML."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, Field, ValidationError

from skymemory.common.checked_toml import CheckedModel, mistakes, parse_toml, tell
from skymemory.common.secret_files import FILE_MODE, SecretFileError, read_secret
from skymemory.common.whole_file import write_whole

NAMES: Final = "names of 1 to 64 letters, digits, '.', '_', '-'"
DIGESTS: Final = "digests of 64 hexadecimal digits"

_BYTES_MAX: Final = 1 << 20
"""Most bytes of such a file: thousands of entries."""

F = TypeVar("F", bound=BaseModel)
C = TypeVar("C", bound="Account")


class Account(CheckedModel):
    """An entry of such a file."""

    name: str = Field(pattern=r"^[A-Za-z0-9._-]{1,64}$", description=NAMES)
    digest: str = Field(pattern=r"^[0-9a-f]{64}$", description=DIGESTS)
    """SHA-256 of the secret word, in hexadecimal digits."""


def load(path: Path, kind: type[F]) -> F:
    """Return what a file of accounts says.

    Raises:
        SecretFileError: It is wrong, or others may read it; with the file and, where it has one, the line of each mistake.
    """
    text, found = parse_toml(path, read_secret(path, _BYTES_MAX), SecretFileError)
    try:
        return kind.model_validate(found)
    except ValidationError as error:
        raise SecretFileError(tell(path, text, mistakes(error, kind))) from error


def check_names(path: Path, entries: Sequence[Account]) -> None:
    """Check that no name is there twice.

    Raises:
        SecretFileError: One is.
    """
    names = [entry.name for entry in entries]
    for name in names:
        if names.count(name) > 1:
            raise SecretFileError(f"{path}: {name} is there {names.count(name)} times; allowed is once")


def without(path: Path, entries: Sequence[C], name: str) -> list[C]:
    """Return the entries without the one of this name.

    Raises:
        SecretFileError: There is no such entry.
    """
    if all(entry.name != name for entry in entries):
        raise SecretFileError(f"{path}: there is no {name}; there are {', '.join(entry.name for entry in entries) or 'none'}")
    return [entry for entry in entries if entry.name != name]


def save(path: Path, table: str, entries: Sequence[Account], head: str) -> None:
    """Write a file of accounts that only this user may read.

    Args:
        table: Name of the entries' tables.
        head: Comment for the first line.

    Raises:
        OSError: It cannot be written.
    """
    lines = [f"# {head}"]
    for entry in entries:
        lines += ["", f"[[{table}]]"]
        values = entry.model_dump(exclude_defaults=True)
        lines += [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE))
    write_whole(path, "\n".join([*lines, ""]).encode())
