"""Servers of blocks: all have some of the small ones, and a large block lies as in the paper."""

from collections.abc import Callable
from hashlib import sha256

from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.address import Satellite
from support.spread import shares_of

StartSky = Callable[..., LocalConstellation]


def key(name: object) -> bytes:
    return sha256(f"{__name__} {name}".encode()).digest()


def all_routes(sky: Constellation) -> list[Route]:
    return [Route(satellite, satellite) for satellite in sky.torus.satellites()]


def test_chunks_lie_on_their_servers(start_sky: StartSky) -> None:
    sky = start_sky().constellation
    with SkyStore(sky) as store:
        store.put([(key("spread"), bytes(20 * sky.cache.chunk_bytes))])
        stats = store.control.store_stats(all_routes(sky), 5)
    shares = shares_of(sky, key("spread"), 20 * sky.cache.chunk_bytes)
    held = {satellite: counters["chunks"] for satellite, counters in stats.items() if counters["chunks"]}
    # 20 chunks of data are rows of 7, 7 and 6, each with 2 of parity behind it
    assert held == {satellite: 3 if index < 8 else 2 for index, satellite in enumerate(shares)}


def test_small_values_fill_all_servers(start_sky: StartSky) -> None:
    """Each server has some of them. A large block lies as in the paper: chunk i is at server i."""
    sky = start_sky().constellation
    servers = Whereabouts(sky).servers(0)
    with SkyStore(sky) as store:
        items = {key(f"small {number}"): b"x" for number in range(300)}
        assert all(result.ok for result in store.put(list(items.items())))
        held = {satellite: counters["chunks"] for satellite, counters in stats_of(store).items() if counters["chunks"]}
        assert sorted(held) == sorted(servers)
        assert sum(held.values()) == 300 * (sky.cache.parity + 1)
        assert max(held.values()) < 2 * min(held.values())
        assert [result.data for result in store.get(list(items))] == list(items.values())
        (large,) = store.put([(key("large"), bytes(60 * sky.cache.chunk_bytes))])
        assert large.entry is not None
        assert large.entry.chunk_total == 60 + 9 * sky.cache.parity
        more = stats_of(store)
        for server, satellite in enumerate(servers):
            share = len(range(server, large.entry.chunk_total, len(servers)))
            assert more[satellite]["chunks"] - held[satellite] == share
    with SkyStore(sky) as other:  # it knows nothing but keys
        assert all(one.entry is not None for one in other.find([*items, key("large")]))


def stats_of(store: SkyStore) -> dict[Satellite, dict[str, int]]:
    return store.control.store_stats(all_routes(store.constellation), 5)
