"""Commands of a Redis client, out of the bytes of its connection.

Small commands that came whole are parsed by hiredis. What is not whole yet, or large, is taken apart here, header by header: so
that nothing is buffered that a header claims and limits forbid, and that a large value lies, as it arrives, where its block will
be sent from. Both parse the same (a test holds them against each other).
"""

import re
from collections.abc import Callable
from typing import Final

import hiredis
import numpy as np

from skymemory.store.keyvalue import HEAD_BYTES

BULK_BYTES_MAX: Final = 512 << 20
"""of one argument, as with Redis"""
ARGUMENTS_MAX: Final = 1 << 15
"""of one command: all other clients wait while it is begun, some microseconds for each"""
INLINE_BYTES_MAX: Final = 1 << 16
LARGE_BYTES: Final = 100_000
"""arguments from this length on have memory of their own. Of six digits, so that their headers are easily seen"""
READ_BYTES: Final = 1 << 18
FREE_BYTES: Final = 1 << 12
"""of the arguments of a command that is not whole; more need memory"""
STRANGER_ARGUMENTS_MAX: Final = 10
"""of one who has not said the password yet"""
STRANGER_BULK_BYTES_MAX: Final = 16_384
_HEADER_BYTES_MAX: Final = 32
_WHOLE: Final = b"+whole\r\n"
_LARGE_HEADER: Final = re.compile(rb"[*$%~>|][0-9+-]{6}")
"""anywhere: hiredis passes over the two bytes behind an argument, whatever they are. In a value it costs only time"""
_QUOTED: Final = re.compile(rb"""\s*(?:"((?:[^"\\]|\\.)*)"(?=\s|$)|'((?:[^'\\]|\\.)*)'(?=\s|$)|([^\s"']\S*))""", re.DOTALL)
_ESCAPE: Final = re.compile(rb"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}


class ProtocolError(Exception):
    """What a client sent is no command; nothing that follows can be understood. The message is for the client."""


class Large:
    """A long argument, with room around it for the envelope of a value."""

    __slots__ = ("length", "memory", "refused")

    def __init__(self, length: int, refused: str | None) -> None:
        """`refused`: why its bytes are passed over; the command is answered with this."""
        self.length = length
        self.refused = refused
        # Not touched before bytes arrive: a header alone takes no memory. Two bytes more: the line end, later the padding
        self.memory = np.empty(0 if refused else HEAD_BYTES + length + 2, dtype=np.uint8).data

    @property
    def data(self) -> memoryview:
        """The argument."""
        return self.memory[HEAD_BYTES : HEAD_BYTES + self.length]


Argument = bytes | Large
Command = list[Argument]


class RequestReader:
    """Of one connection.

    It is given its bytes in two steps: `buffer` says where to read to, `received` how much came.
    """

    def __init__(
        self,
        scratch: memoryview,
        admit: Callable[[int], str | None],
        release: Callable[[int], None],
        claim: Callable[[int], str | None] = lambda length: None,
    ) -> None:
        """
        Args:
            scratch: `READ_BYTES` of memory that others use as well, between calls.
            admit: may so many bytes stay that have come? None: they may, and are accounted for; else why not.
            claim: may an argument of this length come? It is accounted for as it comes: a header takes nothing from others.
            release: gives back what was admitted, when the command will never be whole.
        """
        self.is_stranger = False
        """limits are those of a client that has not said the password"""
        self._scratch = scratch
        self._admit = admit
        self._claim = claim
        self._release = release
        self._tail = b""  # of the stream, where nothing could be understood yet
        self._args: Command = []  # of a command that is not whole
        self._left = 0  # arguments that it still lacks
        self._large: Large | None = None
        self._filled = 0
        self._admitted = 0
        self._admitted_small = 0  # of that for arguments without memory of their own
        self._small = 0  # bytes of such arguments

    @property
    def is_amid(self) -> bool:
        """Is a command under way that is not whole?"""
        return bool(self._left or self._tail)

    def buffer(self) -> memoryview:
        """Where the connection's next bytes go."""
        if self._large is None:
            return self._scratch
        left = self._large.length + 2 - self._filled
        if self._large.refused is not None:
            return self._scratch[: min(left, READ_BYTES)]
        at = HEAD_BYTES + self._filled
        return self._large.memory[at : at + left]

    def received(self, count: int, commands: list[Command]) -> None:
        """Take in what was read to `buffer`, and append the commands that are whole now.

        Raises:
            ProtocolError: what came behind them is none.
        """
        if self._large is not None:
            self._fill(count, commands)
            return
        data = self._tail + bytes(self._scratch[:count])
        if self._left == 0 and data[0] == 42 and not self.is_stranger and self._parsed_at_once(data, commands):
            self._tail = b""
            return
        self._take_apart(data, commands)

    def close(self) -> None:
        """The connection ended: what was admitted for a command that will never be whole is given back."""
        self._release(self._admitted)
        self._admitted = self._admitted_small = self._small = 0
        self._args, self._left, self._large, self._tail = [], 0, None, b""

    # ---- whole commands -----------------------------------------------------------------------------------------------

    @staticmethod
    def _parsed_at_once(data: bytes, commands: list[Command]) -> bool:
        """hiredis takes memory by what headers claim, so it gets those with small numbers only.

        As it does, and Redis, the two bytes behind an argument are passed over, whatever they are.
        """
        if _LARGE_HEADER.search(data) is not None:
            return False
        reader = hiredis.Reader()
        reader.feed(data)
        found: list[Command] = []
        try:
            while (one := reader.gets()) is not False:
                if type(one) is not list or len(one) > ARGUMENTS_MAX or not all(type(argument) is bytes for argument in one):
                    return False
                if one:
                    found.append(one)
            reader.feed(_WHOLE)  # comes out as it went in if nothing is left before it
            whole = bool(reader.gets() == _WHOLE[1:-2])
        except hiredis.ProtocolError:
            return False
        if whole:
            commands += found
        return whole

    # ---- the others ---------------------------------------------------------------------------------------------------

    def _take_apart(self, data: bytes, commands: list[Command]) -> None:
        at = 0
        while at < len(data):
            if self._left == 0:
                next_ = self._begun(data, at, commands)
            else:
                next_ = self._argument(data, at)
                if self._left == 0:
                    self._finish(commands)
            if next_ < 0:
                break
            at = next_
        self._tail = data[at:]

    def _line(self, data: bytes, at: int, what: str) -> tuple[bytes, int]:
        """A header without its first character and line end, and what is behind it; -1: it is not whole."""
        end = data.find(b"\r\n", at, at + _HEADER_BYTES_MAX + 2)
        if end >= 0:
            return data[at + 1 : end], end + 2
        if len(data) - at > _HEADER_BYTES_MAX:
            raise ProtocolError(f"too big {what} string")
        return b"", -1

    def _begun(self, data: bytes, at: int, commands: list[Command]) -> int:
        if data[at] != 42:  # "*"
            return self._inline(data, at, commands)
        line, behind = self._line(data, at, "mbulk count")
        if behind < 0:
            return -1
        count = _number(line)
        if count is None or count > ARGUMENTS_MAX:
            raise ProtocolError(f"invalid multibulk length; allowed are up to {ARGUMENTS_MAX} arguments")
        if self.is_stranger and count > STRANGER_ARGUMENTS_MAX:
            raise ProtocolError("unauthenticated multibulk length")
        self._left = max(count, 0)
        return behind

    def _argument(self, data: bytes, at: int) -> int:
        if data[at] != 36:  # "$"
            raise ProtocolError(f"expected '$', got '{_shown(data[at : at + 1])}'")
        line, behind = self._line(data, at, "bulk count")
        if behind < 0:
            return -1
        length = _number(line)
        if length is None or not 0 <= length <= BULK_BYTES_MAX:
            raise ProtocolError(f"invalid bulk length; allowed are 0 to {BULK_BYTES_MAX} bytes")
        if self.is_stranger and length > STRANGER_BULK_BYTES_MAX:
            raise ProtocolError("unauthenticated bulk length")
        if length >= LARGE_BYTES:
            return self._begin_large(data, behind, length)
        if len(data) < behind + length + 2:
            return -1
        more = max(0, self._small + length - FREE_BYTES - self._admitted_small)
        if more and (why := self._admit(more)) is not None:  # many small ones are large
            self._args.append(Large(length, why))
        else:
            self._small += length
            self._admitted += more
            self._admitted_small += more
            self._args.append(data[behind : behind + length])
        self._left -= 1
        return behind + length + 2

    def _begin_large(self, data: bytes, at: int, length: int) -> int:
        self._large = Large(length, self._claim(length))
        here = data[at : at + length + 2]
        self._filled = 0
        self._came(len(here))
        if self._large.refused is None:
            self._large.memory[HEAD_BYTES : HEAD_BYTES + len(here)] = here
        if self._filled == length + 2:
            self._end_large()
        return at + len(here)

    def _came(self, count: int) -> None:
        """More of the large argument; if there is no memory for that, nothing of it is kept, and the rest is passed over."""
        assert self._large is not None
        length, before = self._large.length, min(self._filled, self._large.length)
        self._filled += count
        more = min(self._filled, length) - before
        if self._large.refused is not None or more == 0:
            return
        if (why := self._admit(more)) is None:
            self._admitted += more
        else:
            self._release(before)
            self._admitted -= before
            self._large = Large(length, why)

    def _fill(self, count: int, commands: list[Command]) -> None:
        self._came(count)
        assert self._large is not None
        if self._filled < self._large.length + 2:
            return
        self._end_large()
        if self._left == 0:
            self._finish(commands)

    def _end_large(self) -> None:
        assert self._large is not None
        self._args.append(self._large)
        self._large = None
        self._left -= 1

    def _finish(self, commands: list[Command]) -> None:
        """A command is whole: who runs it accounts for its memory."""
        self._release(self._admitted_small)
        self._admitted = self._admitted_small = self._small = 0
        commands.append(self._args)
        self._args = []

    def _inline(self, data: bytes, at: int, commands: list[Command]) -> int:
        end = data.find(b"\n", at, at + INLINE_BYTES_MAX + 1)
        if end < 0:
            if len(data) - at > INLINE_BYTES_MAX:
                raise ProtocolError("too big inline request")
            return -1
        words = split_inline(data[at:end].removesuffix(b"\r"))
        if words is None:
            raise ProtocolError("unbalanced quotes in request")
        if words:
            commands.append([*words])
        return end + 1


def split_inline(line: bytes) -> list[bytes] | None:
    """Words of a command typed by hand, which may be quoted; None: a quote is not closed."""
    words: list[bytes] = []
    at = 0
    while line[at:].strip():
        found = _QUOTED.match(line, at)
        if found is None:
            return None
        double, single, bare = found.groups()
        if double is not None:
            words.append(_ESCAPE.sub(lambda one: _unescaped(one[1]), double))
        elif single is not None:
            words.append(single.replace(b"\\'", b"'"))
        else:
            words.append(bare)
        at = found.end()
    return words


def _unescaped(what: bytes) -> bytes:
    return bytes.fromhex(what[1:].decode()) if len(what) == 3 else _ESCAPES.get(what, what)


def _number(line: bytes) -> int | None:
    """A header's number, as hiredis takes it."""
    digits = line.removeprefix(b"-")
    if not digits.isdigit() or len(digits) > 10 or (digits[:1] == b"0" and line != b"0"):
        return None
    return int(line)


def _shown(raw: bytes) -> str:
    return raw.decode("latin-1") if raw.isascii() and raw.decode("latin-1").isprintable() else f"\\x{raw.hex()}"
