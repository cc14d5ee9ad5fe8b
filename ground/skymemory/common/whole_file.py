"""Files that are written whole or not at all: a full disk leaves neither half a file nor an empty one."""

import os
from contextlib import suppress
from pathlib import Path

Buffer = bytes | bytearray | memoryview
"""Content of a file or a block."""


def write_whole(path: Path, content: Buffer) -> None:
    """Write a file whole, or leave the old one as it was. Pipes, terminals and devices are written directly.

    Raises:
        OSError: A step failed; the error carries the file's name.
    """
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as out:
                out.write(content)
        else:
            _replace(path.resolve(), content)  # the file that a link names
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _replace(target: Path, content: Buffer) -> None:
    draft = target.with_name(f".{target.name[:200]}.{os.getpid()}")
    try:
        with draft.open("xb") as out:
            if target.exists():
                os.fchmod(out.fileno(), target.stat().st_mode & 0o777)
            out.write(content)
        draft.replace(target)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
