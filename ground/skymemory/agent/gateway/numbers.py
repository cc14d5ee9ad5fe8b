"""Numbers and terms that clients name, read as Redis reads them."""

import re
from typing import Final

from skymemory.agent.gateway.replies import CommandError

_WHOLE: Final = re.compile(rb"(?:0|-?[1-9][0-9]{0,18})\Z")
NUMBER_MAX: Final = (1 << 63) - 1
SYNTAX: Final = "ERR syntax error"
NO_NUMBER: Final = "ERR value is not an integer or out of range"
_UNITS_MS: Final = {b"ex": 1000, b"px": 1, b"exat": 1000, b"pxat": 1}


def whole_number(raw: bytes) -> int:
    """Return a signed number of 64 bits.

    Raises:
        CommandError: It is none.
    """
    if _WHOLE.match(raw) is None or not -NUMBER_MAX - 1 <= int(raw) <= NUMBER_MAX:
        raise CommandError(NO_NUMBER)
    return int(raw)


def is_terms(word: bytes) -> bool:
    """Return whether a time follows this option."""
    return word in _UNITS_MS


def terms(word: bytes, raw: bytes, now_unix_ms: int, command: str) -> int:
    """Return when a value expires: what follows EX, PX, EXAT or PXAT, in milliseconds since 1970.

    Raises:
        CommandError: No number, not positive, or beyond 64 bits.
    """
    number = whole_number(raw)
    if number <= 0:
        raise CommandError(f"ERR invalid expire time in '{command}' command")
    return expiry(word, number, now_unix_ms, command)


def expiry(word: bytes, number: int, now_unix_ms: int, command: str) -> int:
    """Return the time behind EX, PX, EXAT or PXAT in milliseconds since 1970. It may be past, or before 1970.

    Raises:
        CommandError: Beyond 64 bits.
    """
    count_ms = number * _UNITS_MS[word]
    at = count_ms if word.endswith(b"at") else count_ms + now_unix_ms
    if not -NUMBER_MAX <= count_ms <= NUMBER_MAX or not -NUMBER_MAX <= at <= NUMBER_MAX:
        raise CommandError(f"ERR invalid expire time in '{command}' command")
    return at
