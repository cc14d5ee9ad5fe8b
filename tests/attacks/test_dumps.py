"""Somebody has all satellites in his hands, and reads what they hold: the whole memory of their processes."""

from collections.abc import Callable
from secrets import token_bytes
from urllib.parse import urlsplit

import redis

from skymemory.store.keyvalue import KeyValue, ValueKeys
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess
from support.dumps import shown
from support.guarded_sky import GuardedSky
from support.waiting import PATIENT


def test_a_dump_of_all_stores_shows_no_plaintext_and_no_name(
    start_guarded: Callable[..., GuardedSky], start_agent: Callable[[LocalConstellation, str, str], AgentProcess]
) -> None:
    sky = start_guarded(
        is_keyed=True,
        constellation={"planes": 1, "slots": 3},
        cache={"servers": 3, "centre": [1, 2]},
        satellite={"store_mib": 1},
    )
    name, value = "name-" + token_bytes(16).hex(), b"value-" + token_bytes(16).hex().encode()
    redis_name, redis_value = b"redis-" + token_bytes(16).hex().encode(), token_bytes(40)
    with SkyStore(sky.constellation_of("alice"), timing=PATIENT) as store:
        assert KeyValue(store).put(name, value * 2000).ok
        key = ValueKeys(store.tenant_secret).key_of(name)
        secret = store.tenant_secret
    agent = start_agent(sky.local, "--resp-port", "0")
    with redis.Redis(port=urlsplit(agent.addresses["redis"]).port) as client:
        assert client.set(redis_name, redis_value * 300)
    plain = (name.encode(), value, value[:12], redis_name, redis_value, secret)
    assert shown(sky.local, [*plain, key]) == {key}  # the digest of the name is there, so it was looked at in the right place
