"""Answers for the native client of LMCache 0.5, which reads as many bytes as the answer that it hopes for has, and no more.

After any other answer that client takes the rest of it for the answer to its next question: blocks under wrong names. So errors
and misses on the port of LMCache have the length that is read.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from skymemory.agent.gateway.replies import OK, ONE, header

ADAPTERS_WARNING: Final = (
    "LMCache names chunks by model and tokens, not by LoRA adapter: two adapters, or one and none, would get each other's keys "
    "and values, and give wrong answers; with --enable-lora send a cache_salt of its own with the requests of each adapter"
)
"""Warning for whoever starts a cache for LMCache, whose multiprocess path does not tell which adapter computed a chunk."""
_NAME: Final = re.compile(rb"(@[0-9a-f]{8}@[0-9a-f]+)@[0-9a-f]+(?:@.*)?\Z", re.DOTALL)
"""End of the names of LMCache's adapter: rank, group, digest, and salt if there is one."""
_READS_BYTES: Final = {"set": len(OK), "del": len(ONE), "exists": len(ONE)}
_PARTS_MAX: Final = 256


class Lengths:
    """The last length of a value of each model, rank and group, as its others are as long. Bounded."""

    def __init__(self) -> None:
        self._lengths: dict[bytes, int] = {}

    def get(self, part: bytes) -> int | None:
        """Return the last length; None: not known."""
        return self._lengths.get(part)

    def put(self, part: bytes, length: int) -> None:
        """Remember that a value of this length was put or seen."""
        self._lengths.pop(part, None)
        self._lengths[part] = length
        if len(self._lengths) > _PARTS_MAX:
            del self._lengths[next(iter(self._lengths))]


class Padding:
    """Number of bytes that one client reads as each answer."""

    def __init__(self, others: Lengths) -> None:
        """`others`: lengths of the values of all clients, for one that has not put or seen any yet."""
        self._own = Lengths()
        self._others = others

    def seen(self, name: bytes, length: int) -> None:
        """Remember that the client has put or got a value of this length."""
        part = _part(name)
        self._own.put(part, length)
        self._others.put(part, length)

    def reads_bytes(self, command: str, args: Sequence[Any]) -> int:
        """Return how many bytes the client reads as the answer to a command; 0: as many as come."""
        if command == "get" and len(args) > 1 and isinstance(args[1], bytes):
            return self.header_bytes(args[1], None)
        return _READS_BYTES.get(command, 0)

    def header_bytes(self, name: bytes, lost_length: int | None) -> int:
        """Return how many bytes the client reads instead of a missing value; 0: its length is not known.

        Args:
            name: Name of the value.
            lost_length: Length of the value, if it is known.
        """
        part = _part(name)
        for length in (lost_length, self._own.get(part), self._others.get(part)):
            if length is not None:
                return len(header(b"$", length))
        return 0


def error_of_length(count: int) -> bytes:
    """Return an error of so many bytes with its line end, at least 3."""
    return b"-" + b"ERR the value is gone"[: count - 3].ljust(count - 3, b".") + b"\r\n"


def _part(name: bytes) -> bytes:
    """Return what names of values of one length have in common: model, rank and group."""
    found = _NAME.search(name) if b"@" in name else None
    return b"" if found is None else name[: found.end(1)]
