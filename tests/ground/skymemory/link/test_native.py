"""The native engine, with real satellites."""

import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from skymemory.link.block_entry import BlockEntry
from skymemory.link.native import NativeClient, Server, Transfer
from skymemory.testbed.local import LocalConstellation
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.icd import Status
from support.servers import servers_of
from support.waiting import PATIENCE_S, wait_until

DEADLINE_MS = 20_000
StartSky = Callable[..., LocalConstellation]


def new_entry(size: int, chunk_len: int = 6000) -> BlockEntry:
    chunk_len = min(chunk_len, size)
    return BlockEntry(random.randbytes(32), size, chunk_len, -(-size // chunk_len), 0, 0.0)


def uploads(*sizes: int, chunk_len: int = 6000) -> list[Transfer]:
    return [Transfer(new_entry(size, chunk_len), 0, random.randbytes(size)) for size in sizes]


def downloads(stored: list[Transfer]) -> list[Transfer]:
    return [Transfer(transfer.entry, transfer.tenant, bytearray(transfer.entry.block_len)) for transfer in stored]


def check_round_trip(client: NativeClient, servers: list[Server], stored: list[Transfer]) -> list[Transfer]:
    client.put(stored, servers, DEADLINE_MS)
    fetched = downloads(stored)
    client.get(fetched, servers, DEADLINE_MS)
    for up, down in zip(stored, fetched, strict=True):
        assert (up.status, up.failed) == (Status.DONE, None)
        assert (down.status, down.failed) == (Status.DONE, None)
        assert up.chunks == down.chunks == up.entry.chunk_total
        assert up.bytes == down.bytes == up.entry.block_len
        assert bytes(down.data) == bytes(up.data)
    return fetched


# ---- the binding ----------------------------------------------------------------------------------------------------


def test_each_status_has_one_number_and_those_of_hosts_are_not_on_the_wire() -> None:
    numbers = {*icd.STATUSES, *icd.HOST_STATUSES}
    assert len(numbers) == len(icd.STATUSES) + len(icd.HOST_STATUSES) == len(Status)
    assert {*icd.STATUSES.values(), *icd.HOST_STATUSES.values()} == set(Status)
    assert set(icd.STATUSES) == set(range(icd.STATUS_COUNT))
    assert min(icd.HOST_STATUSES) >= 128
    assert max(icd.HOST_STATUSES) <= 255  # one byte in C


@pytest.mark.parametrize("numbers", [{"packet_bytes": 178}, {"packet_bytes": 65508}, {"burst": 2049}, {"window_max": 2049}])
def test_numbers_out_of_range_are_refused(numbers: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="179 to 65507"):
        NativeClient(**numbers)


def test_blocks_that_contradict_themselves_are_refused() -> None:
    server: Server = (Satellite(1, 1), Satellite(1, 1), "127.0.0.1", 9)
    key = bytes(32)
    with NativeClient() as client:
        for entry in (BlockEntry(key, 100, 10, 9, 0, 0.0), BlockEntry(key, 100, 0, 10, 0, 0.0)):
            with pytest.raises(ValueError, match="chunks of"):
                client.put([Transfer(entry, 0, bytes(100))], [server], 100)
        fine = BlockEntry(key, 100, 10, 10, 0, 0.0)
        for data in (bytes(99), bytes(100)):  # too short; not writable
            with pytest.raises(ValueError, match="writable"):
                client.get([Transfer(fine, 0, data)], [server], 100)
        with pytest.raises(ValueError, match="contiguous"):
            client.put([Transfer(fine, 0, memoryview(bytes(200))[::2])], [server], 100)
        for servers, deadline_ms in (([], 100), ([server], 0)):
            with pytest.raises(ValueError, match="at least 1 server"):
                client.put([Transfer(fine, 0, bytes(100))], servers, deadline_ms)
        client.put([], [], 100)  # nothing to do is no error
    with pytest.raises(ValueError, match="closed"):
        client.put([Transfer(fine, 0, bytes(100))], [server], 100)
    client.close()


# ---- with satellites --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 5999, 6000, 6001, 2_900_000])
def test_what_was_put_is_got(full_sky: LocalConstellation, size: int) -> None:
    with NativeClient() as client:
        check_round_trip(client, servers_of(full_sky.constellation), uploads(size))


def test_many_blocks_at_once_over_all_95(full_sky: LocalConstellation) -> None:
    sky = full_sky.constellation.replace(cache={"servers": 95})
    with NativeClient() as client:
        check_round_trip(client, servers_of(sky), uploads(*[300_000] * 20, 7, 570_001))
        counters = client.counters()
        assert counters.rx_bad == counters.tx_failed == 0
        assert counters.host_number > 0


def test_any_kind_of_memory(full_sky: LocalConstellation) -> None:
    data = random.randbytes(30_000)
    with NativeClient() as client:
        for buffer in (data, bytearray(data), memoryview(data), memoryview(data).cast("I")):
            stored = [Transfer(new_entry(len(data)), 0, buffer)]
            fetched = check_round_trip(client, servers_of(full_sky.constellation), stored)
            assert bytes(fetched[0].data) == data


def test_tenants_do_not_see_each_other(full_sky: LocalConstellation) -> None:
    servers = servers_of(full_sky.constellation)
    with NativeClient() as client:
        stored = uploads(50_000)
        client.put(stored, servers, DEADLINE_MS)
        other = downloads(stored)
        other[0].tenant = 1
        client.get(other, servers, DEADLINE_MS)
        assert other[0].status is Status.MISS


def test_a_share_of_more_chunks_than_one_set_can_name(start_sky: StartSky) -> None:
    local = start_sky(constellation={"planes": 1, "slots": 2}, cache={"servers": 1, "parity": 0, "centre": [1, 1]})
    with NativeClient() as client:
        stored = uploads(2500 * 50 - 1, 50, chunk_len=50)
        assert stored[0].entry.chunk_total > icd.LIMIT_CHUNK_SET
        check_round_trip(client, servers_of(local.constellation), stored)


def test_chunks_larger_than_packets(start_sky: StartSky) -> None:
    local = start_sky(network={"mtu": 1472})
    with NativeClient(packet_bytes=1472) as client:
        check_round_trip(client, servers_of(local.constellation), uploads(600_000, 5999, 100))


def test_without_offload_and_with_a_small_receive_buffer(full_sky: LocalConstellation) -> None:
    with NativeClient(offload=False, receive_bytes=65536) as client:
        check_round_trip(client, servers_of(full_sky.constellation), uploads(2_900_000))
        counters = client.counters()
        assert (counters.tx_offload, counters.rx_offload) == (0, 0)
        assert counters.receive_buffer_bytes < 1 << 20


def test_what_is_lost_is_repeated(start_sky: StartSky) -> None:
    local = start_sky(links={"loss_ppm": 30_000, "jitter_us": 300})
    sky = local.constellation.replace(cache={"uplink": "nearest"})  # so that most chunks cross links that lose
    with NativeClient() as client:
        stored = uploads(600_000, 600_000)
        fetched = check_round_trip(client, servers_of(sky), stored)
        assert sum(transfer.repeats for transfer in stored) > 0
        assert sum(transfer.repeats for transfer in fetched) > 0


def test_what_nobody_holds_is_a_miss(full_sky: LocalConstellation) -> None:
    servers = servers_of(full_sky.constellation)
    with NativeClient() as client:
        wanted = downloads(uploads(2_900_000))
        client.get(wanted, servers, DEADLINE_MS)
        assert wanted[0].status is Status.MISS
        assert wanted[0].last_status == icd.STATUS_NOT_FOUND
        assert wanted[0].failed in [satellite for satellite, *_ in servers]
        assert wanted[0].duration_s < DEADLINE_MS / 1000


def test_one_missing_block_does_not_spoil_the_others(full_sky: LocalConstellation) -> None:
    servers = servers_of(full_sky.constellation)
    with NativeClient() as client:
        stored = uploads(400_000, 400_000)
        client.put(stored, servers, DEADLINE_MS)
        wanted = downloads([stored[0], *uploads(400_000), stored[1]])
        client.get(wanted, servers, DEADLINE_MS)
        assert [transfer.status for transfer in wanted] == [Status.DONE, Status.MISS, Status.DONE]
        assert bytes(wanted[2].data) == stored[1].data


def test_another_block_under_the_same_key_is_a_miss(full_sky: LocalConstellation) -> None:
    servers = servers_of(full_sky.constellation)
    with NativeClient() as client:
        stored = uploads(90_000)
        client.put(stored, servers, DEADLINE_MS)
        entry = BlockEntry(stored[0].entry.key, 89_000, 6000, 15, 0, 0.0)
        wanted = [Transfer(entry, 0, bytearray(89_000))]
        client.get(wanted, servers, DEADLINE_MS)
        assert (wanted[0].status, wanted[0].last_status) == (Status.BAD_KEY, icd.STATUS_BAD_KEY)


def test_chunks_that_no_slot_holds_are_refused(full_sky: LocalConstellation) -> None:
    with NativeClient() as client:
        stored = uploads(100_000, chunk_len=20_000)
        client.put(stored, servers_of(full_sky.constellation), DEADLINE_MS)
        assert (stored[0].status, stored[0].last_status) == (Status.TOO_LARGE, icd.STATUS_TOO_LARGE)


def test_a_dead_satellite_is_a_miss_by_the_deadline(start_sky: StartSky) -> None:
    local = start_sky()
    servers = servers_of(local.constellation)
    with NativeClient() as client:
        stored = uploads(300_000, 6000)  # the second lies on one server alone
        victim = servers[stored[1].entry.offset(len(servers)) - 1][0]
        client.put(stored, servers, DEADLINE_MS)
        assert [transfer.status for transfer in stored] == [Status.DONE] * 2
        local.kill(victim)
        wanted = downloads(stored)
        client.get(wanted, servers, 2000)
        assert (wanted[0].status, wanted[0].failed) == (Status.EXPIRED, victim)
        assert wanted[0].duration_s >= 2.0
        assert wanted[1].status is Status.DONE
        local.restart(victim)
        check_round_trip(client, servers, stored)


# ---- calls ------------------------------------------------------------------------------------------------------------


@contextmanager
def silent_server() -> Iterator[Server]:
    """A satellite that takes packets and says nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
        sink.bind(("127.0.0.1", 0))
        yield Satellite(1, 1), Satellite(1, 1), *sink.getsockname()


def test_progress_is_told(full_sky: LocalConstellation) -> None:
    servers = servers_of(full_sky.constellation)
    told: list[tuple[int, int]] = []
    with NativeClient() as client:
        stored = uploads(2_900_000, 600)
        client.put(stored, servers, DEADLINE_MS, lambda done, total: told.append((done, total)))
        assert told[-1] == (485, 485)
        assert told == sorted(told)


def test_an_interrupt_ends_the_call(full_sky: LocalConstellation) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with NativeClient() as client, silent_server() as server:
        start_s = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            client.get(downloads(uploads(6000)), [server], 600_000, interrupt)
        assert time.monotonic() - start_s < 300
        check_round_trip(client, servers_of(full_sky.constellation), uploads(6000))  # it is as good as new


def test_a_call_can_be_cancelled_from_another_thread() -> None:
    with NativeClient() as client, silent_server() as server:
        wanted = downloads(uploads(6000, 6000))
        thread = threading.Thread(target=client.get, args=(wanted, [server], 600_000))
        client.cancel()  # without effect: nothing runs
        thread.start()
        wait_until(lambda: client.cancel() or not thread.is_alive())  # the first ones may come before the call has begun
        assert [transfer.status for transfer in wanted] == [Status.CANCELLED] * 2


def test_closing_ends_a_call() -> None:
    with silent_server() as server:
        client = NativeClient()
        wanted = downloads(uploads(6000))
        raised: list[ValueError] = []

        def get() -> None:
            try:
                client.get(wanted, [server], 600_000)
            except ValueError as error:  # closed before it began
                raised.append(error)

        thread = threading.Thread(target=get)
        thread.start()
        client.close()
        thread.join()
        assert raised or wanted[0].status is Status.CANCELLED


def test_closing_ends_calls_that_wait_for_their_turn() -> None:
    with silent_server() as server:
        client = NativeClient()
        wanted = downloads(uploads(6000))
        begun = threading.Event()
        raised: list[ValueError] = []

        def get() -> None:
            try:
                client.get(downloads(uploads(6000)), [server], 600_000)
            except ValueError as error:
                raised.append(error)

        running = threading.Thread(target=client.get, args=(wanted, [server], 600_000, lambda *_: begun.set()))
        running.start()
        assert begun.wait(PATIENCE_S)
        waiting = threading.Thread(target=get)
        waiting.start()
        client.close()
        for thread in (running, waiting):
            thread.join()
        assert wanted[0].status is Status.CANCELLED
        assert [str(error) for error in raised] == ["the client was closed"]


def test_threads_may_share_a_client(full_sky: LocalConstellation) -> None:
    servers = servers_of(full_sky.constellation)
    failed: list[BaseException] = []
    with NativeClient() as client:

        def work() -> None:
            try:
                for _ in range(5):
                    check_round_trip(client, servers, uploads(200_000))
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failed
