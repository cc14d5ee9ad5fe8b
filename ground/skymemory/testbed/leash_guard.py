"""Run a program, and end it when standard input ends (see `skymemory.testbed.leash`). Needs only the standard library.

The process becomes the program, so that its parent has the program's pid; a child of it watches.
"""

import os
import select
import signal
import subprocess
import sys

GRACE_MS = 5000


def _watch(program: int, after: str) -> None:
    """Wait until standard input ends, a byte comes, or the program ends.

    Args:
        program: Pidfd of the program.
    """
    watched = select.poll()
    watched.register(0, select.POLLIN)
    watched.register(program, select.POLLIN)
    while True:
        ready = [descriptor for descriptor, _ in watched.poll()]
        if 0 in ready:
            break
        if not after:
            return
        watched.unregister(program)
    if os.read(0, 1):
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            signal.pidfd_send_signal(program, number)
        except ProcessLookupError:
            break
        if select.select([program], [], [], GRACE_MS / 1000)[0]:
            break
    if after:
        subprocess.run(["/bin/sh", "-c", after], stdin=subprocess.DEVNULL, check=False)


def main() -> None:
    """Run the program of the arguments: a shell command for afterwards, or nothing; then the program and its arguments."""
    after, *words = sys.argv[1:]
    program = os.pidfd_open(os.getpid())
    nothing = os.open(os.devnull, os.O_RDWR)
    if os.fork() == 0:
        os.setsid()  # a Ctrl-C at the terminal does not end the guard
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        _watch(program, after)
        os._exit(0)
    os.dup2(nothing, 0)
    os.execvp(words[0], words)  # noqa: S606 (no shell is meant)


if __name__ == "__main__":
    main()
