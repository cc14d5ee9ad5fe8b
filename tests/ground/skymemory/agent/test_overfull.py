"""An engine on an overfull sky: what its agent finds comes. Nothing it may count on was evicted."""

import os
import random
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256

from skymemory.agent.client import AgentClient
from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess
from support.waiting import PATIENCE_S

BLOCK = 100_000


def chain(name: object, length: int) -> list[bytes]:
    return [sha256(f"{__name__} {name} {index}".encode()).digest() for index in range(length)]


def store(client: AgentClient, keys: list[bytes]) -> None:
    leases = [client.lease(BLOCK) for _ in keys]
    pairs = [(key, lease) for key, lease in zip(keys, leases, strict=True) if lease is not None]
    for _, lease in pairs:
        lease.view[:] = os.urandom(BLOCK)
    assert all(outcome.ok for outcome in client.put(pairs).result(PATIENCE_S))
    for _, lease in pairs:
        lease.release()


def load(client: AgentClient, keys: list[bytes]) -> set[str]:
    leases = [client.lease(BLOCK) for _ in keys]
    pairs = [(key, lease) for key, lease in zip(keys, leases, strict=True) if lease is not None]
    statuses = {outcome.status for outcome in client.get(pairs).result(PATIENCE_S)}
    for _, lease in pairs:
        lease.release()
    return statuses


def test_what_is_found_comes(start_sky: Callable[..., LocalConstellation], start_agent: Callable[..., AgentProcess]) -> None:
    # Room for 83 blocks or so. With this delay nobody is in a hurry, unless the machine stands still
    agent = start_agent(start_sky(satellite={"store_mib": 1}, links={"delay_us": 30_000}))
    draw = random.Random(2)
    with closing(agent.client(block_bytes=BLOCK)) as client:
        assert client.wait_connected(PATIENCE_S)
        shorter = missed = 0
        stored: set[bytes] = set()
        for _ in range(50):
            common, user = draw.randrange(3), draw.randrange(8)
            keys = chain(common, 6) + chain((common, user), 4 * draw.randrange(1, 4))
            cached = draw.choice([0, 0, 2])  # of these the engine takes none, and so the sky forgets them first
            found = client.find(keys, cached=cached).result(PATIENCE_S)
            shorter += found.blocks < len(stored.intersection(keys))
            missed += not load(client, keys[cached : found.blocks]) <= {"done"}
            store(client, keys[found.blocks :])
            stored |= set(keys)
        assert shorter > 5  # much was evicted meanwhile
        assert missed <= 3  # were the index believed, a third of the lookups and more
