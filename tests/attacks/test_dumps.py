"""Somebody has all satellites in his hands, and reads what they hold: the whole memory of their processes."""

import os
from collections.abc import Callable, Iterator
from secrets import token_bytes
from urllib.parse import urlsplit

import redis

from skymemory.store.keyvalue import KeyValue, ValueKeys
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess
from support.guarded_sky import GuardedSky
from support.waiting import PATIENT

PAGE = os.sysconf("SC_PAGESIZE")
PIECE = 1 << 16
OVERLAP = 4096
ZEROS = bytes(PIECE + OVERLAP)


def memory_of(pid: int) -> Iterator[bytes]:
    """Yield all that a process has written, in pieces that overlap."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            span, mode, *_ = line.split()
            start, end = (int(one, 16) for one in span.split("-"))
            if mode.startswith("rw"):
                for at in written(pid, start, end):
                    memory.seek(at)
                    yield memory.read(min(PIECE + OVERLAP, end - at))


def written(pid: int, start: int, end: int) -> Iterator[int]:
    """Yield the beginnings of the pieces of which a page is in memory."""
    with open(f"/proc/{pid}/pagemap", "rb", 0) as pages:
        pages.seek(start // PAGE * 8)
        for at in range(start, end, PIECE):
            entries = pages.read((min(PIECE, end - at) + PAGE - 1) // PAGE * 8)
            if any(entry & 0xC0 for entry in entries[7::8]):  # present, or swapped out
                yield at


def finds(sky: GuardedSky, *words: bytes) -> set[bytes]:
    """Return which of these words lie in the memory of any satellite."""
    found: set[bytes] = set()
    for process in sky.local.processes.values():
        for piece in memory_of(process.pid):
            if piece != ZEROS[: len(piece)]:
                found.update(word for word in words if word in piece)
    return found


def test_a_dump_of_all_stores_shows_no_plaintext_and_no_name(
    start_guarded: Callable[..., GuardedSky], start_agent: Callable[[LocalConstellation, str, str], AgentProcess]
) -> None:
    sky = start_guarded(
        is_keyed=True,
        constellation={"planes": 1, "slots": 3},
        cache={"servers": 3, "centre": [1, 2]},
        satellite={"store_mib": 1},
    )
    name, value = "name-" + token_bytes(16).hex(), b"value-" + token_bytes(16).hex().encode()
    redis_name, redis_value = b"redis-" + token_bytes(16).hex().encode(), token_bytes(40)
    with SkyStore(sky.constellation_of("alice"), timing=PATIENT) as store:
        assert KeyValue(store).put(name, value * 2000).ok
        key = ValueKeys(store.tenant_secret).key_of(name)
        secret = store.tenant_secret
    agent = start_agent(sky.local, "--resp-port", "0")
    with redis.Redis(port=urlsplit(agent.addresses["redis"]).port) as client:
        assert client.set(redis_name, redis_value * 300)
    plain = (name.encode(), value, value[:12], redis_name, redis_value, secret)
    assert finds(sky, *plain, key) == {key}  # the digest of the name is there, so it was looked at in the right place
