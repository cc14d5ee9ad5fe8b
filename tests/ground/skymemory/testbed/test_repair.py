"""Satellites of a sky that does not turn repair blocks with parity by themselves."""

import os
from collections.abc import Callable
from secrets import token_bytes

from skymemory.link.control import ControlPlane
from skymemory.sky.entry_satellites import Route
from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.address import Satellite
from support.waiting import wait_until


def test_a_satellite_that_restarts_gets_its_shares_back(start_sky: Callable[..., LocalConstellation]) -> None:
    """Nobody asks for the blocks, and nobody has a schedule. Afterwards two others may be lost."""
    local = start_sky(satellite={"scrub_s": 1}, cache={"servers": 12, "parity": 2, "deadline_ms": 20_000})
    routes = [Route(satellite, satellite) for satellite in local.constellation.torus.satellites()]
    data = {token_bytes(32): os.urandom(100_001 - 17 * i) for i in range(4)} | {bytes(32): b"small"}  # at the first three servers
    with SkyStore(local.constellation) as store, ControlPlane(local.constellation) as control:

        def counted(name: str) -> dict[Satellite, int]:
            return {place: stats[name] for place, stats in control.store_stats(routes, 10).items()}

        assert all(result.ok for result in store.put(list(data.items())))
        chunks = counted("chunks")
        first, *others = Whereabouts(local.constellation).servers(0)[:3]
        assert chunks[first] >= len(data)
        local.kill(first)
        local.restart(first)
        wait_until(lambda: counted("chunks") == chunks)
        assert sum(counted("repaired").values()) >= chunks[first]
        assert not any(sum(counted(name).values()) for name in ("scrubbed", "purges", "evictions"))
        for place in others:
            local.kill(place)
        assert [result.data for result in store.get(list(data))] == list(data.values())
