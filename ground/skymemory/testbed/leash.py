"""Leashes: processes that a command starts end with it, however it ends: by a signal, by SIGKILL, by a bug.

The command holds one end of a pipe and never writes to it. The kernel closes that end when the command is gone, and the holder of
the other end sees it. Satellites watch the pipe themselves (`skysat --until-stdin-ends`); for other programs a small process does
(`leash_guard.py`). A byte for each of them lets them go on alone.
"""

import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

_GUARD = Path(__file__).with_name("leash_guard.py")
_FOLDER = """
trap '' PIPE
folder=$(mktemp -d "$0/skymem-XXXXXXXXXX") || exit
echo "$folder"
read -r end
for attempt in 1 2 3 4 5; do  # somebody who ends as well may still write there
    rm -rf "$folder" && exit
    sleep 1
done
"""
"""Shell script that makes a folder, prints its name, and removes it when standard input ends."""


class Leash:
    """A pipe whose other end is the standard input of processes that end with this one."""

    def __init__(self) -> None:
        self.end, self._held = os.pipe()  # both close when this process starts another program

    def let_go(self, count: int) -> None:
        """Let this many processes go on alone, all at once: in one write, which no signal divides."""
        os.write(self._held, bytes(count))
        self.close()

    def close(self) -> None:
        """End the processes that are still on the leash; safe to call twice."""
        for descriptor in (self._held, self.end):
            if descriptor >= 0:
                os.close(descriptor)
        self._held = self.end = -1


@contextmanager
def leashed_folder() -> Iterator[Path]:
    """Make a temporary folder that goes with the context, or with this process, however it ends.

    A shell makes and removes it, so at every moment somebody is there to remove it.

    Raises:
        OSError: The folder cannot be made.
    """
    leash, parent = Leash(), tempfile.gettempdir()
    command = ["/bin/sh", "-c", _FOLDER, parent]
    with subprocess.Popen(
        command, stdin=leash.end, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    ) as shell:
        try:
            assert shell.stdout is not None
            if not (path := shell.stdout.readline().removesuffix("\n")):
                raise OSError(errno.EIO, "no folder can be made there", parent)
            yield Path(path)
        finally:
            leash.close()


@cache
def own_leash() -> Leash:
    """Return the leash that lasts as long as this process."""
    return Leash()


def guarded(command: Sequence[str | Path], after: str | None = None) -> list[str]:
    """Return a command that runs this one, with a process beside it that ends it when standard input ends.

    Its pid is the program's own. With a leash's `end` as its standard input it ends with this process.

    Args:
        after: Shell command that is run when standard input has ended, also if the program has ended before. With it, the guard
            waits for a byte, or for the end.
    """
    own = [sys.executable, "-I", "-S", str(_GUARD)]
    return [*own, "" if after is None else after, *map(str, command)]
