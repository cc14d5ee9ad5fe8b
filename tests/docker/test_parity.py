"""Containers of which two are killed under load: with parity nobody misses a block."""

import time
from collections.abc import Iterator

import pytest

from skymemory.bench.traffic import Traffic
from skymemory.sky.constellation import Constellation
from skymemory.sky.whereabouts import Whereabouts
from skymemory.testbed.docker import containers_of, kill_container
from support.waiting import wait_until

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]
LEAST = 20
"""Least calls before satellites are lost, while hosts find out, and after."""


@pytest.fixture(scope="module")
def sky(start_containers) -> Iterator[Constellation]:
    """15 satellites, 12 of them servers."""
    cache = {"servers": 12, "parity": 2, "deadline_ms": 20_000, "centre": [2, 3]}
    grid = {"planes": 3, "slots": 5}
    with start_containers(Constellation().replace(constellation=grid, cache=cache, satellite={"store_mib": 64})) as sky:
        yield sky


def test_two_killed_containers_are_not_noticed(sky: Constellation, docker) -> None:
    places = Whereabouts(sky).servers(0)
    with Traffic(sky) as traffic:
        start_s = time.perf_counter()
        wait_until(lambda: traffic.errors or (traffic.gets >= LEAST and time.perf_counter() > start_s + 2))
        lost_s = time.perf_counter()
        for server in (3, 7):
            address = sky.address(*places[server])
            [found] = [one for one in containers_of(places[server]) if one.address == address]
            docker("update", "--restart", "no", found.identity)
            kill_container(found.identity)
        wait_until(lambda: traffic.errors or time.perf_counter() > lost_s + 4)
        found_s, calls = time.perf_counter(), traffic.gets
        wait_until(lambda: traffic.errors or (traffic.gets >= calls + LEAST and time.perf_counter() > found_s + 2))
        traffic.stop()
    before, finding, after = traffic.phase(start_s, lost_s), traffic.phase(lost_s, found_s), traffic.phase(found_s)
    print(f"get of 4 blocks: {before.median_ms:.1f} ms, then {after.median_ms:.1f} ms; at most {finding.longest_ms:.1f} ms")
    assert traffic.errors == []
    assert traffic.puts > 0
    assert [(one.misses, one.purges, one.put_failures) for one in traffic.stats()] == [(0, 0, 0)] * 2
    assert after.median_ms < 20 * before.median_ms  # the deadline is hundreds of times longer
