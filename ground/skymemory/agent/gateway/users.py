"""Users of the gateway, each with the values of one tenant, out of a file that only the agent's user may read."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import Field

from skymemory.common import accounts
from skymemory.common.accounts import Account
from skymemory.common.checked_toml import CheckedModel, whole_numbers
from skymemory.common.secret_files import Kept, SecretFileError
from skymemory.common.secret_words import digest_of, is_word, new_word
from skymemory.common.tenant_secrets import read_tenant_secret
from skymemory.sky.file_sections import UINT32_MAX

DEFAULT_USER: Final = "default"
USERS_MAX: Final = 1024
_PREFIX: Final = "sky-"
_HEAD: Final = "Redis users of `skymem agent`, made by `skymem resp-users`."
_FILES: Final = "paths of files with the tenant's secret, from the folder of this file"


class UserEntry(Account):
    """A user of the file."""

    tenant: int = whole_numbers(..., 0, UINT32_MAX)
    """Number that goes into the packets of the user's values."""
    tenant_secret_file: str = Field(default="", description=_FILES)
    read_only: bool = Field(default=False, description="true and false")


class _UserFile(CheckedModel):
    user: list[UserEntry] = Field(default=[], max_length=USERS_MAX, description=f"up to {USERS_MAX:,} tables")


@dataclass(frozen=True, slots=True)
class Tenancy:
    """A tenant of values: users with the same one see the same values."""

    number: int
    secret: bytes = field(default=b"", repr=False)
    """Secret of its own; empty: the agent's, and the number tells its values from those of others."""


@dataclass(frozen=True, slots=True)
class User:
    """A user, as commands see it."""

    name: str
    tenancy: Tenancy | None = None
    """Tenant of its values; None: the agent's own, which `skymem put` and `skymem get` use."""
    read_only: bool = False
    digest: str | None = field(default=None, repr=False)
    """Digest of the password; None: it has none."""


class Users:
    """The users of one gateway."""

    def __init__(self, password: str | None = None, path: Path | None = None) -> None:
        """Read the file.

        Args:
            password: Password of the user `default`. None: that user needs none, or is off if there is a file.
            path: File of all other users; None: there are none.

        Raises:
            SecretFileError: The file, or one with a secret, is wrong, or others may read it.
        """
        self.has_password = password is not None
        """True: the user `default` has a password."""
        digest = None if password is None else digest_of(password.encode("utf-8", "surrogateescape"))
        self._users: dict[bytes, User] = {}
        if password is not None:
            self._users[DEFAULT_USER.encode()] = User(DEFAULT_USER, digest=digest)
        if path is not None:
            for user in _read(path):
                self._users[user.name.encode()] = user
        self.open_user = User(DEFAULT_USER) if password is None and path is None else None
        """User of clients that have not said who they are; None: they have to."""

    @property
    def tenancies(self) -> list[Tenancy]:
        """All tenants, without the agent's own."""
        return list(dict.fromkeys(user.tenancy for user in self._users.values() if user.tenancy is not None))

    def find(self, name: bytes, password: bytes) -> User | None:
        """Return the user with this password, or None. An unknown name takes as long as a wrong password."""
        user = self._users.get(name)
        return user if is_word(password, None if user is None else user.digest) else None


def list_users(path: Path) -> list[UserEntry]:
    """Return the entries of a file.

    Raises:
        SecretFileError: It is wrong, or others may read it.
    """
    found = accounts.load(path, _UserFile).user
    accounts.check_names(path, found)
    if any(entry.name == DEFAULT_USER for entry in found):
        raise SecretFileError(f"{path}: the user {DEFAULT_USER} has its password from --resp-password, and cannot be here")
    return found


def add_user(path: Path, name: str, tenant: int, *, tenant_secret_file: str = "", read_only: bool = False) -> str:
    """Add a user to a file, which is made if there is none, and return the password: the file holds only its digest.

    Raises:
        SecretFileError: The name is there already or is `default`, or the file is wrong.
        OSError: The file cannot be written.
    """
    entries = list_users(path) if path.exists() else []
    if name == DEFAULT_USER or any(entry.name == name for entry in entries):
        why = "has its password from --resp-password" if name == DEFAULT_USER else "is there already; remove it first"
        raise SecretFileError(f"{path}: {name} {why}")
    word = new_word(_PREFIX)
    digest = digest_of(word.encode())
    entries.append(UserEntry(name=name, digest=digest, tenant=tenant, tenant_secret_file=tenant_secret_file, read_only=read_only))
    accounts.save(path, "user", entries, _HEAD)
    return word


def remove_user(path: Path, name: str) -> None:
    """Take a user out of a file. Values stay where they are.

    Raises:
        SecretFileError: There is no such user, or the file is wrong.
        OSError: The file cannot be written.
    """
    accounts.save(path, "user", accounts.without(path, list_users(path), name), _HEAD)


def _read(path: Path) -> list[User]:
    users = []
    for entry in list_users(path):
        # All bytes, as with `--tenant-secret-file`, so that one file means the same keys everywhere
        named = path.parent / entry.tenant_secret_file
        secret = read_tenant_secret(named, Kept.PRIVATE) if entry.tenant_secret_file else b""
        users.append(User(entry.name, Tenancy(entry.tenant, secret), entry.read_only, entry.digest))
    return users
