"""Keys with which a host makes associations with satellites, as the native library takes them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from skymemory.security.keyring import Keyring, load_keyring
from skymemory.sky.constellation import KEYRING_VARIABLE, Constellation
from skymemory.sky.file_sections import SUITES
from skymemory.wire import icd

_SUITES: Final = {name: getattr(icd, f"SUITE_{name.upper()}") for name in SUITES}


@dataclass(frozen=True, slots=True)
class AssociationKeys:
    """Keyring of a host in bytes, and the security suite that it asks satellites for."""

    credential: bytes = field(repr=False)
    """Packed credential, 48 bytes (`icd/skymemory.toml`, payload `associate`)."""
    pair_keys: bytes = field(repr=False)
    """Keys shared with all satellites, plane by plane, 32 bytes each."""
    suite: int = 0
    """Number of the suite (`icd.SUITE_*`); 0: GMAC of headers where the library has it, else BLAKE2b of headers."""
    told: str = ""
    """Words for people: whose keys they are, of which generation, and the file from which they come."""


def keys_of(constellation: Constellation) -> AssociationKeys | None:
    """Return the keys of the keyring that a constellation names, None without one.

    Raises:
        SecretFileError: The keyring cannot be read, others may read it, or it is damaged.
    """
    security = constellation.security
    if not security.keyring:
        return None
    keyring = load_keyring(Path(security.keyring))
    return keys_from(keyring, constellation, f"keyring {security.keyring}, {keyring.owner}")


def keys_from(keyring: Keyring, constellation: Constellation, told: str = "") -> AssociationKeys:
    """Return the keys of a keyring, for the suite that a constellation asks for.

    Args:
        told: Words for people; by default the keyring's owner and generation.
    """
    security = constellation.security
    suite = _SUITES.get(security.suite, 0)
    told = told or f"keyring of {keyring.owner}"
    return AssociationKeys(keyring.credential, keyring.packed_pair_keys(), suite, told)


def refusal_words(count: int, keys: AssociationKeys | None) -> str:
    """Return a sentence for people whose host is refused by satellites: what is wrong, where, and what to do; '' if none refuses.

    Args:
        count: Number of satellites that answered `unauthenticated`.
        keys: Keys that the host showed them; None: it has none.
    """
    if not count:
        return ""
    named = f"security.keyring in the constellation file, or {KEYRING_VARIABLE}"
    if keys is None:
        told = "1 satellite answers, but wants" if count == 1 else f"{count:,} satellites answer, but want"
        return f"{told} keys, and this host has no keyring: name it as {named}"
    told = "1 satellite answers, but refuses" if count == 1 else f"{count:,} satellites answer, but refuse"
    return (
        f"{told} this host's keys: {keys.told}, is of another mission, or of a generation that is not served. Name another as "
        f"{named}, or give satellites this generation: `skymem keys load`, `activate`"
    )


def suite_names(mask: int) -> tuple[str, ...]:
    """Return the names of the suites in a mask of the native library."""
    return tuple(name for name, number in _SUITES.items() if mask >> number & 1)
