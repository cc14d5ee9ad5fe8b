"""The native engine while chunks move: what one place of a server does not hold is asked for at the next."""

import random
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from secrets import token_bytes

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skymemory.common import defaults
from skymemory.link.block_entry import BlockEntry
from skymemory.link.control import ControlPlane, Move
from skymemory.link.native import NativeClient, Server, Transfer
from skymemory.sky.entry_satellites import Route
from skymemory.sky.placement.spread import by_share
from skymemory.testbed.local import LocalConstellation
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.icd import Status
from skymemory.wire.packets import ChunkSet, Packet, decode
from support.openings import opened
from support.waiting import wait_until

DEADLINE_MS = 20_000
SHORT_MS = 600
CHUNK_BYTES = 1000
A, B, C = Satellite(2, 2), Satellite(2, 3), Satellite(2, 4)
StartSky = Callable[..., LocalConstellation]
Stopped = Callable[..., AbstractContextManager[None]]


def server(sky: LocalConstellation, satellite: Satellite, entry: Satellite | None = None) -> Server:
    entry = entry or satellite
    return satellite, entry, sky.constellation.address(*entry), sky.constellation.network.port


def upload(chunks: int, bytes_less: int = 0) -> Transfer:
    size = chunks * CHUNK_BYTES - bytes_less
    return Transfer(BlockEntry(token_bytes(32), size, CHUNK_BYTES, chunks, 0, 0.0), 0, random.randbytes(size))


def scatter(client: NativeClient, sky: LocalConstellation, stored: Transfer, holders: Sequence[Satellite]) -> None:
    """Put chunk i of a block on the i-th of some satellites, as many as servers, and nowhere else."""
    lies_at = [server(sky, holder) for holder in holders]
    client.put([stored], by_share(lies_at, (len(holders) - stored.entry.offset(len(holders))) % len(holders)), DEADLINE_MS)
    assert stored.status is Status.DONE


def download(stored: Transfer, places: Sequence[Sequence[Server]]) -> Transfer:
    return Transfer(stored.entry, stored.tenant, bytearray(stored.entry.block_len), places)


def check_whole(fetched: Transfer, stored: Transfer) -> None:
    assert (fetched.status, fetched.failed) == (Status.DONE, None)
    assert (fetched.chunks, fetched.bytes) == (stored.entry.chunk_total, stored.entry.block_len)
    assert bytes(fetched.data) == stored.data


@pytest.mark.parametrize("chunks", [2, 7, 40, 500])
def test_a_share_that_lies_in_halves_is_found(full_sky: LocalConstellation, chunks: int) -> None:
    stored = upload(chunks, bytes_less=1)
    places = [[server(full_sky, A), server(full_sky, B)]]
    with NativeClient() as client:
        for holders in ([A, B], [B, A]):
            scatter(client, full_sky, stored := upload(chunks, bytes_less=1), [holders[i % 2] for i in range(chunks)])
            told: list[tuple[int, int]] = []
            fetched = download(stored, places)
            client.get([fetched], [places[0][0]], DEADLINE_MS, lambda done, total, told=told: told.append((done, total)))
            check_whole(fetched, stored)
            assert told[-1] == (chunks, chunks)
            assert told == sorted(told)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_wherever_its_chunks_lie_a_block_is_found(full_sky: LocalConstellation, data: st.DataObject) -> None:
    homes = [[A, B], [C], [B, A, Satellite(4, 4)], [Satellite(5, 5), C]]
    homes = homes[: data.draw(st.integers(1, 4))]
    chunks = data.draw(st.integers(1, 30))
    picks = [data.draw(st.integers(0, 5)) for _ in range(chunks)]  # before anything depends on the block's key
    with NativeClient(burst=data.draw(st.sampled_from([1, 3, 20]))) as client:
        stored = upload(chunks, bytes_less=data.draw(st.integers(0, CHUNK_BYTES - 1)))
        shares = stored.entry.by_share(homes)
        lies = [shares[i % len(shares)][picks[i] % len(shares[i % len(shares)])] for i in range(chunks)]
        scatter(client, full_sky, stored, lies)
        fetched = download(stored, [[server(full_sky, one) for one in home] for home in homes])
        client.get([fetched], [server(full_sky, A)], DEADLINE_MS)
        check_whole(fetched, stored)


