"""Versions and contents of blocks on real satellites: of several hosts' puts under one key one counts, and no two mix."""

import os
from collections.abc import Callable
from itertools import count

import pytest

from skymemory.sky.entry_satellites import server_routes
from skymemory.sky.placement.spread import offset_of
from skymemory.sky.whereabouts import Whereabouts
from skymemory.store.keyvalue import KeyValue, ValueKeys
from skymemory.store.results import Status
from skymemory.store.sky_store import SkyStore
from skymemory.store.versions import Versions
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.envelope import VALUE_VERSION_MAX, Kind, instance_of, seal
from skymemory.wire.key_derivation import root_key, seal_keys
from support.evictions import evict
from support.raw_host import RawHost
from support.satellites import forget, held, migrate, put_share
from support.waiting import wait_until

StartSky = Callable[..., LocalConstellation]
NOW_US = 1_800_000_000_000_000
SEALS = seal_keys(root_key("test", b"secret"))


def host(store: SkyStore, name: str, clock_us: int = NOW_US) -> KeyValue:
    """A host with a clock that stands still."""
    return KeyValue(store, name, versions=Versions(lambda: clock_us))


@pytest.mark.parametrize("size", [10, 90_000])
@pytest.mark.parametrize("clock_us", [NOW_US, NOW_US - 3_600_000_000, 0], ids=["equal", "an hour slow", "none"])
def test_the_later_put_counts_whatever_clocks_say(full_sky: LocalConstellation, clock_us: int, size: int) -> None:
    """The second host knows nothing of the first, as after a restart."""
    namespace = f"later {clock_us} {size}"
    with SkyStore(full_sky.constellation) as store, SkyStore(full_sky.constellation) as other:
        first, second = os.urandom(size), os.urandom(size)
        assert host(store, namespace).put("name", first).ok
        assert host(other, namespace, clock_us).put("name", second).ok
        assert KeyValue(store, namespace).get("name") == second
        assert host(store, namespace).get("name") == second


def test_a_slow_host_puts_again_and_again(full_sky: LocalConstellation) -> None:
    with SkyStore(full_sky.constellation) as store:
        slow, fast = host(store, "again", 1), host(store, "again")
        for number in range(3):
            assert fast.put("name", b"fast%d" % number).ok
            assert slow.put("name", b"slow%d" % number).ok
            assert fast.get("name") == b"slow%d" % number


@pytest.mark.parametrize("layout", ["rotation", "hop", "rotation_hop"])
def test_no_share_of_a_longer_value_is_found(start_sky: StartSky, layout: str) -> None:
    """In one layout a lookup asks a satellite first that has no share of a short value."""
    sky = start_sky(cache={"layout": layout}).constellation
    with SkyStore(sky) as store:
        for number, size in enumerate((200_000, 10, 60_000, 0)):
            value = os.urandom(size)
            assert host(store, "longer", NOW_US + number).put("name", value).ok
            with SkyStore(sky) as other:
                assert KeyValue(other, "longer").get("name") == value


def test_an_old_block_does_not_replace_a_newer_one(full_sky: LocalConstellation) -> None:
    with SkyStore(full_sky.constellation) as store, SkyStore(full_sky.constellation) as other:
        values = KeyValue(store, "rollback")
        key = values.key_of("name")
        assert values.put("name", b"old" * 10_000).ok
        [old] = [result.data for result in store.get([key])]
        assert old is not None
        assert values.put("name", b"new" * 10_000).ok
        for who in (store, other):
            [refused] = who.put([(key, old)])
            assert refused.status is Status.OLD_VERSION
            assert refused.held_version > instance_of(old).version
        assert KeyValue(other, "rollback").get("name") == b"new" * 10_000


def test_behind_the_largest_version_a_value_has_to_be_deleted(full_sky: LocalConstellation) -> None:
    with SkyStore(full_sky.constellation, tenant_secret=b"secret") as store:
        values = KeyValue(store, "largest")
        key = values.key_of("name")
        assert store.put([(key, ValueKeys(b"secret").pack(key, b"last", version=VALUE_VERSION_MAX))])[0].ok
        assert values.put("name", b"behind").status is Status.OLD_VERSION
        assert values.get("name") == b"last"
        assert values.delete("name")
        assert values.put("name", b"behind").ok
        assert values.get("name") == b"behind"


