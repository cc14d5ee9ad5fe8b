"""`skymem bench idle`: measures processor time and memory of a constellation that does nothing."""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from skymemory.common.progress import Progress, no_progress
from skymemory.sky.constellation import Constellation
from skymemory.testbed.local import LocalConstellation, free_port
from skymemory.testbed.processes import ProcessId, cpu_seconds

SECONDS = 10.0
STEP_S = 0.25


def run_idle_bench(constellation: Constellation, seconds: float = SECONDS, progress: Progress = no_progress) -> dict[str, Any]:
    """Start the constellation at a port of its own, leave it alone for `seconds`, and read what the kernel has counted.

    Stores are empty.

    Returns:
        Processor time in percent of one core, and memory in bytes. Of shared pages, `rss` counts all for each process, `pss`
        divides them among the processes that share them, and `private` leaves them out.

    Raises:
        StartError: The constellation does not start.
    """
    idle = constellation.replace(network={"port": free_port(constellation)})
    with LocalConstellation(idle) as local:
        processes = list(local.processes.values())
        start, before = time.monotonic(), _cpu(processes)
        while (passed := time.monotonic() - start) < seconds:
            progress(int(1000 * passed / seconds), 1000)
            time.sleep(min(STEP_S, seconds - passed))
        passed, used = time.monotonic() - start, _cpu(processes) - before
        memory = [_memory_bytes(process) for process in processes]
    report: dict[str, Any] = {
        "satellites": len(processes),
        "seconds": round(passed, 2),
        "cpu_percent_of_a_core": round(100 * used / passed, 3),
    }
    for name in ("rss", "pss", "private"):
        each = [entry[name] for entry in memory]
        report |= {f"{name}_bytes": sum(each), f"{name}_bytes_max": max(each)}
    return report


def _cpu(processes: Iterable[ProcessId]) -> float:
    return sum(cpu_seconds(process) for process in processes)


def _memory_bytes(process: ProcessId) -> dict[str, int]:
    """Return the memory of a process, from proc(5), smaps_rollup, whose unit is KiB."""
    lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
    size = {name: 1024 * int(value.split()[0]) for name, _, value in (line.partition(":") for line in lines)}
    return {"rss": size["Rss"], "pss": size["Pss"], "private": size["Private_Clean"] + size["Private_Dirty"]}
