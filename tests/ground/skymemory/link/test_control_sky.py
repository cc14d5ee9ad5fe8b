"""The control plane with real satellites."""

import threading
from collections.abc import Callable

from spacepackets.ccsds.spacepacket import SpacePacketHeader

from skymemory.fsw.messages import Message
from skymemory.fsw.structures import KVC_HK_TLM_MID, KVC_SEND_HK_MID, KvcHousekeeping
from skymemory.link.control import ControlPlane
from skymemory.sky.entry_satellites import Route
from skymemory.store.sky_store import SkyStore
from skymemory.testbed.local import LocalConstellation
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from support.evictions import evict
from support.satellites import held, migrate
from support.spread import shares_of
from support.waiting import wait_until

KVC_CMD_APID = 0xD0
"""of the cFS message id 0x18D0"""


def command(apid: int, code: int, checksum_error: int = 0) -> bytes:
    """A cFS command without arguments."""
    packet = bytearray(SpacePacketHeader.tc(apid, 0, 1, sec_header_flag=True).pack()) + bytes([code, 0])
    parity = 0xFF
    for byte in packet:
        parity ^= byte
    packet[7] = parity ^ checksum_error
    return bytes(packet)


def routes_of(local: LocalConstellation) -> list[Route]:
    return [Route(satellite, satellite) for satellite in local.constellation.torus.satellites()]


def test_all_satellites_answer_at_once(full_sky: LocalConstellation) -> None:
    routes = routes_of(full_sky)
    with ControlPlane(full_sky.constellation) as control:
        assert set(control.ping(routes, 10)) == set(control.ping(routes, 10, icd.APID_ISL)) == {r.satellite for r in routes}
        assert all(set(counters) == set(icd.STATS_KVC) for counters in control.store_stats(routes, 10).values())
        links = control.link_stats(routes, 10)
    assert len(links) == 95
    torus = full_sky.constellation.torus
    for satellite, stats in links.items():
        for direction, neighbour in torus.neighbours(satellite).items():
            record = stats.links[direction.value]
            assert Satellite(record["plane"], record["slot"]) == neighbour


def test_all_satellites_answer_over_links(full_sky: LocalConstellation) -> None:
    far = [Route(satellite, Satellite(1, 1)) for satellite in full_sky.constellation.torus.satellites()]
    with ControlPlane(full_sky.constellation) as control:
        assert len(control.ping(far, 10)) == 95


def test_migrate_takes_chunks_to_another_satellite(full_sky: LocalConstellation) -> None:
    sky, key, target = full_sky.constellation.replace(cache={"parity": 0}), b"m" * 32, Satellite(1, 3)
    with SkyStore(sky) as store:
        store.put([(key, bytes(6000))])  # one chunk: on one satellite
        source = shares_of(sky, key, 6000)[0]
        control, here, there = store.control, Route(source, source), Route(target, target)
        assert migrate(control, here, target, key).ok
        # The answer says that it has begun
        wait_until(lambda: held(control, [here], key) == [None], "the chunk has left")
        [moved] = held(control, [there], key)
        assert moved is not None
        assert (moved.block_len, moved.chunk_total) == (6000, 1)
        assert evict(control, [there], [key]) == (1, True)
        assert held(control, [here, there], key) == [None, None]


def test_what_is_purged_at_one_satellite_is_gone_there_alone(full_sky: LocalConstellation) -> None:
    sky, key = full_sky.constellation.replace(cache={"parity": 0}), b"n" * 32
    with SkyStore(sky) as store:
        [stored] = store.put([(key, bytes(12_000))])
        assert stored.entry is not None
        first, second = (Route(one, one) for one in shares_of(sky, key, 12_000)[:2])
        store.control.purge_at([first.satellite], stored.entry, sky.cache.tenant)
        gone, left = held(store.control, [first, second], key)
    assert gone is None
    assert left is not None


def test_a_hurry_goes_by_what_was_measured(full_sky: LocalConstellation) -> None:
    near, far, unknown = [Route(Satellite(1, slot), Satellite(1, slot)) for slot in (1, 2, 3)]
    with ControlPlane(full_sky.constellation) as control:
        before_s = control.hurry_s([near])
        assert control.hurry_s([]) == 0
        control.expect({near.satellite: 0.001, far.satellite: 0.02})
        assert control.hurry_s([near]) < control.hurry_s([near, far]) < before_s == control.hurry_s([near, far, unknown])
        assert control.hurry_s([near, far]) < control.patience_s([near, far])
        known_s = control.hurry_s([far])
        control.expect({far.satellite: 0.1})  # this one has measured itself
        assert control.hurry_s([far]) == known_s


def test_relay_puts_commands_on_the_bus(full_sky: LocalConstellation) -> None:
    routes = [Route(Satellite(2, 2), Satellite(2, 2)), Route(Satellite(4, 4), Satellite(2, 2))]
    with ControlPlane(full_sky.constellation) as control:

        def statuses(message: bytes) -> set[str]:
            answers = control.relay(routes, message, 5)
            return {icd.STATUSES[answer.status] for answer in answers if answer is not None}

        assert statuses(command(KVC_CMD_APID, 0)) == {"ok"}
        assert statuses(command(KVC_CMD_APID, 0, checksum_error=1)) == {"bad_checksum"}
        assert statuses(command(1, 0)) == {"refused"}  # cFE's own commands are not for the ground
        assert statuses(b"short") == {"bad_length"}


def test_a_command_whose_answer_is_lost_is_carried_out_once(start_sky: Callable[..., LocalConstellation]) -> None:
    local = start_sky(links={"model": "geometry", "loss_ppm": 200_000})
    route = Route(Satellite(2, 2), Satellite(2, 2))
    enough = threading.Event()
    with ControlPlane(local.constellation) as control, ControlPlane(local.constellation) as listener:
        sent = 0
        while sent < 25 or (control.retries <= 2 and sent < 200):  # the counter has 8 bits
            sent += 1
            answer = control.relay([route], command(KVC_CMD_APID, 0), 60)[0]
            assert answer is not None
            assert answer.ok
        assert control.retries > 2

        def ask() -> None:
            while not enough.wait(0.1):
                control.relay([route], Message(KVC_SEND_HK_MID).encode(), 60)

        thread = threading.Thread(target=ask)
        thread.start()
        counters = b""
        for _, packet in listener.listen([route], 60):
            if (message := Message.decode(packet)).mid == KVC_HK_TLM_MID:
                counters = message.payload
                break
        enough.set()
        thread.join()
    assert KvcHousekeeping.from_buffer_copy(counters).command_counter == sent


def test_telemetry_comes_back(full_sky: LocalConstellation) -> None:
    """A NOOP makes an event, and events are telemetry."""
    route = Route(Satellite(5, 5), Satellite(5, 5))
    enough = threading.Event()
    with ControlPlane(full_sky.constellation) as listener, ControlPlane(full_sky.constellation) as sender:

        def send() -> None:
            while not enough.wait(0.05):
                sender.relay([route], command(KVC_CMD_APID, 0), 5)

        thread = threading.Thread(target=send)
        thread.start()
        heard: list[tuple[Satellite, bytes]] = []
        for _ in range(20):
            heard += listener.listen([route], 0.5)
            if any(b"KVC" in message for _, message in heard):
                break
        enough.set()
        thread.join()
    assert {satellite for satellite, _ in heard} == {route.satellite}
    assert any(b"KVC" in message for _, message in heard)
