"""`SkyStore` in a window over all planes: a whole plane is lost, and nothing else."""

import os
from collections.abc import Callable
from secrets import token_bytes

import pytest

from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.address import Satellite

StartSky = Callable[..., LocalConstellation]
SIZES = [1, 6000, 6001, 90_000, 96_000, 96_001, 500_003]
CODED = {"layout": "all_planes", "servers": 20, "parity": 4, "deadline_ms": 20_000}


@pytest.mark.parametrize("plane", [3, 5])
def test_a_plane_is_lost(start_sky: StartSky, plane: int) -> None:
    local = start_sky(constellation={"planes": 5, "slots": 7}, cache={**CODED, "centre": [3, 4]})
    sky = local.constellation
    servers = [one for one in Whereabouts(sky).servers(0) if one.plane == plane]
    assert len(servers) == 4
    items = {token_bytes(32): os.urandom(size) for size in SIZES}
    with SkyStore(sky) as store, SkyStore(sky) as other:
        assert all(one.ok for one in store.put(list(items.items())))
        for slot in range(1, 8):
            local.kill(Satellite(plane, slot))
        for host in (store, other):
            assert [(one.status, one.data) for one in host.get(list(items))] == [("done", data) for data in items.values()]
            assert (host.stats().misses, host.stats().purges) == (0, 0)
        more = {token_bytes(32): os.urandom(size) for size in SIZES}
        assert all(one.ok for one in store.put(list(more.items())))
        assert [one.data for one in other.get(list(more))] == list(more.values())
