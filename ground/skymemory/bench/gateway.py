"""`skymem bench gateway`: runs redis-benchmark on the agent's Redis gateway, and on a redis-server beside it.

Both are processes of their own on this machine and are asked in turn, so other load on the machine affects both alike. All
`names` names have values before the measurement begins: so every GET is a hit, and every SET replaces a value. The two do not
do the same work. Redis copies a value into its memory, in one process. The gateway cuts the value into
chunks, sends these to satellites, which confirm them, and checks digest, checksum and CRC on the way back.
"""

import csv
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final

from rich.table import Table

from skymemory.bench.peer_servers import ServerError, redis_client, running
from skymemory.common.progress import Progress, no_progress
from skymemory.sky.constellation import Constellation
from skymemory.testbed.leash import guarded, leashed_folder, own_leash
from skymemory.testbed.local import LocalConstellation, free_port
from skymemory.testbed.processes import ProcessId, cpu_seconds, identify
from skymemory.testbed.run_record import Running, RunRecord

VALUE_BYTES: Final = (3, 4096, 3_000_000)
LOADS: Final = ((1, 1), (1, 16), (50, 1), (50, 16))
"""Pairs of the number of clients and the commands that each has under way."""
_LARGE_BYTES: Final = 1_000_000
"""Length from which values are not asked for in pipelines: redis-benchmark keeps all of them in memory."""
END_DEADLINE_S: Final = 20.0
"""Seconds for the agent to end; then it is killed."""
_TIMEOUT_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class _Speed:
    per_s: float
    p50_ms: float
    cpu_us: float


def run_gateway_bench(
    constellation: Constellation,
    value_bytes: Sequence[int] = VALUE_BYTES,
    loads: Sequence[tuple[int, int]] = LOADS,
    scale: float = 1.0,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Measure the gateway over a local constellation, and redis-server.

    Args:
        constellation: Its port is replaced by a free one.
        loads: Pairs of clients and pipelined commands, see `LOADS`.
        scale: Factor on the number of requests.
        progress: Called with the number of finished runs of redis-benchmark, and of all runs.

    Returns:
        `rows` has an entry for each length, load and command, with `requests`, and for `gateway` and
        `redis` each: `per_s` (commands a second), `p50_ms` (median time to an answer, to all commands of a pipeline together)
        and `cpu_us` (processor time of its process for one command in microseconds, without that of satellites).

    Raises:
        ServerError: A program is not installed, or fails.
        StartError: The constellation does not start.
    """
    program = shutil.which("redis-benchmark")
    if program is None:
        raise ServerError("redis-benchmark is not installed; on Debian: apt-get install redis-tools")
    runs = [(length, *load) for length in value_bytes for load in loads if length < _LARGE_BYTES or load[1] == 1]
    sky = constellation.replace(network={"port": free_port(constellation)})
    rows: list[dict[str, Any]] = []
    with LocalConstellation(sky) as local, _agent(local) as (port, agent), redis_client() as redis:
        theirs = int(redis.connection_pool.connection_kwargs["port"]), _process(redis.info("server")["process_id"])
        servers = {"gateway": (port, agent), "redis": theirs}
        for done, (length, clients, pipeline) in enumerate(runs):
            names = min(1000, max(10, 60_000_000 // length))
            requests = max(clients * pipeline, names, int(scale * _requests(length, clients, pipeline)))
            load = ["-n", str(requests), "-c", str(clients), "-P", str(pipeline), "-d", str(length), "-r", str(names)]
            for one, _ in servers.values():
                _fill(redis, one, names, length)
            for command in ("SET", "GET"):
                row: dict[str, Any] = {"value_bytes": length, "clients": clients, "pipeline": pipeline, "command": command}
                row |= {"names": names, "requests": requests}
                for name, (one, process) in servers.items():
                    row[name] = asdict(_measured([program, "-p", str(one), *load, "-t", command.lower()], process, requests))
                rows.append(row)
            progress(done + 1, len(runs))
    return {"rows": rows}


def gateway_table(report: dict[str, Any]) -> Table:
    """Return a table of the report of `run_gateway_bench`."""
    table = Table(title="commands a second, and median milliseconds to the answer")
    for column in ("value, bytes", "clients", "pipeline", "", "gateway", "ms", "us of CPU", "redis-server", "ms", "us of CPU"):
        table.add_column(column, justify="right" if column else "left")
    for row in report["rows"]:
        table.add_row(
            f"{row['value_bytes']:,}",
            str(row["clients"]),
            str(row["pipeline"]),
            row["command"],
            *(cell for one in (row["gateway"], row["redis"]) for cell in _cells(one)),
        )
    return table


def _cells(speed: dict[str, float]) -> list[str]:
    return [f"{speed['per_s']:,.0f}", f"{speed['p50_ms']:,.2f}", f"{speed['cpu_us']:,.0f}"]


def _requests(length: int, clients: int, pipeline: int) -> int:
    if length >= _LARGE_BYTES:
        return 100
    return 2000 if clients * pipeline == 1 else 20_000


def _process(pid: int) -> ProcessId:
    process = identify(pid)
    if process is None:
        raise ServerError(f"process {pid}, which was to be measured, has ended")
    return process


def _fill(redis: Any, port: int, names: int, length: int) -> None:
    """Put values under the names that redis-benchmark will ask for."""
    client = type(redis)(port=port)
    for first in range(0, names, 100):
        several = range(first, min(first + 100, names))
        client.mset({f"key:{number:012}": b"x" * length for number in several})
    client.close()


def _measured(command: list[str], process: ProcessId, requests: int) -> _Speed:
    before_s = cpu_seconds(process)
    try:
        done = subprocess.run(
            guarded([*command, "--csv"]),
            stdin=own_leash().end,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=True,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise ServerError(f"redis-benchmark: {error}") from error
    cpu_us = (cpu_seconds(process) - before_s) / requests * 1e6
    rows = list(csv.reader(done.stdout.splitlines()))[1:]
    if len(rows) != 1 or "rror" in done.stderr:
        raise ServerError(f"redis-benchmark: {done.stdout or done.stderr}")
    return _Speed(float(rows[0][1]), float(rows[0][4]), round(cpu_us, 1))


@contextmanager
def _agent(local: LocalConstellation) -> Iterator[tuple[int, ProcessId]]:
    """Run an agent over these satellites; yield the port of its gateway, and its process."""
    with leashed_folder() as folder:
        RunRecord(folder).save(Running("local", local.constellation, dict(local.processes)))
        command = [sys.executable, "-c", "from skymemory.cli import main; main()", "agent", "--resp-port", "0"]
        variables = {**os.environ, "SKYMEM_STATE": str(folder)}
        with running(command, END_DEADLINE_S, env=variables, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            port = 0
            while (line := child.stdout.readline().strip()) and line != "serving":
                if line.startswith("redis: "):
                    port = int(line.rpartition(":")[2])
            if line != "serving":
                raise ServerError("the agent did not start: `skymem agent` in a shell says why")
            yield port, _process(child.pid)
