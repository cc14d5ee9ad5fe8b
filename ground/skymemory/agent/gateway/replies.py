"""Answers to a Redis client, in RESP2 or RESP3: pieces of bytes and memory that are sent one behind the other."""

from typing import Final

Piece = bytes | memoryview
Pieces = tuple[Piece, ...]

OK: Final = b"+OK\r\n"
QUEUED: Final = b"+QUEUED\r\n"
ZERO: Final = b":0\r\n"
ONE: Final = b":1\r\n"
_ONE_LINE: Final = bytes.maketrans(b"\r\n", b"  ")
_JOINED_BYTES: Final = 4096


class Text(str):
    """Text that is sent as a simple string."""


class CommandError(Exception):
    """An error for the client; the first word of the message is its kind."""


def null(protocol: int) -> bytes:
    """Encode that there is no value."""
    return b"$-1\r\n" if protocol == 2 else b"_\r\n"


def integer(number: int) -> bytes:
    """Encode a whole number."""
    return b":%d\r\n" % number


def error(text: str) -> bytes:
    """Encode an error, on one line."""
    return b"-%b\r\n" % text.encode("utf-8", "replace").translate(_ONE_LINE)


def bulk(data: bytes | memoryview) -> Pieces:
    """Encode a value. A long one is not copied."""
    if len(data) <= _JOINED_BYTES:
        return (b"$%d\r\n%b\r\n" % (len(data), bytes(data)),)
    return (b"$%d\r\n" % len(data), data, b"\r\n")


def header(kind: bytes, count: int) -> bytes:
    """Encode the beginning of an array (`*`), a map (`%`) or a value (`$`)."""
    return b"%b%d\r\n" % (kind, count)


def encode(value: object, protocol: int) -> bytes:
    """Encode nested lists, dicts, text, numbers and bytes; dicts are maps in RESP3 and flat arrays in RESP2."""
    if isinstance(value, dict):
        parts = [part for pair in value.items() for part in pair]
        begin = header(b"*", len(parts)) if protocol == 2 else header(b"%", len(value))
        return begin + b"".join(encode(part, protocol) for part in parts)
    if isinstance(value, list):
        return header(b"*", len(value)) + b"".join(encode(part, protocol) for part in value)
    return _encode_one(value, protocol)


def _encode_one(value: object, protocol: int) -> bytes:
    if value is None:
        return null(protocol)
    if isinstance(value, int):
        return integer(value)
    if isinstance(value, Text):
        return b"+%b\r\n" % value.encode()
    assert isinstance(value, str | bytes)
    return b"".join(bulk(value.encode() if isinstance(value, str) else value))
