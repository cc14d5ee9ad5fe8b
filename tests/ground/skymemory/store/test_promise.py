"""The promise to who reads values (docs/design.md): nothing older than what was acknowledged, and none absent that is there."""

from collections.abc import Callable
from threading import Event, Thread

import pytest

from skymemory.store.keyvalue import KeyValue
from skymemory.store.results import Status
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from support.paths import Paths
from support.spread import shares_of
from support.waiting import wait_until

StartSky = Callable[..., LocalConstellation]
LOOKS = 300
"""Look-ups beside puts: of so many several fall between two puts."""


@pytest.mark.parametrize("change", ["replaced", "deleted"])
def test_who_knows_an_older_version_is_told_the_newer_one(start_sky: StartSky, change: str) -> None:
    """A host that does not reach one home has a copy at a stand-in, which does not hear of what others put at that home."""
    local = start_sky(cache={"servers": 12, "parity": 2, "deadline_ms": 2000})
    with (
        Paths(local.constellation, 1) as paths,
        SkyStore(paths.skies[0]) as store,
        SkyStore(local.constellation) as other,
    ):
        here, there = KeyValue(store), KeyValue(other)
        names = [f"name {number}" for number in range(12)]
        [far, *_] = shares_of(local.constellation, here.key_of(names[0]))
        paths.cut(0, up=[far], down=[far])
        wait_until(lambda: here.put(names[0], b"old").ok and store.lost, "the host knows that it does not reach that home")
        told = []
        for name in names:
            assert here.put(name, b"old").ok
            assert there.put(name, b"new").ok if change == "replaced" else there.delete(name)
            told.append(here.fetch(name))
    wanted = (b"new", Status.DONE) if change == "replaced" else (None, Status.MISS)
    assert all(one == wanted or one[1] is Status.UNANSWERED for one in told), told


def test_a_value_that_is_replaced_meanwhile_is_there(full_sky: LocalConstellation) -> None:
    with SkyStore(full_sky.constellation) as store, SkyStore(full_sky.constellation) as other:
        here, there = KeyValue(store, "replaced"), KeyValue(other, "replaced")
        puts, is_over = [here.put("name", b"0")], Event()

        def put() -> None:
            while not is_over.is_set():
                puts.append(here.put("name", b"%d" % len(puts)))

        thread = Thread(target=put)
        thread.start()
        try:
            wait_until(lambda: len(puts) > 10)
            seen = [there.find(["name"])[0].status for _ in range(LOOKS)]
        finally:
            is_over.set()
            thread.join()
        assert all(one.ok for one in puts)
        assert Status.MISS not in seen
