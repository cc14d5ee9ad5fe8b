"""What stand-ins took while satellites were away goes home, so that others may be lost afterwards."""

from collections.abc import Callable

import pytest

from skymemory.link.control import ControlPlane
from skymemory.sky.entry_satellites import Route
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from support.spread import shares_of
from support.waiting import wait_until

KEY = bytes(32)
VALUE = b"of one chunk, and two copies of it"


@pytest.mark.parametrize("layout", ["rotation_hop", "hop"])
def test_homes_that_are_back_get_what_stand_ins_keep(start_sky: Callable[..., LocalConstellation], layout: str) -> None:
    local = start_sky(cache={"servers": 9, "parity": 2, "layout": layout, "deadline_ms": 2000})
    homes = shares_of(local.constellation, KEY, len(VALUE))
    routes = [Route(satellite, satellite) for satellite in local.constellation.torus.satellites()]
    with SkyStore(local.constellation) as store, ControlPlane(local.constellation) as control:

        def counted(name: str) -> int:
            return sum(stats[name] for stats in control.store_stats(routes, 10).values())

        for home in homes[:2]:
            local.kill(home)
        wait_until(lambda: store.put([(KEY, VALUE)])[0].lost == 0, "the host knows who stands in")
        assert counted("hints") == 2
        for home in homes[:2]:
            local.restart(home)
        wait_until(lambda: counted("hints") == 0, "stand-ins have handed over what they kept")
        assert counted("hints_lost") == 0
        # The stand-ins keep what has gone home for a minute more, so a get alone would not show where it is
        at_home = control.store_stats([Route(home, home) for home in homes[:2]], 10)
        assert [stats["chunks"] for stats in at_home.values()] == [1, 1]
        local.kill(homes[2])
    with SkyStore(local.constellation) as other:
        assert other.get([KEY])[0].data == VALUE
