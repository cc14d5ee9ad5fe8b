"""Numbers and terms that clients name, read as Redis reads them."""

import re
from typing import Final

from skymemory.agent.resp.replies import CommandError

_WHOLE: Final = re.compile(rb"(?:0|-?[1-9][0-9]{0,18})\Z")
_MAX: Final = (1 << 63) - 1
SYNTAX: Final = "ERR syntax error"
NO_NUMBER: Final = "ERR value is not an integer or out of range"
_UNITS_MS: Final = {b"ex": 1000, b"px": 1, b"exat": 1000, b"pxat": 1}


def whole_number(raw: bytes) -> int:
    """A signed number of 64 bits.

    Raises:
        CommandError: it is none.
    """
    if _WHOLE.match(raw) is None or not -_MAX - 1 <= int(raw) <= _MAX:
        raise CommandError(NO_NUMBER)
    return int(raw)


def is_terms(word: bytes) -> bool:
    """Does a time follow this option?"""
    return word in _UNITS_MS


def terms(word: bytes, raw: bytes, now_unix_ms: int, command: str) -> int:
    """When a value expires: what follows EX, PX, EXAT or PXAT, in milliseconds since 1970.

    Raises:
        CommandError: no number, not positive, or beyond 64 bits.
    """
    number = whole_number(raw)
    if number <= 0:
        raise CommandError(f"ERR invalid expire time in '{command}' command")
    return expiry(number, _UNITS_MS[word], not word.endswith(b"at"), now_unix_ms, command)


def expiry(number: int, unit_ms: int, is_relative: bool, now_unix_ms: int, command: str) -> int:
    """A time in milliseconds since 1970. It may be past, or before 1970.

    Raises:
        CommandError: beyond 64 bits.
    """
    at = number * unit_ms + (now_unix_ms if is_relative else 0)
    if not -_MAX <= number * unit_ms <= _MAX or not -_MAX <= at <= _MAX:
        raise CommandError(f"ERR invalid expire time in '{command}' command")
    return at
