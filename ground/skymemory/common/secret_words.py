"""Keys and passwords that this program makes for clients.

A word has 256 random bits, so nobody finds it by trying, even with its digest at hand. A slow hash (scrypt) would add nothing to
that, and each check of a guess would take a server's time; so files hold SHA-256 digests.
"""

import hmac
import secrets
from collections.abc import Iterable
from hashlib import sha256
from typing import Final, TypeVar

WORD_BYTES: Final = 32
_NOBODY: Final = secrets.token_hex(32)
"""Digest of no word."""

T = TypeVar("T")


def new_word(prefix: str) -> str:
    """Return a new secret word of letters, digits, `-` and `_`."""
    return prefix + secrets.token_urlsafe(WORD_BYTES)


def digest_of(word: bytes) -> str:
    """Return what files hold of a word."""
    return sha256(word).hexdigest()


def is_word(word: bytes, digest: str | None) -> bool:
    """Return True if a word has this digest; None: no word has. It takes the same time whatever the word is."""
    return hmac.compare_digest(digest_of(word), _NOBODY if digest is None else digest)


def owner_of(word: bytes, owners: Iterable[tuple[str, T]]) -> T | None:
    """Return whose word it is, or None. All digests are compared, so the time tells nothing of the one that fits.

    Args:
        owners: Digests, each with its owner.
    """
    given = digest_of(word)
    found: T | None = None
    for digest, owner in owners:
        if hmac.compare_digest(given, digest):
            found = owner
    return found
