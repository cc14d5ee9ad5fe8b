"""Engines beside Redis clients that move much: one agent, one sky."""

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256

from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess
from support.waiting import PATIENCE_S

from .conftest import port_of
from .raw import RawClient, encoded

LARGE_BYTES = 260 << 20
BLOCK_BYTES = 100_000
ROUNDS = 5
"""one get takes long where the machine stands still meanwhile; not in each of them"""


def test_an_engine_does_not_wait_for_a_large_value(
    start_sky: Callable[..., LocalConstellation], start_agent: Callable[..., AgentProcess]
) -> None:
    sky = start_sky(satellite={"store_mib": 48}, cache={"deadline_ms": 60_000})
    agent = start_agent(sky, "--resp-port", "0")
    key = sha256(b"an engine's block").digest()
    with RawClient(port_of(agent)) as redis, closing(agent.client(block_bytes=BLOCK_BYTES)) as engine:
        assert engine.wait_connected(PATIENCE_S)
        lease = engine.lease(BLOCK_BYTES)
        assert lease is not None
        with lease:
            lease.view[:] = os.urandom(BLOCK_BYTES)
            assert engine.put([(key, lease)]).result(PATIENCE_S)[0].ok
            assert redis.ask("SET", "large", bytes(LARGE_BYTES)) == b"OK"

            def first_bytes() -> None:
                redis.send(encoded("GET", "large"))
                assert redis.socket.recv(1, socket.MSG_PEEK) == b"$"  # all of it has come from the sky by now

            def waited() -> float:
                """The longest time that a get of the engine's took, as a share of that which the large one takes."""
                took_s: list[float] = []
                waiting = threading.Thread(target=first_bytes)
                begun_s = time.perf_counter()
                waiting.start()
                while waiting.is_alive():
                    asked_s = time.perf_counter()
                    assert engine.get([(key, lease)]).result(PATIENCE_S)[0].ok
                    took_s.append(time.perf_counter() - asked_s)
                large_s = time.perf_counter() - begun_s
                assert redis.answer() is not None
                return max(took_s) / large_s

            assert any(waited() < 0.5 for _ in range(ROUNDS))
