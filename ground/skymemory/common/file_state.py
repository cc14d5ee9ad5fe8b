"""Tells whether a file was written or replaced."""

from pathlib import Path

FileState = tuple[int, int, int]
"""Inode, time of the last change in nanoseconds, and length of a file."""


def file_state(path: Path) -> FileState | None:
    """Return what is another after a file was written or replaced; None if it is not there."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
