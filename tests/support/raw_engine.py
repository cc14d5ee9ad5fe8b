"""An engine that sends to an agent what a good engine would not."""

import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from skymemory.agent import arena, protocol
from support.waiting import PATIENCE_S

ARENA_BYTES = 1 << 20


def hello(**changes: Any) -> protocol.Hello:
    """Return a good hello, except for the changes."""
    fields: dict[str, Any] = {
        "version": protocol.VERSION,
        "name": "vllm",
        "model": "model",
        "root": bytes(32),
        "block_tokens": 16,
        "block_bytes": 100_000,
        "dtype": "float32",
        "arena_bytes": ARENA_BYTES,
        **changes,
    }
    return protocol.Hello(**fields)


class RawEngine:
    """A connection without any checks. A context manager."""

    def __init__(self, path: Path) -> None:
        self.link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.link.settimeout(PATIENCE_S)
        self.link.connect(str(path))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self.link.close()

    def greet(self, message: protocol.Hello | None = None, descriptors: Sequence[int] | None = None) -> Any:
        """Send a hello with descriptors, by default that of a good arena; return the answer."""
        message = message or hello()
        if descriptors is None:
            descriptor, _ = arena.make(message.arena_bytes)
            try:
                socket.send_fds(self.link, [protocol.frame(message)], [descriptor])
            finally:
                os.close(descriptor)
        else:
            socket.send_fds(self.link, [protocol.frame(message)], list(descriptors))
        return self.answer(protocol.WELCOMED)

    def send(self, data: bytes | protocol.EngineMessage) -> None:
        """Send bytes as they are, or a message; the agent may have hung up."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.link.sendall(data if isinstance(data, bytes) else protocol.frame(data))

    def answer(self, decoder: Any = protocol.ANSWERED) -> Any:
        """Return the next message; None if the agent has hung up."""
        head = self._read(protocol.LENGTH.size)
        if head is None:
            return None
        body = self._read(protocol.frame_length(head))
        return None if body is None else decoder.decode(body)

    def gone(self) -> bool:
        """Wait until the agent has hung up; discard what it sends before."""
        while self.answer() is not None:
            pass
        return True

    def _read(self, length: int) -> bytes | None:
        data = b""
        while len(data) < length:
            try:
                more = self.link.recv(length - len(data))
            except ConnectionResetError:
                return None
            if not more:
                return None
            data += more
        return data
