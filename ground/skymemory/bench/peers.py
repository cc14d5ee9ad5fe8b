"""`skymem bench peers`: measures PUT and GET of values of the size of a KV block, beside Redis and memcached.

All hold the same values in memory on this machine and are asked in turn, one value a call, so other load on the machine affects
all alike. Every PUT is of a key that is not there, the key is deleted after its GET, and this process keeps what it frees, so
that all work with memory they have used before. They do not do the same work: SkyMemory cuts each value into chunks on ten
processes and checks a CRC-32C of each and a checksum of each packet; the others trust TCP.

SkyMemory is measured without a keyring, with tags of headers and with tags of whole packets, each with values as they are and
sealed. Those with tags ask the same satellites, which grant each host the suite that it wants. Sealing happens in the memory of
the value, as the tools do it that put blocks of a KV cache.

Without a keyring SkyMemory is also measured on twelve servers, two of them with parity, beside ten servers without it. Both have
ten chunks of data in a row.
"""

import ctypes
import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from skymemory.bench.peer_servers import memcached_client, redis_client
from skymemory.common.progress import Progress, no_progress
from skymemory.security.keyring import HostRecord
from skymemory.security.mission_folder import begin_mission, mission_file
from skymemory.sky.constellation import Constellation
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.leash import leashed_folder
from skymemory.testbed.local import LocalConstellation, free_port
from skymemory.testbed.processes import cpu_clock
from skymemory.wire.envelope import ENVELOPE_BYTES, BlockError, Kind, seal_in_place, unseal
from skymemory.wire.key_derivation import root_key, seal_keys
from skymemory.wire.packets import KEY_BYTES

VALUE_BYTES = 22 * 2 * 4 * 64 * 128 * 2
"""Bytes of a block of 128 tokens of TinyLlama-1.1B in fp16: layers, K and V, heads, head size, tokens, bytes: 2.88 MB."""
VALUES = 8
ROUNDS = 5
WARM_UP_ROUNDS = 1
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
"""Options of mallopt(3)."""
_KEPT_BYTES: Final = 32 << 20
"""Most bytes that mallopt(3) takes."""
OFF: Final = "skymem"
"""Name in the report of SkyMemory without a keyring and with values as they are."""
SEALED: Final = "_sealed"
"""End of the names of those with sealed values."""
SUITES: Final = {f"{OFF}_header": "gmac_header", f"{OFF}_packet": "gmac_packet"}
"""Names in the report of SkyMemory with a keyring, and the suite that each asks for. Without OpenSSL satellites grant BLAKE2b."""
CODED: Final = f"{OFF}_parity"
"""Name in the report of SkyMemory without a keyring and with parity."""
_SERVERS: Final = 10
"""Servers without parity."""
PARITY: Final = 2
"""Servers with parity, beside as many others as there are without it."""


class Peer(NamedTuple):
    """The calls of a key-value store to measure, and its processes."""

    prepare: Callable[[bytes], Any]
    """Function that returns a value in the memory that `put` takes; this is not measured."""
    put: Callable[[bytes, Any], object]
    """Function that stores a value, and returns when it is stored. It may change the value's memory."""
    get: Callable[[bytes], object]
    """Function that returns the value of a key as a bytes-like object, or None."""
    delete: Callable[[bytes], object]
    clocks: tuple[int, ...]
    """Clocks of the processor time of its processes other than this one."""

    def cpu_s(self) -> float:
        """Return the processor time of all its processes and of this one, in seconds."""
        return time.process_time() + sum(map(time.clock_gettime, self.clocks))


@dataclass
class Speed:
    """Durations and processor times of calls, in seconds. The latter are of all processes together."""

    put_s: list[float] = field(default_factory=list)
    get_s: list[float] = field(default_factory=list)
    put_cpu_s: list[float] = field(default_factory=list)
    get_cpu_s: list[float] = field(default_factory=list)
    wrong: int = 0
    """Answers that differed from the stored value."""

    def told(self, value_bytes: int) -> dict[str, float]:
        """Return the medians over all calls: speed in 1e6 bytes a second, processor time in milliseconds."""
        return {
            "put_mb_s": round(value_bytes / statistics.median(self.put_s) / 1e6, 1),
            "get_mb_s": round(value_bytes / statistics.median(self.get_s) / 1e6, 1),
            "put_cpu_ms": round(1000 * statistics.median(self.put_cpu_s), 3),
            "get_cpu_ms": round(1000 * statistics.median(self.get_cpu_s), 3),
        }


def _measured_sky(constellation: Constellation, keyring: str, parity: int) -> Constellation:
    """Return the local constellation to measure: ten servers and those of parity, 6,000-byte chunks, ideal links, an own port."""
    grid = {"planes": constellation.planes, "slots": constellation.slots}
    cache = {"layout": constellation.cache.layout, "centre": constellation.cache.centre, "deadline_ms": 10_000}
    plain = Constellation().replace(constellation=grid, cache=cache)
    plain = plain.replace(cache={"servers": _SERVERS + parity, "parity": parity})
    return plain.replace(network={"port": free_port(plain)}, security={"keyring": keyring})