def test_many_blocks_with_places_and_without_in_one_call(full_sky: LocalConstellation) -> None:
    servers = [server(full_sky, one) for one in (A, B, C)]
    moved = [[server(full_sky, one), servers[i]] for i, one in enumerate((Satellite(3, 7), C, A))]
    with NativeClient() as client:
        stored = [upload(200) for _ in range(12)]
        client.put(stored, servers, DEADLINE_MS)
        fetched = [download(one, moved if i % 2 else ()) for i, one in enumerate(stored)]
        nowhere = download(upload(200), moved)
        client.get([*fetched, nowhere], servers, DEADLINE_MS)
        for one, up in zip(fetched, stored, strict=True):
            check_whole(one, up)
        assert (nowhere.status, nowhere.last_status) == (Status.MISS, icd.STATUS_NOT_FOUND)
        assert nowhere.failed in (A, B, C)  # the last place


def test_more_chunks_than_one_set_can_name(start_sky: StartSky) -> None:
    local = start_sky(satellite={"store_mib": 64})
    chunks = 2 * icd.LIMIT_CHUNK_SET + 3
    with NativeClient() as client:
        stored = upload(chunks)
        scatter(client, local, stored, [A if i % 3 else B for i in range(6)])
        fetched = download(stored, [[server(local, B), server(local, A)]])
        client.get([fetched], [server(local, A)], DEADLINE_MS)
        check_whole(fetched, stored)


def test_what_is_lost_on_the_way_is_not_taken_for_moved(start_sky: StartSky) -> None:
    local = start_sky(links={"loss_ppm": 50_000, "jitter_us": 500})
    with NativeClient() as client:
        stored = upload(300)
        scatter(client, local, stored, [A if i % 2 else B for i in range(300)])
        fetched = download(stored, [[server(local, A, Satellite(1, 1)), server(local, B, Satellite(1, 1))]])
        client.get([fetched], [server(local, A)], DEADLINE_MS)
        check_whole(fetched, stored)
        assert fetched.repeats > 0


def test_chunks_in_parts(start_sky: StartSky) -> None:
    local = start_sky(network={"mtu": 1472})
    with NativeClient(packet_bytes=1472) as client:
        data = random.randbytes(240_000)
        stored = Transfer(BlockEntry(token_bytes(32), 240_000, 6000, 40, 0, 0.0), 0, data)
        scatter(client, local, stored, [A, B])
        fetched = download(stored, [[server(local, A), server(local, B)]])
        client.get([fetched], [server(local, A)], DEADLINE_MS)
        check_whole(fetched, stored)


def test_chunks_that_move_meanwhile_are_found(start_sky: StartSky) -> None:
    """Satellite by satellite forward, with gets all the time that ask in the order of time."""
    local = start_sky(satellite={"store_mib": 64})
    path = [A, B, C]
    with NativeClient() as client, ControlPlane(local.constellation) as control:
        stored = [upload(100) for _ in range(10)]
        client.put(stored, [server(local, A)], DEADLINE_MS)
        over = threading.Event()

        def holds(place: Satellite, entry: BlockEntry) -> bool:
            (held,) = control.hold_all([(entry, [[Route(place, place)]])], 0, 10)
            assert held is not None
            return held

        def turn() -> None:
            for source, target in pairwise(path):
                for one in stored:
                    answer = control.migrate([Move(Route(source, source), target, one.entry.key)], 0, 10)[0]
                    assert answer is not None
                    assert answer.ok
                    wait_until(lambda place=target, entry=one.entry: holds(place, entry))
            over.set()

        mover = threading.Thread(target=turn)
        mover.start()
        try:
            rounds = 0
            while not over.is_set() or rounds < 2:
                fetched = [download(one, [[server(local, place) for place in path]]) for one in stored]
                client.get(fetched, [server(local, A)], DEADLINE_MS)
                for one, up in zip(fetched, stored, strict=True):
                    check_whole(one, up)
                rounds += 1
                assert mover.is_alive() or over.is_set()
        finally:
            mover.join()


def test_a_put_goes_to_the_servers_only(full_sky: LocalConstellation) -> None:
    with NativeClient() as client:
        stored = upload(10)
        stored.places = [[server(full_sky, A), server(full_sky, B)]]
        client.put([stored], [server(full_sky, C)], DEADLINE_MS)
        for place, state in ((A, Status.MISS), (B, Status.MISS), (C, Status.DONE)):
            fetched = download(stored, ())
            client.get([fetched], [server(full_sky, place)], DEADLINE_MS)
            assert fetched.status is state


