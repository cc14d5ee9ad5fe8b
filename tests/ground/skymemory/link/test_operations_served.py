"""What operations tell of each satellite."""

import random
import time
from collections.abc import Callable
from hashlib import sha256

from skymemory.link.ground import Ground
from skymemory.link.operations import Operation, Outcome, Served, served_of
from skymemory.link.structures import Kind
from skymemory.sky.constellation import Constellation
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.address import Satellite
from skymemory.wire.icd import Status
from support.operations import DEADLINE_MS, entry_of, opened, put
from support.spread import shares_of

SIZE = 100_001
CHUNKS = 17


def new_block(name: str, size: int = SIZE) -> tuple[bytes, bytes]:
    return sha256(f"{__name__} {name}".encode()).digest(), random.randbytes(size)


def get(ground: Ground, sky: Constellation, key: bytes, deadline_ms: int = DEADLINE_MS) -> Outcome:
    entry = entry_of(sky, key, SIZE)
    [outcome] = ground.run([Operation(Kind.GET, entry, sky.cache.tenant, deadline_ms, bytearray(SIZE))])
    return outcome


def parts_of(*outcomes: Outcome) -> dict[Satellite, Served]:
    return {one.satellite: one for one in served_of(outcomes, min(one.began_us for one in outcomes))}


def check_times(one: Served, duration_s: float) -> None:
    assert one.first_s is not None
    assert one.last_s is not None
    assert one.rtt_s is not None
    assert 0 <= (one.asked_s or 0) <= one.first_s <= one.last_s <= duration_s + 1e-6
    assert one.rtt_s > 0


def test_who_did_what(full_sky: LocalConstellation) -> None:
    sky = full_sky.constellation.replace(cache={"parity": 0})
    key, data = new_block("who")
    with opened(sky) as ground:
        for move in (lambda: put(ground, sky, {key: data})[0], lambda: get(ground, sky, key)):
            before_us = time.monotonic_ns() // 1000
            outcome = move()
            assert outcome.status is Status.DONE
            assert before_us <= outcome.began_us <= time.monotonic_ns() // 1000
            served = parts_of(outcome)
            assert set(served) == set(shares_of(sky, key, SIZE))
            assert all(one.entry == one.satellite for one in served.values())
            assert sum(one.bytes for one in served.values()) == outcome.bytes == SIZE
            assert sum(one.chunks for one in served.values()) == outcome.chunks == CHUNKS
            assert sum(one.repeats for one in served.values()) == outcome.repeats
            assert all(one.requests > 0 for one in served.values())
            for one in served.values():
                check_times(one, outcome.queue_s + outcome.network_s + outcome.rest_s)
    assert served_of([], 0) == ()


def test_satellites_without_a_share_are_not_in_it(full_sky: LocalConstellation) -> None:
    sky = full_sky.constellation.replace(cache={"parity": 0})
    key, data = new_block("one chunk", 100)
    with opened(sky) as ground:
        [outcome] = put(ground, sky, {key: data})
    assert list(parts_of(outcome)) == shares_of(sky, key, 100)[:1]


def test_parts_in_several_operations_add_up(full_sky: LocalConstellation) -> None:
    sky, items = full_sky.constellation.replace(cache={"parity": 0}), dict(new_block(f"several {i}") for i in range(3))
    with opened(sky) as ground:
        outcomes = put(ground, sky, items)
    alone, together = [parts_of(one) for one in outcomes], parts_of(*outcomes)
    assert set(together) == {satellite for one in alone for satellite in one}
    for satellite, part in together.items():
        parts = [one[satellite] for one in alone if satellite in one]
        assert part.bytes == sum(one.bytes for one in parts)
        assert part.requests == sum(one.requests for one in parts)
        assert part.first_s is not None
        assert part.last_s is not None
        assert part.first_s <= part.last_s


def test_one_that_is_lost_says_nothing(start_sky: Callable[..., LocalConstellation]) -> None:
    local = start_sky(cache={"parity": 0})
    sky, (key, data) = local.constellation, new_block("lost")
    victim = shares_of(sky, key, SIZE)[3]
    with opened(sky) as ground:
        assert put(ground, sky, {key: data})[0].status is Status.DONE
        local.kill(victim)
        outcome = get(ground, sky, key, 2000)
        assert outcome.status is not Status.DONE
        served = parts_of(outcome)
        lost = served[victim]
        assert (lost.first_s, lost.last_s, lost.bytes, lost.chunks) == (None, None, 0, 0)
        assert lost.asked_s is not None
        assert lost.rtt_s is not None  # of before
        assert all(one.last_s is not None for one in served.values() if one.satellite != victim)
        assert set(shares_of(sky, key, SIZE)) <= set(served)


def test_the_way_through_the_sky_is_in_it(start_sky: Callable[..., LocalConstellation]) -> None:
    local = start_sky(links={"model": "geometry"})
    sky, (key, data) = local.constellation.replace(cache={"uplink": "nearest", "parity": 0}), new_block("way")
    with opened(sky) as ground:
        put(ground, sky, {key: data})
        served = parts_of(get(ground, sky, key)).values()
    [near] = (one for one in served if one.satellite == one.entry)
    assert near.first_s is not None
    for far in (one for one in served if one.satellite != one.entry):
        assert far.entry == near.satellite
        assert far.rtt_s is not None
        assert far.first_s is not None
        assert far.first_s > near.first_s