def run_peers_bench(
    constellation: Constellation,
    value_bytes: int = VALUE_BYTES,
    values: int = VALUES,
    rounds: int = ROUNDS,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Measure all three stores, SkyMemory in all its ways.

    Returns:
        The object that `--json` prints: medians in MB/s (1e6 bytes), milliseconds of processor time of all processes together,
        ratios to each peer, and how much more processor time security and parity take, in percent.

    Raises:
        ServerError: Redis or memcached is missing.
        StartError: The constellation does not start.
    """
    _keep_freed_memory()
    data = [os.urandom(value_bytes) for _ in range(values)]
    with _peers(constellation, value_bytes, values) as (peers, stores):
        speeds = {name: Speed() for name in peers}
        total = (WARM_UP_ROUNDS + rounds) * values
        for step in range(total):
            kept = step >= WARM_UP_ROUNDS * values
            for name in _order(peers, step):
                _measure(peers[name], data[step % values], speeds[name] if kept else Speed())
            progress(step + 1, total)
        used = {name: sorted(store.suites()) for name, store in stores.items()}
    return _report(speeds, value_bytes) | {"suites": used, "value_bytes": value_bytes, "values": values, "rounds": rounds}


def _keep_freed_memory() -> None:
    """Tell the C library to keep memory that this process frees, else the page faults of each value cost more than security."""
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):  # glibc has it, other libraries need not
        for option in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
            library.mallopt(option, _KEPT_BYTES)


def _order(names: Iterable[str], step: int) -> list[str]:
    """Return the names in another order for each step, and in both directions, so that none always runs after the same other."""
    order = list(names)
    start = step // 2 % len(order)
    order = order[start:] + order[:start]
    return order if step % 2 else order[::-1]


@contextmanager
def _peers(constellation: Constellation, value_bytes: int, values: int) -> Iterator[tuple[dict[str, Peer], dict[str, SkyStore]]]:
    """Start all; yield what is measured, and the stores of SkyMemory by the names of those that take values as they are."""
    with ExitStack() as stack:
        redis = stack.enter_context(redis_client())
        memcached = stack.enter_context(memcached_client(64 + 2 * (values * value_bytes >> 20)))
        keys = stack.enter_context(leashed_folder()) / "keys"
        begin_mission(keys, constellation.planes, constellation.slots, HostRecord(name="bench", tenants=(0,)))
        stores: dict[str, SkyStore] = {}
        peers: dict[str, Peer] = {}
        ways = (({OFF: "auto"}, "", 0), (SUITES, str(mission_file(keys)), 0), ({CODED: "auto"}, "", PARITY))
        for suites, keyring, parity in ways:
            sky = _measured_sky(constellation, keyring, parity)
            local = stack.enter_context(LocalConstellation(sky))  # the next one looks for a port when this one has its own
            clocks = tuple(cpu_clock(process.pid) for process in local.processes.values())
            for name, suite in suites.items():
                store = stack.enter_context(SkyStore(sky.replace(security={"suite": suite}), tenant_secret=b""))
                stores[name], peers[name] = store, _plain(store, clocks)
                peers[name + SEALED] = _sealed(store, clocks, value_bytes)
        peers["redis"] = Peer(bytes, redis.set, redis.get, redis.delete, (cpu_clock(redis.info()["process_id"]),))
        peers["memcached"] = Peer(
            bytes,
            lambda key, value: memcached.set(key.hex(), value),
            lambda key: memcached.get(key.hex()),
            lambda key: memcached.delete(key.hex()),
            (cpu_clock(int(memcached.stats()[b"pid"])),),
        )
        yield peers, stores


def _plain(store: SkyStore, clocks: tuple[int, ...]) -> Peer:
    """Return the calls of a store that takes values as they are."""
    return Peer(
        bytearray,
        lambda key, value: store.put([(key, value)]),
        lambda key: store.get([key])[0].data,
        lambda key: store.purge([key]),
        clocks,
    )


def _sealed(store: SkyStore, clocks: tuple[int, ...], value_bytes: int) -> Peer:
    """Return the calls of a store that seals values and opens them, both in their memory."""
    keys = seal_keys(root_key("bench", b""))

    def with_room(value: bytes) -> bytearray:
        return bytearray(ENVELOPE_BYTES) + value

    def put(key: bytes, block: bytearray) -> None:
        seal_in_place(Kind.PROMPT, key, memoryview(block), b"", keys=keys)
        store.put([(key, block)])

    def get(key: bytes) -> memoryview | None:
        block = store.get([key])[0].data
        try:
            return None if block is None else unseal(Kind.PROMPT, key, block, keys=keys).body
        except BlockError:
            return None

    return Peer(with_room, put, get, lambda key: store.purge([key]), clocks)


def _measure(peer: Peer, value: bytes, speed: Speed) -> None:
    key, given = os.urandom(KEY_BYTES), peer.prepare(value)
    before_s = peer.cpu_s()
    start = time.perf_counter()
    peer.put(key, given)
    middle = time.perf_counter()
    between_s = peer.cpu_s()
    again = time.perf_counter()
    answer = peer.get(key)
    end = time.perf_counter()
    after_s = peer.cpu_s()
    speed.put_s.append(middle - start)
    speed.get_s.append(end - again)
    speed.put_cpu_s.append(between_s - before_s)
    speed.get_cpu_s.append(after_s - between_s)
    speed.wrong += answer != value
    peer.delete(key)


def _report(speeds: dict[str, Speed], value_bytes: int) -> dict[str, Any]:
    report: dict[str, Any] = {name: speed.told(value_bytes) for name, speed in speeds.items()}
    report["ratio"] = {
        name: {what: round(report[OFF][f"{what}_mb_s"] / report[name][f"{what}_mb_s"], 2) for what in ("put", "get")}
        for name in speeds
        if not name.startswith(OFF)
    }
    report["cpu_more_percent"] = {
        name: {what: _more_percent(report[name], report[OFF], f"{what}_cpu_ms") for what in ("put", "get")}
        for name in speeds
        if name.startswith(OFF) and name != OFF
    }
    report["wrong"] = {name: speed.wrong for name, speed in speeds.items()}
    return report


def _more_percent(one: dict[str, float], base: dict[str, float], what: str) -> float:
    return round(100 * (one[what] / base[what] - 1), 1)