def test_an_older_block_of_the_name_is_passed_over(full_sky: LocalConstellation) -> None:
    with NativeClient() as client:
        stored = upload(10)
        older = Transfer(BlockEntry(stored.entry.key, 9000, CHUNK_BYTES, 9, 0, 0.0), 0, bytes(9000))
        client.put([older], [server(full_sky, A)], DEADLINE_MS)
        client.put([stored], [server(full_sky, B)], DEADLINE_MS)
        fetched, nowhere = (download(stored, [[server(full_sky, A), server(full_sky, last)]]) for last in (B, C))
        client.get([fetched, nowhere], [server(full_sky, A)], DEADLINE_MS)
        check_whole(fetched, stored)
        # It is not gone for certain: the name stands for something else somewhere
        assert (nowhere.status, nowhere.last_status, nowhere.failed) == (Status.BAD_KEY, icd.STATUS_BAD_KEY, A)


# ---- places that do not answer ----------------------------------------------------------------------------------------


def test_a_silent_place_is_passed_over(start_sky: StartSky, stopped: Stopped) -> None:
    local = start_sky()
    with NativeClient() as client:
        stored = [upload(20) for _ in range(30)]
        client.put(stored, [server(local, B)], DEADLINE_MS)
        nowhere = upload(20)
        with stopped(local, A):
            fetched = [download(one, [[server(local, A), server(local, B)]]) for one in stored]
            lost = download(nowhere, [[server(local, A), server(local, B)]])
            client.get([lost, *fetched], [server(local, A)], 2000)
        for one, up in zip(fetched, stored, strict=True):
            check_whole(one, up)
        # Whether the silent one holds it, nobody knows
        assert (lost.status, lost.failed) == (Status.EXPIRED, A)
        # As good as new afterwards
        client.put([nowhere], [server(local, A)], DEADLINE_MS)
        fetched = [download(nowhere, [[server(local, A), server(local, B)]])]
        client.get(fetched, [server(local, A)], DEADLINE_MS)
        check_whole(fetched[0], nowhere)


def test_all_places_silent_is_expired_by_the_deadline(start_sky: StartSky, stopped: Stopped) -> None:
    local = start_sky()
    with NativeClient() as client, stopped(local, A, B, C):
        wanted = [download(upload(5), [[server(local, one) for one in (A, B, C)]]) for _ in range(20)]
        client.get(wanted, [server(local, A)], SHORT_MS)
        assert {one.status for one in wanted} == {Status.EXPIRED}
        assert all(one.duration_s >= SHORT_MS / 1000 for one in wanted)


def test_an_unreachable_place_is_passed_over(start_sky: StartSky) -> None:
    cut = [{"from": [1, 1], "to": [1, 2], "cut": True}]
    local = start_sky(
        constellation={"planes": 1, "slots": 2}, cache={"servers": 1, "parity": 0, "centre": [1, 1]}, links={"override": cut}
    )
    here, there = Satellite(1, 1), Satellite(1, 2)
    with NativeClient() as client:
        stored = upload(10)
        client.put([stored], [server(local, here)], DEADLINE_MS)
        beyond, at_hand = server(local, there, here), server(local, here)
        fetched, nowhere = download(stored, [[beyond, at_hand]]), download(upload(10), [[beyond, at_hand]])
        client.get([fetched, nowhere], [at_hand], DEADLINE_MS)
        check_whole(fetched, stored)
        assert (nowhere.status, nowhere.last_status, nowhere.failed) == (Status.UNREACHABLE, icd.STATUS_UNREACHABLE, there)


# ---- bad terms --------------------------------------------------------------------------------------------------------


Lie = Callable[[Packet], Iterator[Packet]]


