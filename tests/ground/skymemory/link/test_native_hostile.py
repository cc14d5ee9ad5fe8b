"""The native engine on bad terms with its surroundings: forged answers, host numbers in use, paths that take no large packets."""

import json
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from skymemory.link.block_entry import BlockEntry
from skymemory.link.native import NativeClient, Server, Transfer
from skymemory.sky.entry_satellites import server_routes
from skymemory.sky.whereabouts import Whereabouts
from skymemory.testbed.local import LocalConstellation
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.icd import Status
from skymemory.wire.packets import Packet, decode
from support.openings import ask_cookie

DEADLINE_MS = 20_000
SHORT_MS = 2000
Endpoint = tuple[str, int]
Change = Callable[[Packet], Packet]


def upload() -> Transfer:
    return Transfer(BlockEntry(random.randbytes(32), 30_000, 6000, 5, 0, 0.0), 0, random.randbytes(30_000))


def download(stored: Transfer) -> Transfer:
    return Transfer(stored.entry, stored.tenant, bytearray(stored.entry.block_len))


@contextmanager
def path_to(satellite: Endpoint, change: Change, *, from_elsewhere: bool) -> Iterator[Endpoint]:
    """A path to a satellite on which somebody sits: what comes back is changed, and comes from another port if so told."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as there,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as elsewhere,
    ):
        for end in (here, there, elsewhere):
            end.bind(("127.0.0.1", 0))
            end.settimeout(0.01)
        over = threading.Event()
        client: list[Endpoint] = []

        def carry() -> None:
            while not over.is_set():
                try:
                    data, sender = here.recvfrom(65536)
                    client[:] = [sender]
                    there.sendto(data, satellite)
                except TimeoutError:
                    pass
                try:
                    while True:
                        packet = decode(there.recv(65536))
                        opens = packet.op == icd.OP_ASSOCIATE
                        answer = (packet if opens else change(packet)).encode()
                        (elsewhere if from_elsewhere and not opens else here).sendto(answer, client[0])
                except TimeoutError:
                    pass

        thread = threading.Thread(target=carry)
        thread.start()
        try:
            yield here.getsockname()
        finally:
            over.set()
            thread.join()


def test_answers_count_only_from_where_they_are_waited_for(full_sky: LocalConstellation) -> None:
    satellite = Satellite(2, 2)
    direct = (full_sky.constellation.address(*satellite), full_sky.constellation.network.port)

    def as_it_is(packet: Packet) -> Packet:
        return packet

    def from_another_satellite(packet: Packet) -> Packet:
        return replace(packet, src=Satellite(3, 3))

    stored = upload()
    with NativeClient() as client:
        client.put([stored], [(satellite, satellite, *direct)], DEADLINE_MS)
        assert stored.status is Status.DONE
    for change, from_elsewhere, state in (
        (as_it_is, False, Status.DONE),
        (as_it_is, True, Status.EXPIRED),
        (from_another_satellite, False, Status.EXPIRED),
    ):
        with path_to(direct, change, from_elsewhere=from_elsewhere) as path, NativeClient() as client:
            wanted = download(stored)
            client.get([wanted], [(satellite, satellite, *path)], DEADLINE_MS if state is Status.DONE else SHORT_MS)
            assert wanted.status is state
            if state is Status.EXPIRED:
                assert client.counters().rx_stale > 0
            else:  # what was asked for twice is answered twice
                assert client.counters().rx_stale == 0 or wanted.repeats > 0


@pytest.mark.parametrize("code", [icd.STATUS_EXPIRED, *sorted(icd.HOST_STATUSES), icd.STATUS_COUNT, 255])
def test_a_satellite_cannot_say_what_is_for_the_host_to_say(full_sky: LocalConstellation, code: int) -> None:
    """A miss, for one, would have the block purged."""
    satellite = Satellite(2, 2)
    direct = (full_sky.constellation.address(*satellite), full_sky.constellation.network.port)

    def with_the_status_of_a_host(packet: Packet) -> Packet:
        return replace(packet, status=code, payload=b"", chunk_len=0, offset=0, chunk_crc=0)

    stored = upload()
    with NativeClient() as client:
        client.put([stored], [(satellite, satellite, *direct)], DEADLINE_MS)
    with path_to(direct, with_the_status_of_a_host, from_elsewhere=False) as path, NativeClient() as client:
        wanted = download(stored)
        client.get([wanted], [(satellite, satellite, *path)], DEADLINE_MS)
        assert (wanted.status, wanted.last_status) == (Status.REFUSED, code)


def test_a_host_number_in_use_is_drawn_again(full_sky: LocalConstellation) -> None:
    sky = full_sky.constellation.replace(cache={"uplink": "nearest"})  # so that most chunks are forwarded
    port = sky.network.port
    servers: list[Server] = [
        (satellite, entry, sky.address(*entry), port) for satellite, entry in server_routes(Whereabouts(sky), time.time())
    ]
    satellite, entry = next((satellite, entry) for satellite, entry, *_ in servers if satellite != entry)
    with NativeClient() as client, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        number = client.counters().host_number
        other.settimeout(10)
        address = (sky.address(*entry), port)
        itself = Satellite(0, number)
        cookie = ask_cookie(other, address, itself, entry)
        ping = Packet(is_request=True, apid=icd.APID_KVC, op=icd.OP_PING, src=itself, dst=satellite, request_id=1, cookie=cookie)
        other.sendto(ping.encode(), address)
        assert decode(other.recv(65536)).status == icd.STATUS_OK  # the number is the other's now
        stored = upload()
        client.put([stored], servers, DEADLINE_MS)
        wanted = download(stored)
        client.get([wanted], servers, DEADLINE_MS)
        assert (stored.status, wanted.status) == (Status.DONE, Status.DONE)
        assert bytes(wanted.data) == stored.data
        assert client.counters().host_number != number


TOO_LARGE_FOR_THE_PATH = """
import json
import socket
import threading
from dataclasses import replace

