"""An engine purges 16,384 names at once, so that others wait."""

import os
import time
from collections.abc import Callable

from skymemory.agent.protocol import BLOCKS_MAX
from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess
from support.waiting import PATIENCE_S


def test_a_purge_of_all_names_holds_nobody_up(start_agent: Callable[..., AgentProcess], full_sky: LocalConstellation) -> None:
    agent = start_agent(full_sky)
    names = [os.urandom(32) for _ in range(BLOCKS_MAX)]
    with agent.client() as purger, agent.client() as other:
        assert purger.wait_connected(PATIENCE_S)
        assert other.wait_connected(PATIENCE_S)
        asked = [os.urandom(32) for _ in range(4)]
        other.look_up(asked, chain=False, fresh=True, block_bytes_max=0).result(PATIENCE_S)
        start_s = time.monotonic()
        purged = purger.purge(names)
        longest_s, rounds = 0.0, 0
        while not purged.done():
            began_s = time.monotonic()
            other.look_up(asked, chain=False, fresh=True, block_bytes_max=0).result(PATIENCE_S)
            longest_s = max(longest_s, time.monotonic() - began_s)
            rounds += 1
        whole_s = time.monotonic() - start_s
    print(f"purge of {len(names)} names {whole_s:.2f} s; {rounds} questions of another engine, the longest {longest_s:.3f} s")
    assert purged.result().confirmed
    assert rounds > 20
    assert longest_s < whole_s / 5
