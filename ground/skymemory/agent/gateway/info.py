"""INFO: the fields of Redis that have a meaning here, and those of the sky.

A tenant is told its own numbers only. What belongs to the process, such as its memory and processor time, moves with what all
clients do, so it is on the agent's HTTP port alone.
"""

from __future__ import annotations

import os
import platform
import secrets
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final

from skymemory.agent.gateway.client import Client
from skymemory.agent.gateway.replies import encode
from skymemory.agent.gateway.server_commands import POLICY, REDIS_VERSION, fellows
from skymemory.store.keyvalue import now_unix_ms

_ALL: Final = frozenset(("all", "everything"))
_DEFAULT: Final = "default"
_ON_REQUEST: Final = frozenset(("commandstats",))
"""Sections that are told only if they are named, or all are asked for."""
_RUN_ID: Final = secrets.token_hex(20)
_VERSION: Final = version("skymemory")
"""Read once: to ask the system and the disk again for each INFO would hold up all clients."""
_OS: Final = f"{platform.system()} {platform.release()} {platform.machine()}"
_ARCH_BITS: Final = 8 * struct.calcsize("P")
_UNITS: Final = ("B", "K", "M", "G")

Section = dict[str, object]


def info(client: Client, args: Sequence[Any]) -> None:
    """Tell numbers of the client's tenant: those that people read, all, or the sections that are named."""
    asked = {word.lower().decode("utf-8", "replace") for word in args[1:]} or {_DEFAULT}
    if _DEFAULT in asked:
        asked |= {name.lower() for name in _SECTIONS} - _ON_REQUEST
    sections = {name: tell(client) for name, tell in _SECTIONS.items() if asked & _ALL or name.lower() in asked}
    text = "\r\n".join(
        f"# {name}\r\n" + "".join(f"{field}:{value}\r\n" for field, value in fields.items()) for name, fields in sections.items()
    )
    client.slot().answer(encode(text, client.session.protocol))


def _server(client: Client) -> Section:
    shared = client.shared
    up_s = int(time.monotonic() - shared.started_s)
    return {
        "redis_version": REDIS_VERSION,
        "redis_mode": "standalone",
        "skymemory_version": _VERSION,
        "os": _OS,
        "arch_bits": _ARCH_BITS,
        "multiplexing_api": "epoll",
        "process_id": os.getpid(),
        "run_id": _RUN_ID,
        "tcp_port": shared.port,
        "server_time_usec": time.time_ns() // 1000,
        "uptime_in_seconds": up_s,
        "uptime_in_days": up_s // 86_400,
        "config_file": "",
        "io_threads_active": 0,
    }


def _clients(client: Client) -> Section:
    return {
        "connected_clients": len(fellows(client)),
        "cluster_connections": 0,
        "maxclients": client.shared.clients_max,
        "blocked_clients": 0,
        "tracking_clients": 0,
        "clients_in_timeout_table": 0,
    }


def _memory(client: Client) -> Section:
    used_bytes, most_bytes = sum(one.used_bytes() for one in fellows(client)), client.shared.memory.limit_bytes
    system_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "used_memory": used_bytes,
        "used_memory_human": _human(used_bytes),
        "total_system_memory": system_bytes,
        "total_system_memory_human": _human(system_bytes),
        "maxmemory": most_bytes,
        "maxmemory_human": _human(most_bytes),
        "maxmemory_policy": POLICY,
        "mem_clients_normal": used_bytes,
    }


def _persistence(client: Client) -> Section:
    return {
        "loading": int(client.shared.sky.is_loading),
        "async_loading": 0,
        "rdb_bgsave_in_progress": 0,
        "aof_enabled": 0,
        "aof_rewrite_in_progress": 0,
    }


def _stats(client: Client) -> Section:
    tally, directory = client.values.tally, client.values.directory
    rates = tally.rates(time.monotonic())
    return {
        "total_connections_received": tally.connections,
        "total_commands_processed": tally.commands,
        "instantaneous_ops_per_sec": round(rates.commands),
        "total_net_input_bytes": tally.received_bytes,
        "total_net_output_bytes": tally.sent_bytes,
        "instantaneous_input_kbps": f"{rates.received_bytes / 1024:.2f}",
        "instantaneous_output_kbps": f"{rates.sent_bytes / 1024:.2f}",
        "expired_keys": directory.expired,
        "evicted_keys": tally.lost,
        "keyspace_hits": tally.hits,
        "keyspace_misses": tally.misses,
        "pubsub_channels": 0,
        "pubsub_patterns": 0,
        "latest_fork_usec": 0,
        "total_error_replies": tally.errors.total(),
    }


def _error_statistics(client: Client) -> Section:
    return {f"errorstat_{kind}": f"count={count}" for kind, count in sorted(client.values.tally.errors.items())}


def _command_statistics(client: Client) -> Section:
    tally = client.values.tally
    found: Section = {}
    for name, durations in sorted(tally.durations.items()):
        calls, taken_us = sum(durations), int(1e6 * tally.sums_s[name])
        found[f"cmdstat_{name}"] = f"calls={calls},usec={taken_us},usec_per_call={taken_us / calls:.2f}"
    return found


def _sky(client: Client) -> Section:
    sky, values = client.shared.sky, client.values
    found: Section = {"reachable": int(sky.reachable)}
    if sky.store is not None:
        found |= {"value_bytes_max": values.value_bytes_max, "chunk_bytes": sky.store.constellation.cache.chunk_bytes}
    return found


def _keyspace(client: Client) -> Section:
    return {
        f"db{number}": f"keys={count},expires={expiring},avg_ttl={left_ms}"
        for number, (count, expiring, left_ms) in client.values.directory.counts(now_unix_ms()).items()
    }


def _human(count: float) -> str:
    """Return a number of bytes as Redis writes it."""
    for unit in _UNITS[:-1]:
        if count < 1024:
            return f"{count:.2f}{unit}" if unit != "B" else f"{count:.0f}B"
        count /= 1024
    return f"{count:.2f}{_UNITS[-1]}"


_SECTIONS: Final[Mapping[str, Callable[[Client], Section]]] = {
    "Server": _server,
    "Clients": _clients,
    "Memory": _memory,
    "Persistence": _persistence,
    "Stats": _stats,
    "Replication": lambda _: {"role": "master", "connected_slaves": 0, "master_repl_offset": 0},
    "Modules": lambda _: {},
    "Errorstats": _error_statistics,
    "Commandstats": _command_statistics,
    "Cluster": lambda _: {"cluster_enabled": 0},
    "Sky": _sky,
    "Keyspace": _keyspace,
}
"""Functions that make the sections, in the order of Redis."""
