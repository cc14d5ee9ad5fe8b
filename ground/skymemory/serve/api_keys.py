"""API keys of clients, each with a root of its own for its prompts' cache."""

from __future__ import annotations

import logging
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from blake3 import blake3
from pydantic import Field

from skymemory.common import accounts
from skymemory.common.accounts import Account
from skymemory.common.checked_toml import CheckedModel
from skymemory.common.file_state import FileState, file_state
from skymemory.common.secret_files import SecretFileError
from skymemory.common.secret_words import digest_of, new_word, owner_of

_log = logging.getLogger(__name__)

_PREFIX: Final = "sk-sky-"
_HEAD: Final = "API keys of `skymem serve`, made by `skymem serve-keys`. Whoever has a root can find that key's prompts."
_SCOPE_CONTEXT: Final = "skymemory 2 scope of prompts"
_ROOTS: Final = "secrets of 64 hexadecimal digits"


class KeyEntry(Account):
    """One key of the file."""

    root: str = Field(pattern=r"^[0-9a-f]{64}$", description=_ROOTS)
    """Secret that goes into the names of this key's blocks."""
    operator: bool = Field(default=False, description="true or false")
    """True: the key may see the numbers of all keys."""


class _KeyFile(CheckedModel):
    key: list[KeyEntry] = Field(default=[], description="tables")


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key that was checked."""

    name: str
    root: bytes = b""
    """Secret in the names of its blocks; empty: it shares the blocks of everybody who has none."""
    is_operator: bool = False
    """True: it may see the numbers of all keys."""


class ApiKeys:
    """Keys that clients may send. A file of keys is read again when it changes."""

    def __init__(self, single: str | None = None, path: Path | None = None) -> None:
        """Take one key, or a file of several.

        Raises:
            SecretFileError: The file is wrong, or others may read it.
        """
        self._path = path
        self._read_of: FileState | None = None
        self._keys: list[tuple[str, ApiKey]] = []
        if single is not None:
            self._keys.append((digest_of(single.encode("utf-8", "surrogateescape")), ApiKey("default", is_operator=True)))
        if path is not None:
            self._keys = _read(path)
            self._read_of = file_state(path)

    def find(self, word: bytes) -> ApiKey | None:
        """Return the key that a client sent; None: there is no such key. The time does not tell which one it is."""
        self._follow()
        return owner_of(word, self._keys)

    def _follow(self) -> None:
        if self._path is None or (state := file_state(self._path)) == self._read_of:
            return
        self._read_of = state
        try:
            self._keys = _read(self._path)
            _log.info("%d API keys from now on", len(self._keys))
        except SecretFileError as error:
            _log.error("the API keys stay as they were: %s", error)  # no fault of ours


def scope_of(root: bytes, salt: str) -> bytes:
    """Return what keeps blocks apart: those of one key and salt from all others; empty if there is neither."""
    if not root and not salt:
        return b""
    parts = (root, salt.encode())
    return blake3(b"".join(len(part).to_bytes(8) + part for part in parts), derive_key_context=_SCOPE_CONTEXT).digest()


def list_keys(path: Path) -> list[KeyEntry]:
    """Return the entries of a file.

    Raises:
        SecretFileError: It is wrong, or others may read it.
    """
    found = accounts.load(path, _KeyFile).key
    accounts.check_names(path, found)
    return found


def add_key(path: Path, name: str, *, is_operator: bool = False) -> str:
    """Add a key to a file, which is made if there is none, and return the key: the file holds only its digest.

    Args:
        path: The file.
        name: Name of the key.
        is_operator: True: the key may see the numbers of all keys.

    Raises:
        SecretFileError: The name is there already, or the file is wrong.
        OSError: The file cannot be written.
    """
    entries = list_keys(path) if path.exists() else []
    if any(entry.name == name for entry in entries):
        raise SecretFileError(f"{path}: {name} is there already; remove it first")
    word = new_word(_PREFIX)
    entries.append(KeyEntry(name=name, digest=digest_of(word.encode()), root=secrets.token_hex(32), operator=is_operator))
    accounts.save(path, "key", entries, _HEAD)
    return word


def remove_key(path: Path, name: str) -> None:
    """Take a key out of a file. Its blocks stay in the sky until others need their room, and nobody finds them.

    Raises:
        SecretFileError: There is no such key, or the file is wrong.
        OSError: The file cannot be written.
    """
    accounts.save(path, "key", accounts.without(path, list_keys(path), name), _HEAD)


def _read(path: Path) -> list[tuple[str, ApiKey]]:
    return [(entry.digest, ApiKey(entry.name, bytes.fromhex(entry.root), entry.operator)) for entry in list_keys(path)]
