"""`skymem bench peers`: measures PUT and GET of values of the size of a KV block, beside Redis and memcached.

All three hold the same values in memory on this machine and are asked in turn, one value a call, so other load on the machine
affects all alike. Every PUT is of a key that is not there, and the key is deleted after its GET, so that all work with memory
they have used before. The three do not do the same work: SkyMemory cuts each value into chunks on ten processes and checks a
CRC-32C of each and a checksum of each packet; the others trust TCP.
"""

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from skymemory.bench.peer_servers import memcached_client, redis_client
from skymemory.common.progress import Progress, no_progress
from skymemory.sky.constellation import Constellation
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation, free_port
from skymemory.wire.packets import KEY_BYTES

VALUE_BYTES = 22 * 2 * 4 * 64 * 128 * 2
"""Bytes of a block of 128 tokens of TinyLlama-1.1B in fp16: layers, K and V, heads, head size, tokens, bytes: 2.88 MB."""
VALUES = 8
ROUNDS = 5
WARM_UP_ROUNDS = 1


class Peer(NamedTuple):
    """The calls of a key-value store to measure."""

    put: Callable[[bytes, bytes], object]
    """Function that stores a value, and returns when it is stored."""
    get: Callable[[bytes], object]
    """Function that returns the value of a key as a bytes-like object, or None."""
    delete: Callable[[bytes], object]


@dataclass
class Speed:
    """Durations of calls, in seconds."""

    put_s: list[float] = field(default_factory=list)
    get_s: list[float] = field(default_factory=list)
    wrong: int = 0
    """Answers that differed from the stored value."""

    def mb_s(self, what: str, value_bytes: int) -> float:
        """Return the median speed over all calls of `what` ("put" or "get"), in 1e6 bytes a second."""
        return value_bytes / statistics.median(self.put_s if what == "put" else self.get_s) / 1e6


def _measured_sky(constellation: Constellation) -> Constellation:
    """Return the local constellation to measure: ten servers, 6,000-byte chunks, ideal links, a port of its own."""
    grid = {"planes": constellation.planes, "slots": constellation.slots}
    cache = {"layout": constellation.cache.layout, "centre": constellation.cache.centre, "deadline_ms": 10_000}
    plain = Constellation().replace(constellation=grid, cache=cache)
    return plain.replace(network={"port": free_port(plain)})


def run_peers_bench(
    constellation: Constellation,
    value_bytes: int = VALUE_BYTES,
    values: int = VALUES,
    rounds: int = ROUNDS,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """Measure all three stores.

    Returns:
        The object that `--json` prints: medians in MB/s (1e6 bytes) and ratios to each peer.

    Raises:
        ServerError: Redis or memcached is missing.
        StartError: The constellation does not start.
    """
    data = [os.urandom(value_bytes) for _ in range(values)]
    with _peers(constellation, values * value_bytes) as peers:
        speeds = {name: Speed() for name in peers}
        total = (WARM_UP_ROUNDS + rounds) * values
        for step in range(total):
            # The order changes from step to step, so that no store always runs after the same other one.
            names = sorted(peers, key=lambda name: (list(peers).index(name) + step) % len(peers))
            kept = step >= WARM_UP_ROUNDS * values
            key = os.urandom(KEY_BYTES)
            for name in names:
                _measure(peers[name], key, data[step % values], speeds[name] if kept else Speed())
            progress(step + 1, total)
    return _report(speeds, value_bytes, values, rounds)


@contextmanager
def _peers(constellation: Constellation, bytes_held: int) -> Iterator[dict[str, Peer]]:
    with ExitStack() as stack:
        redis = stack.enter_context(redis_client())
        memcached = stack.enter_context(memcached_client(64 + 2 * (bytes_held >> 20)))
        sky = _measured_sky(constellation)
        stack.enter_context(LocalConstellation(sky))
        store = stack.enter_context(SkyStore(sky))
        yield {
            "skymem": Peer(
                lambda key, value: store.put([(key, value)]), lambda key: store.get([key])[0].data, lambda key: store.purge([key])
            ),
            "redis": Peer(redis.set, redis.get, redis.delete),
            "memcached": Peer(
                lambda key, value: memcached.set(key.hex(), value),
                lambda key: memcached.get(key.hex()),
                lambda key: memcached.delete(key.hex()),
            ),
        }


def _measure(peer: Peer, key: bytes, value: bytes, speed: Speed) -> None:
    start = time.perf_counter()
    peer.put(key, value)
    middle = time.perf_counter()
    answer = peer.get(key)
    end = time.perf_counter()
    speed.put_s.append(middle - start)
    speed.get_s.append(end - middle)
    speed.wrong += answer != value
    peer.delete(key)


def _report(speeds: dict[str, Speed], value_bytes: int, values: int, rounds: int) -> dict[str, Any]:
    report: dict[str, Any] = {
        name: {f"{what}_mb_s": round(speed.mb_s(what, value_bytes), 1) for what in ("put", "get")}
        for name, speed in speeds.items()
    }
    report["ratio"] = {
        name: {what: round(report["skymem"][f"{what}_mb_s"] / report[name][f"{what}_mb_s"], 2) for what in ("put", "get")}
        for name in speeds
        if name != "skymem"
    }
    report |= {"value_bytes": value_bytes, "values": values, "rounds": rounds}
    report["wrong"] = {name: speed.wrong for name, speed in speeds.items()}
    return report
