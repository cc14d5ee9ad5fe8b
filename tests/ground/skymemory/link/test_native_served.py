"""What a call of the native engine tells of each satellite."""

import random
import time
from collections.abc import Callable

from skymemory.link.block_entry import BlockEntry
from skymemory.link.native import NativeClient, Served, Transfer
from skymemory.testbed.local import LocalConstellation
from skymemory.wire.icd import Status
from support.servers import servers_of

SIZE = 100_001
CHUNK = 6000
CHUNKS = 17


def new_transfer() -> Transfer:
    entry = BlockEntry(random.randbytes(32), SIZE, CHUNK, CHUNKS, 0, 0.0)
    return Transfer(entry, 0, bytearray(random.randbytes(SIZE)))


def check_times(one: Served, duration_s: float) -> None:
    assert one.first_s is not None
    assert one.last_s is not None
    assert one.rtt_s is not None
    assert 0 <= (one.asked_s or 0) <= one.first_s <= one.last_s <= duration_s + 1e-6
    assert one.rtt_s > 0


def test_who_did_what(full_sky: LocalConstellation) -> None:
    servers = servers_of(full_sky.constellation)
    with NativeClient() as client:
        transfer = new_transfer()
        for move in (client.put, client.get):
            before_ns = time.time_ns()
            call = move([transfer], servers, 5000)
            assert transfer.status is Status.DONE
            assert before_ns <= call.started_ns <= call.ended_ns <= time.time_ns()
            assert {(one.satellite, one.entry) for one in call.served} == {server[:2] for server in servers}
            assert sum(one.bytes for one in call.served) == SIZE
            assert sum(one.chunks for one in call.served) == CHUNKS
            assert sum(one.requests for one in call.served) == transfer.requests
            assert sum(one.repeats for one in call.served) == transfer.repeats
            for one in call.served:
                check_times(one, transfer.duration_s)
        assert client.get([], servers, 5000).served == ()


def test_satellites_without_a_share_are_not_in_it(full_sky: LocalConstellation) -> None:
    servers = servers_of(full_sky.constellation)
    with NativeClient() as client:
        entry = BlockEntry(random.randbytes(32), 100, 100, 1, 0, 0.0)
        call = client.put([Transfer(entry, 0, bytes(100))], servers, 5000)
        assert [one.satellite for one in call.served] == [servers[entry.offset(len(servers))][0]]


def test_one_that_is_lost_says_nothing(start_sky: Callable[..., LocalConstellation]) -> None:
    local = start_sky()
    servers = servers_of(local.constellation)
    victim = servers[3][0]
    with NativeClient() as client:
        transfer = new_transfer()
        client.put([transfer], servers, 5000)
        assert transfer.status is Status.DONE
        local.kill(victim)
        call = client.get([transfer], servers, 2000)
        assert transfer.status is Status.EXPIRED
        lost = next(one for one in call.served if one.satellite == victim)
        assert (lost.first_s, lost.last_s, lost.bytes, lost.chunks) == (None, None, 0, 0)
        assert lost.asked_s is not None
        assert lost.rtt_s is not None  # of before
        assert all(one.last_s is not None for one in call.served if one.satellite != victim)


def test_the_way_through_the_sky_is_in_it(start_sky: Callable[..., LocalConstellation]) -> None:
    local = start_sky(links={"model": "geometry"})
    with NativeClient() as client:
        transfer = new_transfer()
        servers = servers_of(local.constellation.replace(cache={"uplink": "nearest"}))
        client.put([transfer], servers, 5000)
        call = client.get([transfer], servers, 5000)
        near = next(one for one in call.served if one.satellite == one.entry)
        assert near.first_s is not None
        for far in (one for one in call.served if one.satellite != one.entry):
            assert far.rtt_s is not None
            assert far.first_s is not None
            assert far.first_s > near.first_s
