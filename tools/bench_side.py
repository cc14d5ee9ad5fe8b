#!/usr/bin/env python3
"""Run operations with one build of SkyMemory, for bench_compare.py, which starts this program with each of its two builds.

usage: tools/bench_side.py PACKAGES SKYMEM

PACKAGES is the folder in which the build's Python package must be found, SKYMEM its command. The program starts 25 satellites and
an agent, prints the names of its operations as JSON, and then runs an operation for each line of standard input that names one.
It answers with JSON: milliseconds of one operation, as wall time and as processor time of the host and of all satellites. It ends
with its standard input. It uses few names of the package, so that it runs with builds of other days.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import skymemory
from skymemory.sky.constellation import Constellation
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.leash import guarded, own_leash
from skymemory.testbed.local import LocalConstellation, free_port

VALUE_BYTES: Final = 22 * 2 * 4 * 64 * 128 * 2
"""Bytes of a block of 128 tokens of TinyLlama-1.1B in fp16, as in `skymem bench peers`: 2.88 MB."""
VALUES: Final = 8
"""Values of one turn of PUT or GET."""
CHAIN_BLOCKS: Final = 100
CHAINS: Final = 4
"""Look-ups of one turn."""
SMALL: Final = b"abc"
COMMANDS: Final = 200
"""Redis commands of one turn."""
NAMES: Final = 50
"""Names of small values. All have one before they are measured, so that each GET is a hit."""
GRID: Final[dict[str, object]] = {"planes": 5, "slots": 5}
CENTRE: Final = [3, 3]
SERVERS: Final = 10
PARITY: Final = 2
"""Servers for parity beside the others, for the operations with parity."""
DEADLINE_S: Final = 60.0
PORTS: Final = range(10_000, 32_768)
"""Ports below those that Linux gives to programs that ask for any."""


@dataclass
class Processes:
    """The processes of which processor time is read."""

    satellites: list[int]
    agent: int
    """Clock of the agent. All are clocks for `time.clock_gettime`."""

    def host_s(self) -> float:
        return time.process_time() + time.clock_gettime(self.agent)

    def satellites_s(self) -> float:
        return sum(map(time.clock_gettime, self.satellites))


Step = Callable[[], object]


class Operation:
    """An operation, measured several times in a row, with what comes before and after that is not measured."""

    def __init__(self, count: int, before: Callable[[], list[Step]], after: Step = lambda: None, *, own: bool = True) -> None:
        """Take a function that makes the steps to measure.

        Args:
            count: Operations of all the steps together.
            own: False if this process only asks the agent: then its processor time does not count.
        """
        self._count, self._before, self._after, self._own = count, before, after, own

    def measure(self, processes: Processes) -> dict[str, float]:
        """Run the steps. Return milliseconds of one operation."""
        steps = self._before()
        gc.collect()  # else a collection of all generations, 12 ms, falls into some measurement by chance
        host_s, own_s, satellites_s = processes.host_s(), time.process_time(), processes.satellites_s()
        start_s = time.perf_counter()
        for step in steps:
            step()
        wall_s = time.perf_counter() - start_s
        own_s, host_s, satellites_s = (
            time.process_time() - own_s,
            processes.host_s() - host_s,
            processes.satellites_s() - satellites_s,
        )
        self._after()
        host_s -= 0 if self._own else own_s
        each = 1000 / self._count
        return {"wall": wall_s * each, "host": host_s * each, "satellites": satellites_s * each}


def clock_of(pid: int) -> int:
    """Return the clock of the processor time of a process."""
    clock = ctypes.c_int()
    if error := ctypes.CDLL(None).clock_getcpuclockid(pid, ctypes.byref(clock)):
        raise OSError(error, os.strerror(error))
    return clock.value


def expect(is_right: bool, what: str) -> None:
    if not is_right:
        raise RuntimeError(what)


# --- the store ---------------------------------------------------------------------------------------------------------------


def moves(store: SkyStore, values: list[bytes], after: str) -> dict[str, Operation]:
    """Return PUT and GET of large values. A PUT is of keys that are not there, and GET fetches what the last PUT has stored."""
    keys: list[bytes] = []

    def put(key: bytes, value: bytes) -> None:
        expect(store.put([(key, value)])[0].ok, "a value was not stored")

    def puts() -> list[Step]:
        if keys:
            store.purge(keys)
        keys[:] = [os.urandom(32) for _ in values]
        return [lambda key=key, value=value: put(key, value) for key, value in zip(keys, values, strict=True)]

    def get(key: bytes, value: bytes) -> None:
        expect(store.get([key])[0].data == value, "a value did not come back as it was stored")

    def gets() -> list[Step]:
        return [lambda key=key, value=value: get(key, value) for key, value in zip(keys, values, strict=True)]

    return {f"PUT 2.9 MB{after}": Operation(len(values), puts), f"GET 2.9 MB{after}": Operation(len(values), gets)}


def look_ups(writer: SkyStore, reader: SkyStore) -> dict[str, Operation]:
    """Return the look-up of a chain by a host that has not heard of it."""
    chains: list[list[bytes]] = []

    def find(chain: list[bytes]) -> None:
        expect(len(reader.find_longest(chain).entries) == CHAIN_BLOCKS, "a look-up did not find the whole chain")

    def before() -> list[Step]:
        chains[:] = [[os.urandom(32) for _ in range(CHAIN_BLOCKS)] for _ in range(CHAINS)]
        for chain in chains:
            expect(all(one.ok for one in writer.put([(key, SMALL) for key in chain])), "a chain was not stored")
        return [lambda chain=chain: find(chain) for chain in chains]

    def after() -> None:
        for chain in chains:
            writer.purge(chain)

    return {f"look-up of {CHAIN_BLOCKS} blocks": Operation(CHAINS, before, after)}


# --- the gateway -------------------------------------------------------------------------------------------------------------


def resp(*words: bytes) -> bytes:
    """Return a command as Redis clients send it."""
    return b"".join([b"*%d\r\n" % len(words), *(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)])


def ask(gateway: socket.socket, command: bytes, answer: bytes) -> None:
    """Send a command and wait for the one right answer."""
    gateway.sendall(command)
    got = b""
    while len(got) < len(answer):
        more = gateway.recv(4096)
        expect(bool(more), "the gateway closed the connection")
        got += more
        expect(answer.startswith(got), f"the gateway answered {got!r} to {command!r}")


def commands(gateway: socket.socket) -> dict[str, Operation]:
    """Return SET and GET of small values, one at a time."""
    names = [b"name:%d" % (number % NAMES) for number in range(COMMANDS)]
    sets = [resp(b"SET", name, SMALL) for name in names]
    gets = [resp(b"GET", name) for name in names]
    value = b"$%d\r\n%s\r\n" % (len(SMALL), SMALL)
    for one in sets[:NAMES]:
        ask(gateway, one, b"+OK\r\n")
    return {
        "SET 3 B, gateway": Operation(
            COMMANDS, lambda: [lambda one=one: ask(gateway, one, b"+OK\r\n") for one in sets], own=False
        ),
        "GET 3 B, gateway": Operation(COMMANDS, lambda: [lambda one=one: ask(gateway, one, value) for one in gets], own=False),
    }


@contextmanager
def agent(skymem: str, file: Path, folder: Path) -> Iterator[tuple[int, socket.socket]]:
    """Run an agent, which ends with this process; yield its pid and a connection to its gateway."""
    port = free_tcp_port()
    command = [skymem, "agent", "--constellation", str(file), "--resp-port", str(port)]
    around = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    around |= {"SKYMEM_STATE": str(folder)}
    with (folder / "agent.log").open("wb") as log:
        child = subprocess.Popen(guarded(command), stdin=own_leash().end, stdout=log, stderr=subprocess.STDOUT, env=around)
    try:
        with connected(port, child, folder / "agent.log") as gateway:
            yield child.pid, gateway
    finally:
        child.terminate()
        child.wait()


def connected(port: int, child: subprocess.Popen[bytes], log: Path) -> socket.socket:
    """Return a connection to a gateway that answers."""
    end_s = time.monotonic() + DEADLINE_S
    while time.monotonic() < end_s:
        expect(child.poll() is None, f"the agent ended: {log.read_text(errors='replace')[-1000:]}")
        try:
            gateway = socket.create_connection(("127.0.0.1", port), DEADLINE_S)
        except OSError:
            time.sleep(0.05)
            continue
        gateway.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        gateway.sendall(resp(b"SET", b"name:0", SMALL))
        if gateway.recv(4096) == b"+OK\r\n":
            return gateway
        gateway.close()  # it is not ready yet
        time.sleep(0.05)
    raise RuntimeError("the agent's gateway did not answer")


def free_tcp_port() -> int:
    for port in random.sample(PORTS, 64):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no TCP port is free")


# --- all of it ---------------------------------------------------------------------------------------------------------------


def skies(file: Path) -> tuple[Constellation, Constellation | None]:
    """Write a constellation file. Return its constellation, and one with parity; None if this build knows no parity."""
    has_parity = hasattr(Constellation().cache, "parity")
    cache = {"servers": SERVERS, "centre": CENTRE, "deadline_ms": 10_000} | ({"parity": 0} if has_parity else {})
    sections: dict[str, dict[str, object]] = {"constellation": GRID, "cache": cache}
    sections["network"] = {"port": free_port(Constellation().replace(**sections))}
    lines = [
        f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
        for name, keys in sections.items()
    ]
    file.write_text("\n".join(lines))
    plain = Constellation.load(file)
    return plain, plain.replace(cache={"servers": SERVERS + PARITY, "parity": PARITY}) if has_parity else None


@contextmanager
def operations(skymem: str) -> Iterator[tuple[Processes, dict[str, Operation]]]:
    """Start satellites and agent; yield the processes and all operations by name."""
    values = [os.urandom(VALUE_BYTES) for _ in range(VALUES)]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        plain, coded = skies(folder / "constellation.toml")
        local = stack.enter_context(LocalConstellation(plain))
        pid, gateway = stack.enter_context(agent(skymem, folder / "constellation.toml", folder))
        store, reader = (stack.enter_context(SkyStore(plain)) for _ in range(2))
        found = moves(store, values, "")
        if coded is not None:
            found |= moves(stack.enter_context(SkyStore(coded)), values, ", parity")
        found |= commands(gateway) | look_ups(store, reader)
        yield Processes([clock_of(process.pid) for process in local.processes.values()], clock_of(pid)), found


def serve(lines: Iterable[str], skymem: str) -> None:
    with operations(skymem) as (processes, found):
        print(json.dumps(list(found)), flush=True)
        for line in lines:
            print(json.dumps(found[line.strip()].measure(processes)), flush=True)


def main() -> int:
    packages, skymem = sys.argv[1:]
    found = Path(skymemory.__file__).resolve()
    expect(found.is_relative_to(Path(packages).resolve()), f"the package is taken from {found.parent}, not from {packages}")
    serve(sys.stdin, skymem)
    return 0


if __name__ == "__main__":
    sys.exit(main())