from skymemory.link.block_entry import BlockEntry
from skymemory.link.native import NativeClient, Transfer
from skymemory.wire.address import Satellite
from skymemory.wire.packets import decode

satellite = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
satellite.bind(("127.0.0.1", 0))

def open_to_all():
    while True:
        data, sender = satellite.recvfrom(65536)
        request = decode(data)
        satellite.sendto(replace(request, is_request=False, src=request.dst, dst=request.src, cookie=1).encode(), sender)

threading.Thread(target=open_to_all, daemon=True).start()
here = Satellite(1, 1)
results = []
for chunks in (1, 5):
    with NativeClient() as client:
        block = Transfer(BlockEntry(bytes(32), 6000 * chunks, 6000, chunks, 0, 0.0), 0, bytes(6000 * chunks))
        client.put([block], [(here, here, "127.0.0.1", satellite.getsockname()[1])], 60_000)
        results.append([block.status.name, block.last_status, client.counters().tx_offload])
print(json.dumps(results))
"""


def test_packets_that_the_path_does_not_take_end_the_block_at_once() -> None:
    unshare = shutil.which("unshare")
    command = f'ip link set lo up mtu 1500 && exec "{sys.executable}" -'
    if unshare is None or shutil.which("ip") is None or subprocess.run([unshare, "-rn", "true"], check=False).returncode:
        pytest.skip("no network namespaces for ordinary users, or no unshare or ip")
    ran = subprocess.run(
        [unshare, "-rn", "sh", "-c", command],
        input=TOO_LARGE_FOR_THE_PATH,
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent,
    )
    results = json.loads(ran.stdout)
    assert [result[:2] for result in results] == [["TOO_LARGE", icd.STATUS_TOO_LARGE]] * 2
    # A bundle that fails because its packets are too large does not speak against bundles.
    assert len({offload for *_, offload in results}) == 1
