"""Turns of commands that work on the same files: a lock that the kernel gives up with the process, and words about who has it."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_LOOK_S: Final = 0.05
_WORDS_BYTES_MAX: Final = 200


class BusyError(RuntimeError):
    """Another command was at work for longer than this one waits. The message names it."""


@contextmanager
def turn(path: Path, command: str, patience_s: float, tell: Callable[[str], None]) -> Iterator[None]:
    """Wait for a turn, and keep it as long as the context lasts. Who has it cannot have it once more.

    Args:
        path: File of the lock, which is made and stays. Its folder has to exist.
        command: Words for others about who has the turn.
        patience_s: Most seconds to wait.
        tell: Function that gets one line, about who is at work, if there is a wait.

    Raises:
        BusyError: The wait was in vain.
        OSError: The file cannot be made.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _wait(descriptor, path, patience_s, tell)
        with suppress(OSError):  # a full disk holds nobody up
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"`{command}` (pid {os.getpid()})".encode()[:_WORDS_BYTES_MAX], 0)
        yield
    finally:
        os.close(descriptor)


def _wait(descriptor: int, path: Path, patience_s: float, tell: Callable[[str], None]) -> None:
    end_s, is_told = time.monotonic() + patience_s, False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            who = os.pread(descriptor, _WORDS_BYTES_MAX, 0).decode(errors="replace").strip() or "another command"
            if time.monotonic() >= end_s:
                raise BusyError(f"{who} has been at work in {path.parent} for {patience_s:g} s; try again later") from error
            if not is_told:
                tell(f"{who} is at work in {path.parent}: this command waits for it, up to {patience_s:g} s")
                is_told = True
            time.sleep(_LOOK_S)
        else:
            return
