"""Nothing leaks: file descriptors and shared memory of an agent over a thousand bad events."""

import os
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256

from skymemory.testbed.local import LocalConstellation
from support import bad_clients, bad_engines
from support.agents import AgentProcess
from support.waiting import PATIENCE_S, wait_until

BLOCK = 100_000
KEY = sha256(__name__.encode()).digest()
OPENED_LATER = 8
"""descriptors that parts open once, when they first need them; of an event that leaks there would be a hundred"""

EVENTS = [*bad_engines.EVENTS, *bad_clients.EVENTS]


def test_nothing_leaks(start_agent: Callable[..., AgentProcess], full_sky: LocalConstellation) -> None:
    """A good engine works on beside them, and gets what it asks for."""
    agent = start_agent(full_sky, "--resp-port", "0")
    with closing(agent.client(block_bytes=BLOCK)) as good:
        assert good.wait_connected(PATIENCE_S)
        data = os.urandom(BLOCK)
        with good.lease(BLOCK) as lease:  # type: ignore[union-attr]
            lease.view[:] = data
            assert good.put([(KEY, lease)]).result(PATIENCE_S)[0].ok
        for event, _ in EVENTS:  # what is opened once and stays is open now
            event(agent)

        def counts() -> tuple[int, int]:
            return agent.open_files(), agent.shared_bytes()

        wait_until(lambda: agent.metric('skymem_engine_arena_bytes{engine="vllm"}') == 1 << 24, "only the good engine is left")
        wait_until(lambda: counts()[1] == 1 << 24, "and its memory")
        before = counts()
        done = 0
        for event, times in EVENTS:
            for _ in range(times):
                event(agent)
            done += times
            with good.lease(BLOCK) as lease:  # type: ignore[union-attr]
                assert good.get([(KEY, lease)]).result(PATIENCE_S)[0].ok, event.__name__
                assert lease.view == data
        assert done >= 1000
        wait_until(
            lambda: counts()[0] <= before[0] + OPENED_LATER and counts()[1] == before[1],
            lambda: f"as many descriptors and as much shared memory as before, {before}; now {counts()}",
        )
        assert good.connected
    assert "Traceback" not in agent.log.read_text()