def test_unequal_bytes_of_two_hosts_do_not_mix(full_sky: LocalConstellation) -> None:
    """Two GPUs computed the same block with unequal bits, and one host's chunks are gone in part."""
    key = os.urandom(32)
    ours, theirs = (bytes(seal(Kind.PROMPT, key, b"", os.urandom(60_000), keys=SEALS)) for _ in range(2))
    sky = full_sky.constellation.replace(cache={"servers": 10, "parity": 0})
    tenant = sky.cache.tenant
    routes = server_routes(Whereabouts(sky), 0.0)
    with SkyStore(sky) as store, SkyStore(sky) as other:
        assert store.put([(key, ours)])[0].ok
        assert store.put([(key, ours)])[0].ok  # once more is the same
        assert evict(store.control, routes[1:3], [key], tenant).chunks > 0
        assert other.put([(key, theirs)])[0].status is Status.BAD_KEY
        wait_until(lambda: other.put([(key, theirs)])[0].status is Status.BAD_KEY)
        for who in (store, other):
            assert who.get([key])[0].data is None
        assert other.purge([key]).confirmed
        assert other.put([(key, theirs)])[0].ok
        assert store.get([key])[0].data == theirs


def test_a_late_migration_brings_no_older_version_back(full_sky: LocalConstellation) -> None:
    sky = full_sky.constellation.replace(cache={"servers": 10, "parity": 0})
    routes = server_routes(Whereabouts(sky), 0.0)
    with SkyStore(sky) as store, SkyStore(sky) as other, RawHost(sky) as host:
        values = KeyValue(store, "late")
        # Its one chunk is at the first server
        name = next(one for one in map(str, count()) if offset_of(values.key_of(one), 1, 10) == 0)
        key = values.key_of(name)
        assert values.put(name, b"old").ok
        entry = store.find([key])[0].entry
        [old] = [result.data for result in store.get([key])]
        assert entry is not None
        assert old is not None
        assert values.put(name, b"new").ok
        put_share(host, routes[5].satellite, entry, 0, bytes(old), sky.cache.tenant)
        wait_until(lambda: held(store.control, routes[5:6], key, sky.cache.tenant) != [None])
        assert migrate(store.control, routes[5], routes[0].satellite, key, sky.cache.tenant).ok
        before = store.control.store_stats([routes[0]], 5.0)[routes[0].satellite]["requests"]
        wait_until(lambda: store.control.store_stats([routes[0]], 5.0)[routes[0].satellite]["requests"] > before + 1)
        assert KeyValue(other, "late").get(name) == b"new"


def test_a_purge_means_one_content(full_sky: LocalConstellation) -> None:
    """One host purges the block that it knew, which another host has replaced by its own."""
    key = os.urandom(32)
    ours, theirs = (bytes(seal(Kind.PROMPT, key, b"", os.urandom(60_000), keys=SEALS)) for _ in range(2))
    sky = full_sky.constellation
    routes = server_routes(Whereabouts(sky), 0.0)
    with SkyStore(sky) as store, SkyStore(sky) as other:
        assert store.put([(key, ours)])[0].ok
        [known] = other.find_longest([key]).entries
        assert store.purge([key]).confirmed
        assert store.put([(key, theirs)])[0].ok
        [newer] = store.find_longest([key]).entries
        for entry, is_held in ((known, True), (newer, False)):
            limits = {"version": entry.version, "content": entry.content}
            purged = forget(other.control, routes, [key], sky.cache.tenant, **limits)
            assert (purged.chunks == 0) == is_held
            assert (store.get([key])[0].data == theirs) == is_held


def test_a_purge_of_what_is_of_no_use_spares_what_was_put_meanwhile(full_sky: LocalConstellation) -> None:
    """A host has fetched a block that is of no use, and another one puts its own before the first one purges that."""
    key = os.urandom(32)
    ours, theirs = (bytes(seal(Kind.PROMPT, key, b"", os.urandom(60_000), keys=SEALS)) for _ in range(2))
    sky = full_sky.constellation.replace(cache={"servers": 10, "parity": 0})
    with SkyStore(sky) as store, SkyStore(sky) as other:
        assert store.put([(key, ours)])[0].ok
        fetched = store.get([key])
        assert other.purge([key]).confirmed
        assert other.put([(key, theirs)])[0].ok
        store.forget(fetched)
        assert store.stats().purges == 1
        assert other.get([key])[0].data == theirs
