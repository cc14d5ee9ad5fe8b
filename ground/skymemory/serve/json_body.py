"""JSON of clients, measured before it is parsed.

A parser keeps Python's lock from its first byte to its last, so that all threads wait for it. Small lists cost it most: 7 MB of
`[]` take it a second. So the values of a body are counted first, in pieces that let other threads in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import from_json

from skymemory.serve.errors import ApiError

_PIECE_BYTES: Final = 1 << 16
_DIGITS_MAX: Final = 256
_LONG_NUMBER: Final = re.compile(rb"[0-9]{%d}" % (_DIGITS_MAX + 1))
"""A number whose parsing takes the time of many, as it grows with the square of the digits."""


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """Limits of a body. They bound the time of parsing small values, which cost most.

    What they allow is parsed in 60 ms at most.
    """

    elements_max: int = 1 << 18
    """Most elements of all lists and objects together: token ids, first of all."""
    containers_max: int = 1 << 16
    """Most lists, objects and names of members together."""

    @classmethod
    def of_context(cls, context_tokens: int) -> JsonLimits:
        """Return limits that let the token ids of a whole context in, up to 500,000."""
        return cls(elements_max=min(max(cls().elements_max, 2 * context_tokens), 1 << 19))


_LIMITS: Final = JsonLimits()


def parse_json(body: bytes, limits: JsonLimits = _LIMITS) -> Any:
    """Parse JSON.

    Raises:
        ApiError: It is not JSON, or has too many values.
    """
    _measure(body, limits)
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise ApiError(f"the body is not JSON: {error}", code="invalid_json") from error


def _measure(body: bytes, limits: JsonLimits) -> None:
    """Raise ApiError if a body has too many values. Of what is no JSON, only what the parser sees before that is counted."""
    elements = containers = quotes = 0
    is_text = False
    for piece in _pieces(body):
        quoted = piece.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = b"".join(quoted[is_text::2])
        is_text ^= len(quoted) % 2 == 0
        quotes += len(quoted) - 1
        if _LONG_NUMBER.search(outside):
            raise ApiError(f"the body has a number of more than {_DIGITS_MAX} digits; so many are allowed", code="invalid_json")
        elements += outside.count(b",")
        containers += outside.count(b"[") + outside.count(b"{") + outside.count(b":")
        for count, most, what in (
            (elements, limits.elements_max, "elements of lists and objects"),
            (containers, limits.containers_max, "lists, objects and names"),
        ):
            if count > most:
                raise ApiError(f"the body has more than {most:,} {what}; so many are allowed", code="too_many_values")
        if quotes > 2 * (elements + containers + 2):  # a comma, a colon or a bracket stands before each text but the first
            return


def _pieces(body: bytes) -> Iterator[bytes]:
    """Yield a body in pieces, none of which ends within an escape."""
    start = 0
    while start < len(body):
        end = start + _PIECE_BYTES
        piece = body[start:end]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            end += 1
            piece = body[start:end]
        yield piece
        start = end
