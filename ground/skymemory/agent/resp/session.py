"""What is known of a client."""

import re
import time
from dataclasses import dataclass, field
from typing import Final

from skymemory.agent.resp.replies import header

_LMCACHE_NAME: Final = re.compile(rb"(@[0-9a-f]{8}@[0-9a-f]+)@[0-9a-f]+(?:@.*)?\Z", re.DOTALL)
"""how LMCache's adapter ends its names: rank, group, digest, and salt if there is one"""


_PARTS_MAX: Final = 256


class Lengths:
    """Of values of clients that count bytes: the last one of each model, rank and group, as its others are as long. Bounded."""

    def __init__(self) -> None:
        self._lengths: dict[bytes, int] = {}

    def get(self, part: bytes) -> int | None:
        """None: not known."""
        return self._lengths.get(part)

    def put(self, part: bytes, length: int) -> None:
        """A value of this length was put or seen."""
        self._lengths.pop(part, None)
        self._lengths[part] = length
        if len(self._lengths) > _PARTS_MAX:
            del self._lengths[next(iter(self._lengths))]


@dataclass(slots=True)
class Session:
    """Of one connection."""

    number: int
    address: str
    is_trusted: bool
    """has said the password, or needs none"""
    database: int = 0
    protocol: int = 2
    name: str = ""
    library: str = ""
    library_version: str = ""
    last_command: str = ""
    commands: int = 0
    is_plain: bool = True
    """has said nothing of itself"""
    lengths: Lengths = field(default_factory=Lengths)
    """of its own values, if it counts bytes"""
    started_s: float = field(default_factory=time.monotonic)
    active_s: float = field(default_factory=time.monotonic)

    def counts_bytes(self, name: bytes) -> bool:
        """Is this a client that does (`counted_part`)?"""
        return self.counted_part(name) is not None

    def counted_part(self, name: bytes) -> bytes | None:
        """Is this the native client of LMCache 0.5, which reads as many bytes as the answer it hopes for has, and no more?

        After any other answer it takes the rest of that for the answer to its next question: blocks under wrong names. So
        errors to it have the length that it reads. It does not say who it is.

        Returns:
            What names of values of one length have in common: model, rank and group. None: it is another client.
        """
        if not self.is_plain or self.protocol != 2 or b"@" not in name or (found := _LMCACHE_NAME.search(name)) is None:
            return None
        return name[: found.end(1)]


def error_of_length(count: int) -> bytes:
    """An error of so many bytes with its line end, at least 3."""
    return b"-" + b"ERR the value is gone"[: count - 3].ljust(count - 3, b".") + b"\r\n"


def miss_for_counting_client(length: int) -> bytes:
    """What is read instead of the header of a value of this length."""
    return error_of_length(len(header(b"$", length)))
