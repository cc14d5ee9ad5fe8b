"""Waiting for processes on a busy machine: as long as they make progress, instead of a fixed time."""

import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

QUIET_S = 120.0
"""Seconds in which nothing may move: neither the CPU time of the processes nor what they write."""
BOUND_S = 1800.0
"""Seconds of one wait, whatever moves."""
_LOOK_S = 1.0
"""Seconds between two looks at what moves."""
_TICKS = 5
"""Ticks of CPU time that count as a move; a process that only waits takes one now and then."""


class Process(Protocol):
    """The part of `subprocess.Popen` that is used."""

    pid: int

    def poll(self) -> int | None:
        """Return the exit status; None while it runs."""


class Progress:
    """Progress of a process, of all that it has started, and of their logs."""

    def __init__(self, process: Process, *logs: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._process = process
        self._logs = logs
        self._clock = clock
        self._ticks, self._written = self._now()
        self.restart()

    def restart(self) -> None:
        """Wait for something new from here on."""
        self._began = self._moved = self._clock()

    def check(self, what: str) -> None:
        """Fail if the process has ended, has not moved for long, or the wait has reached its bound."""
        ended = self._process.poll()
        assert ended is None, f"{what}: the process has ended with {ended}\n{self.tail()}"
        self.check_moves(what)

    def check_moves(self, what: str) -> None:
        """Check as `check` does, for a process that may end."""
        now = self._clock()
        ticks, written = self._now()
        if abs(ticks - self._ticks) >= _TICKS or written != self._written:
            self._moved, self._ticks, self._written = now, ticks, written
        assert now - self._moved < QUIET_S, f"{what}: nothing has moved for {QUIET_S:g} s\n{self.tail()}"
        assert now - self._began < BOUND_S, f"{what}: not within {BOUND_S:g} s\n{self.tail()}"

    def wait(self, true: Callable[[], object], what: str, pause_s: float = 0.1) -> None:
        """Wait until something is true."""
        self.restart()
        looked = self._clock()
        while not true():
            if self._clock() - looked >= _LOOK_S:
                self.check(what)
                looked = self._clock()
            time.sleep(pause_s)

    def tail(self) -> str:
        """Return the ends of the logs."""
        return "\n".join(log.read_text(errors="replace")[-4000:] for log in self._logs if log.exists())

    def _now(self) -> tuple[int, int]:
        return cpu_ticks(self._process.pid), sum(log.stat().st_size for log in self._logs if log.exists())


def cpu_ticks(pid: int) -> int:
    """Return the CPU time of a process and of all below it, in ticks; ended ones count at the process that waited for them."""
    below: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, _, rest = stat.read_text().partition(" (")
        except OSError:  # it has just ended
            continue
        fields = rest.rpartition(") ")[2].split()
        below.setdefault(int(fields[1]), []).append(int(number))
        ticks[int(number)] = sum(map(int, fields[11:15]))
    total, left = 0, [pid]
    while left:
        one = left.pop()
        total += ticks.get(one, 0)
        left += below.get(one, [])
    return total


def run(command: Sequence[object]) -> str:
    """Return the output of a command; it must succeed, and may take as long as it makes progress."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen([*map(str, command)], stdout=output, stderr=subprocess.STDOUT)
        progress = Progress(process, log)
        try:
            while process.poll() is None:
                progress.check_moves(str(command[0]))
                time.sleep(0.5)
        finally:
            process.kill()
            process.wait()
        printed = log.read_text(errors="replace")
        assert process.returncode == 0, printed
        return printed
