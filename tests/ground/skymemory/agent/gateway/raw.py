"""A client that says what it is told to, and hears what comes."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import hiredis

TIMEOUT_S = 60.0


def encoded(*args: bytes | str) -> bytes:
    """A command."""
    words = [one.encode() if isinstance(one, str) else one for one in args]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(one), one) for one in words)


class RawClient:
    """One connection. A context manager."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self._reader = hiredis.Reader()

    def __enter__(self) -> "RawClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self) -> Any:
        """The next answer; errors as text. ConnectionError: there is none, the connection has ended."""
        while (found := self._reader.gets()) is False:
            data = self.socket.recv(1 << 20)
            if not data:
                raise ConnectionError
            self._reader.feed(data)
        return str(found) if isinstance(found, hiredis.ReplyError) else found

    def rest(self) -> Iterator[Any]:
        """Answers until the connection ends."""
        with suppress(ConnectionError):
            while True:
                yield self.answer()

    def ask(self, *args: bytes | str) -> Any:
        self.send(encoded(*args))
        return self.answer()

    def has_ended(self) -> bool:
        """Waits for the end, whatever comes before it."""
        try:
            while self.socket.recv(1 << 20):
                pass
        except ConnectionResetError:
            pass
        return True
