"""Processes that are certainly ours: a pid may belong to another process by now, a pid and its start time cannot."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

POLL_S = 0.01


@dataclass(frozen=True)
class ProcessId:
    """A process of this boot: its pid and its start (clock ticks since boot, proc(5), stat, field 22)."""

    pid: int
    start_ticks: int


def identify(pid: int) -> ProcessId | None:
    """Return the process that has this pid now, or None if there is none (a zombie counts as none)."""
    fields = _stat_fields(pid)
    if fields is None or fields[0] in ("Z", "X"):
        return None
    return ProcessId(pid, int(fields[19]))


def is_alive(process: ProcessId) -> bool:
    """Return True if this very process still runs."""
    return identify(process.pid) == process


def cpu_seconds(process: ProcessId) -> float:
    """Return the processor time in seconds since its start, user and system; 0 if it is gone."""
    fields = _stat_fields(process.pid) if is_alive(process) else None
    return 0.0 if fields is None else (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_clock(pid: int) -> int:
    """Return the clock of the processor time of a process, for `time.clock_gettime`: of all its threads, in nanoseconds.

    Raises:
        OSError: There is no such process.
    """
    clock = ctypes.c_int()
    error = ctypes.CDLL(None).clock_getcpuclockid(pid, ctypes.byref(clock))
    if error != 0:
        raise OSError(error, os.strerror(error))
    return clock.value


def kill(process: ProcessId) -> bool:
    """End a process by SIGKILL, and wait until it is gone. Return False if it was gone already."""
    if not _signal(process, signal.SIGKILL):
        return False
    while is_alive(process):
        time.sleep(POLL_S)
    return True


def stop(processes: Iterable[ProcessId], grace_s: float = 5.0) -> int:
    """End processes by SIGTERM, and by SIGKILL what is left after `grace_s`; return how many had to be killed.

    Children of the caller stay zombies until it waits for them.
    """
    left = [p for p in processes if _signal(p, signal.SIGTERM)]
    end = time.monotonic() + grace_s
    while left and time.monotonic() < end:
        time.sleep(POLL_S)
        left = [p for p in left if is_alive(p)]
    for process in left:
        _signal(process, signal.SIGKILL)
    while any(is_alive(p) for p in left):
        time.sleep(POLL_S)
    return len(left)


def writers(files: Iterable[Path], program: str) -> set[ProcessId]:
    """Return the processes of the program of this name whose standard output is one of these files."""
    wanted = set()
    for file in files:
        with suppress(OSError):  # the process is gone by now
            status = file.stat()
            wanted.add((status.st_dev, status.st_ino))
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        process = identify(int(folder.name))
        try:
            output = (folder / "fd" / "1").stat()
            # A program that was replaced since, for example by a new installation, is named "... (deleted)"
            name = (folder / "exe").readlink().name.removesuffix(" (deleted)")
        except OSError:  # the process is gone by now, or another user's
            continue
        if process is not None and name == program and (output.st_dev, output.st_ino) in wanted and is_alive(process):
            found.add(process)
    return found


def _signal(process: ProcessId, number: signal.Signals) -> bool:
    """Signal a process through a pidfd, so that it is the process that was looked at; return False if it is gone."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        if not is_alive(process):
            return False
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
    return True


def _stat_fields(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat from the third (state) on; the second, the name, may hold anything."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()
