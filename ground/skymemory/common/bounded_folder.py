"""Folders of records that are made again if they are missing: the oldest are removed before they are too many."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from os import DirEntry, scandir, utime
from pathlib import Path


def used_now(path: Path) -> None:
    """Note that a file or folder is used, so that older ones are removed before it."""
    with suppress(OSError):  # on a disk that cannot be written to nothing is removed either
        utime(path)


def bound_folder(folder: Path, most: int, most_bytes: int, is_used: Callable[[Path], bool] = lambda _: False) -> None:
    """Remove what was not used for longest, until a folder holds no more than it may. What cannot be removed stays.

    Args:
        folder: The folder. Its entries are files, and folders of files.
        most: Most entries.
        most_bytes: Most bytes of all files together.
        is_used: Function that says of an entry whether it has to stay.
    """
    found = []
    with suppress(OSError), scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):  # another program has removed it
                found.append((entry.stat(follow_symlinks=False).st_mtime_ns, _bytes(entry), Path(entry.path)))
    count, total = len(found), sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if count <= most and total <= most_bytes:
            return
        if is_used(path):
            continue
        with suppress(OSError):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
            count, total = count - 1, total - size


def _bytes(entry: DirEntry[str]) -> int:
    return sum(one.stat(follow_symlinks=False).st_size for one in _files(entry))


def _files(entry: DirEntry[str]) -> Iterator[DirEntry[str]]:
    if not entry.is_dir(follow_symlinks=False):
        yield entry
        return
    with scandir(entry.path) as inside:
        yield from inside
