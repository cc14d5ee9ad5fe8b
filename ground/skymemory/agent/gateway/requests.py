"""Commands of a Redis client, out of the bytes of its connection.

Commands are taken apart header by header as they come: nothing is buffered that a header claims and limits forbid, and a large
value lies, as it arrives, where its block will be sent from.
"""

import re
from collections.abc import Callable
from typing import Final

import numpy as np

from skymemory.store.keyvalue import HEAD_BYTES

BULK_BYTES_MAX: Final = 512 << 20
"""Bytes of one argument, as with Redis."""
ARGUMENTS_MAX: Final = 1 << 15
"""Arguments of one command: all other clients wait while it is begun, some microseconds for each."""
INLINE_BYTES_MAX: Final = 1 << 16
LARGE_BYTES: Final = 100_000
"""Length from which arguments have memory of their own."""
READ_BYTES: Final = 1 << 18
FREE_BYTES: Final = 1 << 12
"""Bytes of the arguments of a command that is not whole; more need memory."""
ARGUMENT_BYTES: Final = 64
"""Memory that a short argument takes besides its bytes."""
STRANGER_ARGUMENTS_MAX: Final = 10
"""Arguments of a client that has not sent the password yet."""
STRANGER_BULK_BYTES_MAX: Final = 16_384
_HEADER_BYTES_MAX: Final = 32
_STAR: Final = b"*"[0]
_DOLLAR: Final = b"$"[0]
_COUNTS: Final = {b"*%d" % number: number for number in range(1, STRANGER_ARGUMENTS_MAX + 1)}
_LENGTHS: Final = {b"$%d" % number: number for number in range(1024)}
"""Most headers: looked up faster than read."""
_NUMBER: Final = re.compile(rb"(?:0|-?[1-9][0-9]{0,9})\Z")
_EMPTY: Final = re.compile(rb"[\r\n]++")
_QUOTED: Final = re.compile(rb"""\s*(?:"((?:[^"\\]|\\.)*)"(?=\s|$)|'((?:[^'\\]|\\.)*)'(?=\s|$)|([^\s"']\S*))""", re.DOTALL)
_ESCAPE: Final = re.compile(rb"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPES: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}


class ProtocolError(Exception):
    """An error for bytes that are no command; nothing that follows can be understood. The message is for the client."""


class Large:
    """A long argument, with room around it for the envelope of a value."""

    __slots__ = ("length", "memory")

    def __init__(self, length: int) -> None:
        """`length`: in bytes."""
        self.length = length
        # Not touched before bytes arrive: a header alone takes no memory. Two bytes more: the line end, later the padding
        self.memory = np.empty(HEAD_BYTES + length + 2, dtype=np.uint8).data

    @property
    def data(self) -> memoryview:
        """The argument."""
        return self.memory[HEAD_BYTES : HEAD_BYTES + self.length]


class Command:
    """The arguments of one command, and the memory that they take."""

    __slots__ = ("args", "large_bytes", "refused", "small_bytes")

    def __init__(self, args: list[bytes | Large], small_bytes: int = 0) -> None:
        """`small_bytes`: memory of those arguments that are short."""
        self.args = args
        self.small_bytes = small_bytes
        self.large_bytes = 0
        """Memory that was admitted for large arguments."""
        self.refused: str | None = None
        """Answer to the command if there was no memory for it; only its name is kept then."""

    @property
    def name(self) -> bytes:
        """The command's name in small letters; empty if it is none."""
        first = self.args[0] if self.args else b""
        return first.lower() if isinstance(first, bytes) else b""


class RequestReader:
    """The parser of one connection.

    It is given its bytes in two steps: `buffer` says where to read to, `received` how much came.
    """

    def __init__(
        self,
        scratch: memoryview,
        admit: Callable[[int], str | None],
        release: Callable[[int], None],
        claim: Callable[[int], str | None] = lambda length: None,
    ) -> None:
        """Begin with an empty stream.

        Args:
            scratch: Memory of `READ_BYTES` that others use as well, between calls.
            admit: Takes memory for so many bytes that have come; returns None, or why they may not stay.
            release: Gives back memory that was admitted, for a command that will never be whole.
            claim: Returns why an argument of this length may not come. Its memory is taken as it comes: a header takes nothing.
        """
        self.is_stranger = False
        """True: the client has not sent the password, and may send little."""
        self._scratch = scratch
        self._admit = admit
        self._claim = claim
        self._release = release
        self._tail = b""  # of the stream, where nothing could be understood yet
        self._command: Command | None = None  # that is not whole
        self._left = 0  # arguments that it still lacks
        self._large: Large | None = None
        self._filled = 0
        self._passed_over = 0  # bytes that are to come and are not kept
        self._admitted_small = 0  # for the short arguments of the command
        self._arguments = 0  # of all commands that were whole

    @property
    def is_amid(self) -> bool:
        """True while a command is under way that is not whole."""
        return self._command is not None or bool(self._tail)

    @property
    def arguments(self) -> int:
        """Number of arguments that were taken apart since the beginning; those that are passed over do not count."""
        return self._arguments + (0 if self._command is None else len(self._command.args))

    @property
    def taken_bytes(self) -> int:
        """Memory that was admitted for a command that is not whole."""
        return 0 if self._command is None else self._command.large_bytes + self._admitted_small

    def buffer(self) -> memoryview:
        """Return the memory for the connection's next bytes."""
        if self._large is None:
            return self._scratch
        return self._large.memory[HEAD_BYTES + self._filled :]

    def received(self, count: int, commands: list[Command]) -> None:
        """Take in what was read to `buffer`, and append the commands that are whole now.

        Raises:
            ProtocolError: No command comes behind them.
            MemoryError: There is no memory for a large argument.
        """
        before = self._command
        if self._large is not None and before is not None:
            self._came(before, self._large, count)
            self._finish(commands)
        else:
            data = self._tail + bytes(self._scratch[:count])
            self._tail = b""
            self._tail = data[self._parse(data, commands) :]
        if self._admitted_small and self._command is not before:
            self._release(self._admitted_small)
            self._admitted_small = 0
        if self._command is not None:
            self._keep(self._command)

    def close(self) -> None:
        """Give back the memory of a command that will never be whole."""
        if self._command is not None:
            self._release(self._command.large_bytes + self._admitted_small)
        self._command, self._large, self._tail, self._admitted_small = None, None, b"", 0

    # ---- headers and short arguments ----------------------------------------------------------------------------------

    def _parse(self, data: bytes, commands: list[Command]) -> int:
        """Take in all that can be understood; return where the rest begins."""
        at, size = 0, len(data)
        while at < size:
            if self._passed_over:
                behind = min(size, at + self._passed_over)
                self._passed_over -= behind - at
                self._finish(commands)
            elif self._command is None and data[at] != _STAR:
                behind = self._inline(data, at, commands)
            else:
                behind = self._take(data, at, commands)
            if behind == at:
                break
            at = behind
        return at

    def _take(self, data: bytes, at: int, commands: list[Command]) -> int:
        """Take commands of short arguments, the last one perhaps in part, or a long argument; return where the rest begins."""
        size = len(data)
        while at < size:
            command, left = self._command, self._left
            if command is None:
                if data[at] != _STAR:
                    break
                end = data.find(b"\r\n", at, at + _HEADER_BYTES_MAX + 2)
                left = _COUNTS.get(data[at:end], -1) if end > 0 else -1
                if left < 0 and (left := self._count(data, at, end)) < 0:
                    break
                at = end + 2
                command = Command([])
            args, small = command.args, command.small_bytes
            large = LARGE_BYTES if command.refused is None else 0
            while left and at < size:
                end = data.find(b"\r\n", at, at + _HEADER_BYTES_MAX + 2)
                length = _LENGTHS.get(data[at:end], -1) if end > 0 else -1
                if length < 0 and (length := self._length(data, at, end)) < 0:
                    break
                first = end + 2
                if length >= large:
                    command.small_bytes, self._command, self._left = small, command, left - 1
                    behind = self._begin_large(command, data, first, length)
                    self._finish(commands)
                    return behind
                behind = first + length + 2
                if behind > size:
                    break
                args.append(data[first : behind - 2])  # the two bytes behind it may be any, as with Redis
                small += length + ARGUMENT_BYTES
                left -= 1
                at = behind
            command.small_bytes, self._command, self._left = small, command, left
            if left:
                break
            self._finish(commands)
        return at

    def _count(self, data: bytes, at: int, end: int) -> int:
        """Return the number of arguments in a header that ends at `end`; -1: it is not whole."""
        if end < 0:
            return _cut(data, at, "mbulk count")
        count = _number(data[at + 1 : end])
        if count is None or count > ARGUMENTS_MAX:
            raise ProtocolError(f"invalid multibulk length; allowed are up to {ARGUMENTS_MAX} arguments")
        if self.is_stranger and count > STRANGER_ARGUMENTS_MAX:
            raise ProtocolError("unauthenticated multibulk length")
        return max(count, 0)

    def _length(self, data: bytes, at: int, end: int) -> int:
        """Return the length of the argument in a header that ends at `end`; -1: it is not whole."""
        if data[at] != _DOLLAR:
            raise ProtocolError(f"expected '$', got '{_shown(data[at : at + 1])}'")
        if end < 0:
            return _cut(data, at, "bulk count")
        length = _number(data[at + 1 : end])
        if length is None or not 0 <= length <= BULK_BYTES_MAX:
            raise ProtocolError(f"invalid bulk length; allowed are 0 to {BULK_BYTES_MAX} bytes")
        if self.is_stranger and length > STRANGER_BULK_BYTES_MAX:
            raise ProtocolError("unauthenticated bulk length")
        return length

    def _finish(self, commands: list[Command]) -> None:
        """Append the command if it is whole: whoever runs it accounts for its short arguments."""
        command = self._command
        if command is None or self._left or self._large is not None or self._passed_over:
            return
        self._command = None
        self._arguments += len(command.args)
        if command.args or command.refused is not None:
            commands.append(command)

    def _keep(self, command: Command) -> None:
        """Take memory for the short arguments of a command that is not whole."""
        more = command.small_bytes - FREE_BYTES - self._admitted_small
        if more <= 0 or command.refused is not None:
            return
        if (why := self._admit(more)) is None:
            self._admitted_small += more
        else:
            self._refuse(command, why)

    def _refuse(self, command: Command, why: str) -> None:
        """Give up the arguments of a command, but not its name; what is still to come of it is passed over."""
        self._release(command.large_bytes + self._admitted_small)
        self._admitted_small = command.large_bytes = 0
        del command.args[1:]
        command.args[:] = [name for name in command.args if isinstance(name, bytes)]
        command.small_bytes = sum(len(name) + ARGUMENT_BYTES for name in command.args if isinstance(name, bytes))
        command.refused = why

    # ---- long arguments -----------------------------------------------------------------------------------------------

    def _begin_large(self, command: Command, data: bytes, at: int, length: int) -> int:
        """Make room for a long argument, and take what is here of it; or pass over one of a command that is refused."""
        if command.refused is None and (why := self._claim(length)) is not None:
            self._refuse(command, why)
        if command.refused is not None:
            self._passed_over = length + 2
            return at
        self._large, self._filled = Large(length), 0
        here = data[at : at + length + 2]
        self._large.memory[HEAD_BYTES : HEAD_BYTES + len(here)] = here
        self._came(command, self._large, len(here))
        return at + len(here)

    def _came(self, command: Command, large: Large, count: int) -> None:
        """Take memory for more of a long argument; if there is none, nothing of the command is kept."""
        before = min(self._filled, large.length)
        self._filled += count
        more = min(self._filled, large.length) - before
        left = large.length + 2 - self._filled
        if more and (why := self._admit(more)) is not None:
            self._refuse(command, why)
            self._large, self._passed_over = None, left
            return
        command.large_bytes += more
        if not left:
            command.args.append(large)
            self._large = None

    # ---- commands typed by hand ---------------------------------------------------------------------------------------

    def _inline(self, data: bytes, at: int, commands: list[Command]) -> int:
        """Take empty lines, or a line of words; return where the rest begins."""
        if (empty := _EMPTY.match(data, at)) is not None:
            return empty.end()
        end = data.find(b"\n", at, at + INLINE_BYTES_MAX + 1)
        if end < 0:
            if len(data) - at > INLINE_BYTES_MAX:
                raise ProtocolError("too big inline request")
            return at
        words = split_inline(data[at:end].removesuffix(b"\r"))
        if words is None:
            raise ProtocolError("unbalanced quotes in request")
        self._arguments += max(1, len(words))  # an empty line is work, too
        if words:
            commands.append(Command([*words], sum(len(word) + ARGUMENT_BYTES for word in words)))
        return end + 1


def split_inline(line: bytes) -> list[bytes] | None:
    """Return the words of a command typed by hand, which may be quoted; None: a quote is not closed."""
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


def _number(raw: bytes) -> int | None:
    """Return a header's number."""
    return None if _NUMBER.match(raw) is None else int(raw)


def _cut(data: bytes, at: int, what: str) -> int:
    """Return -1 for a header that is not whole, if it is not too long."""
    if len(data) - at > _HEADER_BYTES_MAX:
        raise ProtocolError(f"too big {what} string")
    return -1


def _shown(raw: bytes) -> str:
    return raw.decode("latin-1") if raw.isascii() and raw.decode("latin-1").isprintable() else f"\\x{raw.hex()}"
