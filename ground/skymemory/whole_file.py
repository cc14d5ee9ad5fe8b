"""Files that are written whole, or not at all: a full disk leaves neither half a file nor an empty one."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skymemory.link.native import Buffer


def write_whole(path: Path, content: Buffer) -> None:
    """Write a file whole, or leave what was there as it was. A pipe, a terminal or a device is written to as it is.

    Raises:
        OSError: with the file's name, whatever could not be done.
    """
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as out:
                out.write(content)
        else:
            _replace(path.resolve(), content)  # what a link names
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
