"""Credential of a sender: its role and the tenants that it may name. A key is derived from it, so that nobody can change it."""

import re
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from skymemory.common.input_error import InputError

GENERATION_MAX: Final = 255
"""Largest generation of keys: it has one byte."""
NAME_BYTES: Final = 12
TENANTS_MAX: Final = 8
"""Most tenants that a credential lists."""
ANY_TENANT: Final = 255
"""Count of tenants that stands for all."""
CREDENTIAL_BYTES: Final = 48
_UINT32_MAX: Final = 2**32 - 1
_FORMAT: Final = struct.Struct(f">BBBx{NAME_BYTES}s{TENANTS_MAX}I")
_NAME: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{NAME_BYTES}}}", re.ASCII)


class Role(IntEnum):
    """Rights of a sender."""

    HOST = 0
    """Data of its tenants."""
    MISSION = 1
    """All that a host may do for any tenant, and commands."""
    SATELLITE = 2
    """All that satellites do among themselves."""


class CredentialError(InputError, ValueError):
    """A credential that cannot exist. The message says what is allowed."""


@dataclass(frozen=True)
class Credential:
    """Role, name and tenants that a host proves to a satellite.

    Raises:
        CredentialError: The name, a tenant or the generation is not allowed.
    """

    role: Role
    name: str
    tenants: tuple[int, ...] | None
    """Tenants that it may name, in rising order. None: any."""
    generation: int

    def __post_init__(self) -> None:
        check_name(self.name)
        if not 0 <= self.generation <= GENERATION_MAX:
            raise CredentialError(f"generation is {self.generation}; allowed are 0 to {GENERATION_MAX}")
        if self.tenants is not None:
            check_tenants(self.tenants)

    def pack(self) -> bytes:
        """Return its 48 bytes, as an association sends them."""
        listed = self.tenants or ()
        count = ANY_TENANT if self.tenants is None else len(listed)
        numbers = (*listed, *[0] * (TENANTS_MAX - len(listed)))
        return _FORMAT.pack(self.role, self.generation, count, self.name.encode("ascii"), *numbers)


def check_name(name: str) -> None:
    """Check the name of a host.

    Raises:
        CredentialError: It is empty, too long, or has other characters.
    """
    if not _NAME.fullmatch(name):
        shown = name if len(name) <= 40 else name[:37] + "..."
        raise CredentialError(f"name is {shown!a}; allowed are 1 to {NAME_BYTES} ASCII letters, digits, - and _")


def check_tenants(tenants: tuple[int, ...]) -> None:
    """Check the tenants of a host.

    Raises:
        CredentialError: There are none or too many, one is out of range, or they do not rise.
    """
    if not 1 <= len(tenants) <= TENANTS_MAX:
        raise CredentialError(f"{len(tenants)} tenants; allowed are 1 to {TENANTS_MAX}, or any")
    for tenant in tenants:
        if not 0 <= tenant <= _UINT32_MAX:
            raise CredentialError(f"tenant is {tenant}; allowed are 0 to {_UINT32_MAX}")
    if list(tenants) != sorted(set(tenants)):
        raise CredentialError(f"tenants are {', '.join(map(str, tenants))}; allowed is each once, in rising order")


def told_tenants(tenants: tuple[int, ...] | None) -> str:
    """Return tenants in words."""
    return "any" if tenants is None else ", ".join(map(str, tenants))