@contextmanager
def liar(satellite: Satellite, lie: Lie) -> Iterator[Server]:
    """Somebody who answers for a satellite what he likes."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.bind(("127.0.0.1", 0))
        end.settimeout(0.01)
        over = threading.Event()

        def answer() -> None:
            while not over.is_set():
                with suppress(TimeoutError):
                    data, sender = end.recvfrom(65536)
                    opening = opened(request := decode(data))
                    for packet in lie(request) if opening is None else [opening]:
                        end.sendto(packet.encode(), sender)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield satellite, satellite, *end.getsockname()
        finally:
            over.set()
            thread.join()


def denial(request: Packet, chunks: ChunkSet) -> Packet:
    return replace(
        request,
        is_request=False,
        src=request.dst,
        dst=request.src,
        status=icd.STATUS_NOT_FOUND,
        flags=icd.FLAG_LAST,
        chunk_id=chunks.first,
        payload=chunks.encode(),
    )


def again_and_again(request: Packet) -> Iterator[Packet]:
    for _ in range(5):
        yield denial(request, ChunkSet.of(request))


def one_at_a_time(request: Packet) -> Iterator[Packet]:
    for chunk in ChunkSet.of(request).chunks():
        yield denial(request, ChunkSet(chunk, 1, (True,)))


def also_what_was_not_asked_for(request: Packet) -> Iterator[Packet]:
    yield denial(request, ChunkSet(0, 7, (True,) * icd.LIMIT_CHUNK_SET))
    yield denial(request, ChunkSet(0xFFFFFFFF, 1, (True,)))
    yield denial(request, ChunkSet(0, 1, (True,) * icd.LIMIT_CHUNK_SET))


def numbers_of_requests_to_come(request: Packet) -> Iterator[Packet]:
    for number in (0, request.request_id + 1, request.request_id + 40_000, request.request_id | 0xFFFF):
        yield denial(replace(request, request_id=number & 0xFFFFFFFFFFFFFFFF), ChunkSet.of(request))


def no_set(request: Packet) -> Iterator[Packet]:
    yield replace(denial(request, ChunkSet.of(request)), payload=b"\0" * 7)


def hop_limit(request: Packet) -> Iterator[Packet]:
    yield replace(denial(request, ChunkSet.of(request)), status=icd.STATUS_HOP_LIMIT, payload=b"")


def another_block(request: Packet) -> Iterator[Packet]:
    yield replace(
        denial(request, ChunkSet.of(request)), status=icd.STATUS_OK, chunk_total=3, block_len=3, chunk_len=1, payload=b"x"
    )


@pytest.mark.parametrize(
    "lie",
    [
        again_and_again,
        one_at_a_time,
        also_what_was_not_asked_for,
        numbers_of_requests_to_come,
        no_set,
        hop_limit,
        another_block,
    ],
)
def test_no_word_of_one_place_keeps_from_asking_the_next(full_sky: LocalConstellation, lie: Lie) -> None:
    with NativeClient(burst=4) as client, liar(A, lie) as false:
        stored = upload(60)
        scatter(client, full_sky, stored, [B, C])
        fetched = download(stored, [[false, server(full_sky, B), server(full_sky, C)]])
        client.get([fetched], [server(full_sky, A)], DEADLINE_MS)
        check_whole(fetched, stored)
        nowhere = download(upload(60), [[false] * (defaults.HOST_ROUNDS + 1)])
        client.get([nowhere], [false], DEADLINE_MS)  # however often it is asked, that has an end
        assert nowhere.status is not Status.DONE
        assert nowhere.chunks == nowhere.bytes == 0


def test_refusals_of_the_request_itself_end_the_block(full_sky: LocalConstellation) -> None:
    def too_large(request: Packet) -> Iterator[Packet]:
        yield replace(next(hop_limit(request)), status=icd.STATUS_TOO_LARGE)

    with NativeClient() as client, liar(A, too_large) as false:
        stored = upload(10)
        client.put([stored], [server(full_sky, B)], DEADLINE_MS)
        fetched = download(stored, [[false, server(full_sky, B)]])
        client.get([fetched], [false], DEADLINE_MS)
        assert (fetched.status, fetched.last_status, fetched.failed) == (Status.TOO_LARGE, icd.STATUS_TOO_LARGE, A)


def test_places_that_contradict_themselves_are_refused() -> None:
    here: Server = (A, A, "127.0.0.1", 9)
    with NativeClient() as client:
        for places in (
            [[here] * (defaults.HOST_ROUNDS + 2)],
            [[here, (Satellite(1, 0), A, "127.0.0.1", 9)]],
            [[here, (B, B, "127.0.0.1", 0)]],
        ):
            with pytest.raises(ValueError, match=f"at most {defaults.HOST_ROUNDS} fallback places"):
                client.get([download(upload(2), places)], [here], SHORT_MS)
        with pytest.raises(ValueError, match="a server has no place; each needs at least one"):
            client.get([download(upload(2), [[here], []])], [here], SHORT_MS)
        with pytest.raises(ValueError, match="1 server"):
            client.get([download(upload(2), [[here]])], [], SHORT_MS)


def test_a_call_with_places_can_be_cancelled(start_sky: StartSky, stopped: Stopped) -> None:
    local = start_sky()
    with NativeClient() as client, stopped(local):
        wanted = [download(upload(3), [[server(local, A), server(local, B)]]) for _ in range(3)]
        thread = threading.Thread(target=client.get, args=(wanted, [server(local, A)], 600_000))
        thread.start()
        wait_until(lambda: client.cancel() or not thread.is_alive())  # the first ones may come before the call has begun
        assert {one.status for one in wanted} == {Status.CANCELLED}
