"""The control plane against answers that are late, lost, forged or wrong; `test_sky.py` has it with real satellites."""

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest

from skymemory.link.ask import Ask
from skymemory.link.control import ControlPlane
from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import Packet, PacketError, decode
from support.openings import opened

HERE = Satellite(3, 10)
DIRECT = Route(HERE, HERE)
Reply = Callable[[Packet, int], list[Packet | bytes]]


def answer(request: Packet, **fields: object) -> Packet:
    base = replace(request, is_request=False, src=request.dst, dst=request.src, deadline_ms=0, seq_count=0, time_s=1, flags=0)
    return replace(base, **fields)  # type: ignore[arg-type]  # fields are named by the test


@contextmanager
def peer(reply: Reply, openings_lost: int = 0) -> Iterator[tuple[Constellation, list[Packet]]]:
    """Something at satellite [3, 10]'s address that answers the nth packet with what `reply(packet, n)` says."""
    heard: list[Packet] = []
    lost = iter(range(openings_lost))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as endpoint:
        endpoint.bind((Constellation().address(*HERE), 0))
        sky = Constellation().replace(network={"port": endpoint.getsockname()[1]})

        def serve() -> None:
            while True:
                datagram, source = endpoint.recvfrom(65535)
                if not datagram:
                    return
                request = decode(datagram)
                if (opening := opened(request)) is not None:
                    if next(lost, None) is None:
                        endpoint.sendto(opening.encode(), source)
                    continue
                heard.append(request)
                for packet in reply(request, len(heard)):
                    endpoint.sendto(packet if isinstance(packet, bytes) else packet.encode(), source)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield sky, heard
        finally:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as closer:
                closer.sendto(b"", endpoint.getsockname())
            thread.join()


def test_round_trip_time_is_measured() -> None:
    with peer(lambda request, _: [answer(request)]) as (sky, heard), ControlPlane(sky) as control:
        assert 0 < control.ping([DIRECT], 5)[HERE] < 5
        assert heard[0].src == control.host
        assert 1 <= control.host.slot <= 65535
        assert 1 <= heard[0].deadline_ms <= 5000
        assert control.retries == 0


def test_lost_requests_are_repeated() -> None:
    with peer(lambda request, nth: [answer(request)] if nth >= 3 else []) as (sky, heard), ControlPlane(sky) as control:
        assert HERE in control.ping([DIRECT], 10)
        assert len({request.request_id for request in heard}) == 1
        # On a busy machine the third may be answered so late that a fourth was sent, which may not have been read yet.
        assert control.retries >= 2
        assert 3 <= len(heard) <= control.retries + 1


def test_busy_is_asked_again() -> None:
    def reply(request: Packet, nth: int) -> list[Packet | bytes]:
        return [answer(request, status=icd.STATUS_BUSY if nth < 3 else icd.STATUS_OK)]

    with peer(reply) as (sky, heard), ControlPlane(sky) as control:
        assert HERE in control.ping([DIRECT], 10)
        assert len(heard) >= 3  # more if an answer came late


def test_a_number_that_another_host_has_is_given_up() -> None:
    with ExitStack() as stack:
        numbers: list[Satellite] = []

        def reply(request: Packet, _: int) -> list[Packet | bytes]:
            return [answer(request, status=icd.STATUS_REFUSED if request.src == numbers[0] else icd.STATUS_OK)]

        sky, heard = stack.enter_context(peer(reply))
        control = stack.enter_context(ControlPlane(sky))
        numbers.append(control.host)
        answers = control.exchange([Ask(DIRECT, icd.OP_PING)] * 3, 10)
        assert all(found is not None and found.ok for found in answers)
        assert {request.src for request in heard} == {numbers[0], control.host}
        assert control.host != numbers[0]


def test_a_host_that_is_refused_for_good_is_told_so() -> None:
    with peer(lambda request, _: [answer(request, status=icd.STATUS_REFUSED)]) as (sky, heard), ControlPlane(sky) as control:
        (found,) = control.exchange([Ask(DIRECT, icd.OP_PING)], 10)
        assert found is not None
        assert found.status == icd.STATUS_REFUSED
        assert len({request.src for request in heard}) == 2


def test_a_satellite_that_refuses_keys_does_so_until_it_says_otherwise() -> None:
    says: list[int | None] = [icd.STATUS_UNAUTHENTICATED]

    def reply(request: Packet, _: int) -> list[Packet | bytes]:
        return [] if says[0] is None else [answer(request, status=says[0])]

    with peer(reply) as (sky, _), ControlPlane(sky) as control:
        for says[0], refused in ((icd.STATUS_UNAUTHENTICATED, {HERE}), (None, {HERE}), (icd.STATUS_OK, set())):
            control.exchange([Ask(DIRECT, icd.OP_PING)], 10 if says[0] is not None else 0.1)
            assert control.refused == refused


def test_patience_follows_the_round_trip_and_not_lost_openings() -> None:
    with (
        peer(lambda request, _: [answer(request)], openings_lost=2) as (sky, _),  # the first answer comes after 0.5 s
        ControlPlane(sky) as control,
    ):
        unknown = control.patience_s([DIRECT])
        for _ in range(30):
            control.ping([DIRECT], 10)
        assert control.patience_s([DIRECT]) < unknown


def test_silence_ends_at_the_deadline() -> None:
    with peer(lambda *_: []) as (sky, _), ControlPlane(sky) as control:
        start = time.monotonic()
        assert control.exchange([Ask(DIRECT, icd.OP_PING)], 0.2) == [None]
        assert time.monotonic() - start >= 0.2


FORGED: dict[str, dict[str, object]] = {
    "another number": {"request_id": 12345},
    "another operation": {"op": icd.OP_HAS},
    "another host": {"dst": Satellite(0, 0)},
    "another satellite": {"src": Satellite(1, 1)},
    "another application": {"apid": icd.APID_ISL},
    "a request": {"is_request": True, "time_s": 0},
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_forged_answers_do_not_count(forged: dict[str, object]) -> None:
    def reply(request: Packet, nth: int) -> list[Packet | bytes]:
        return [answer(request, **forged)] if nth == 1 else [answer(request)]

    with peer(reply) as (sky, heard), ControlPlane(sky) as control:
        assert HERE in control.ping([DIRECT], 10)
        assert len(heard) == 2  # the forged one was as good as none


def test_answers_from_another_address_do_not_count() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.bind(("127.18.1.1", 0))
        control_port: list[int] = []

        def reply(request: Packet, nth: int) -> list[Packet | bytes]:
            if nth == 1:
                stranger.sendto(answer(request).encode(), ("127.0.0.1", control_port[0]))
                return []
            return [answer(request)]

        with peer(reply) as (sky, heard), ControlPlane(sky) as control:
            control_port.append(control.port)
            assert HERE in control.ping([DIRECT], 10)
            assert len(heard) == 2


def test_noise_is_passed_over() -> None:
    def reply(request: Packet, _: int) -> list[Packet | bytes]:
        good = answer(request).encode()
        return [b"", b"noise", good[:-1], good[:-1] + bytes([good[-1] ^ 1]), answer(request)]

    with peer(reply) as (sky, heard), ControlPlane(sky) as control:
        assert HERE in control.ping([DIRECT], 10)
        assert len(heard) == 1


def test_a_satellite_on_the_way_may_say_that_it_leads_nowhere() -> None:
    far = Route(Satellite(1, 1), HERE)

    def reply(request: Packet, _: int) -> list[Packet | bytes]:
        return [answer(request, src=HERE, status=icd.STATUS_UNREACHABLE)]

    with peer(reply) as (sky, _), ControlPlane(sky) as control:
        (found,) = control.exchange([Ask(far, icd.OP_PING)], 10)
        assert found is not None
        assert (found.ok, found.status) == (False, icd.STATUS_UNREACHABLE)
        assert control.ping([far], 10) == {}


@pytest.mark.parametrize("size", [0, 7, 8 * len(icd.STATS_KVC) - 8, 8 * len(icd.STATS_KVC) + 8])
def test_statistics_of_a_wrong_length_do_not_count(size: int) -> None:
    with peer(lambda request, _: [answer(request, payload=bytes(size))]) as (sky, _), ControlPlane(sky) as control:
        assert control.store_stats([DIRECT], 5) == {}
        assert control.link_stats([DIRECT], 5) == {}


def tenants_of(request: Packet, count: int, at_once: int) -> Packet:
    """Return the answer of a satellite with `count` records of tenants, of which a packet has room for `at_once`."""
    fixed = [0] * len(icd.STATS_KVC)
    fixed[icd.STATS_KVC_TENANTS] = count
    numbers = range(count)[request.chunk_id - 1 : request.chunk_id - 1 + at_once] if request.chunk_id else ()
    some = [[icd.UDP_PORT + number, *range(len(icd.STATS_TENANT) - 1)] for number in numbers]
    values = [*fixed, *(value for record in some for value in record)]
    return answer(request, payload=struct.pack(f">{len(values)}Q", *values))


@pytest.mark.parametrize(("count", "at_once", "packets"), [(0, 13, 1), (17, 13, 2), (17, 1, 17), (3, 3, 1), (3, 0, 1)])
def test_tenants_are_asked_for_until_all_are_here(count: int, at_once: int, packets: int) -> None:
    with peer(lambda request, _: [tenants_of(request, count, at_once)]) as (sky, heard), ControlPlane(sky) as control:
        found = control.tenant_stats([DIRECT], 10)[HERE]
        assert [one.number for one in found] == [icd.UDP_PORT + index for index in range(count if at_once else 0)]
        assert all(one[1:] == tuple(range(len(icd.STATS_TENANT) - 1)) for one in found)
        assert len(heard) == packets
        assert control.store_stats([DIRECT], 10)[HERE]["tenants"] == count


def test_a_satellite_cannot_have_itself_asked_for_ever() -> None:
    def reply(request: Packet, _: int) -> list[Packet | bytes]:
        return [tenants_of(replace(request, chunk_id=1), 2**62, 1)]

    with peer(reply) as (sky, heard), ControlPlane(sky) as control:
        assert len(control.tenant_stats([DIRECT], 10)[HERE]) == icd.LIMIT_TENANTS + 1
        assert len(heard) == icd.LIMIT_TENANTS + 1


def test_a_silent_satellite_has_no_tenants() -> None:
    with peer(lambda *_: []) as (sky, _), ControlPlane(sky) as control:
        assert control.tenant_stats([DIRECT], 0.1) == {}


def test_many_requests_at_once() -> None:
    with peer(lambda request, _: [answer(request)]) as (sky, heard), ControlPlane(sky) as control:
        answers = control.exchange([Ask(DIRECT, icd.OP_HAS, key=bytes([n % 256] * 32)) for n in range(1000)], 30)
        assert [found.raw.key[0] for found in answers if found is not None] == [n % 256 for n in range(1000)]
        assert len(heard) >= 1000


def test_threads_take_turns() -> None:
    with peer(lambda request, _: [answer(request)]) as (sky, _), ControlPlane(sky) as control:
        found: list[int] = []
        threads = [threading.Thread(target=lambda: found.append(len(control.ping([DIRECT] * 20, 10)))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [1] * 4


def test_what_is_asked_of_a_closed_control_plane_says_so() -> None:
    with peer(lambda *_: []) as (sky, _):
        control = ControlPlane(sky)
        host, port = control.host, control.port
        control.close()
        calls: list[Callable[[], object]] = [
            lambda: control.exchange([Ask(DIRECT, icd.OP_PING)], 1),
            lambda: control.patience_s([DIRECT]),
            lambda: control.hurry_s([DIRECT]),
            lambda: control.expect({HERE: 0.01}),
            control.new_host,
            control.suites,
        ]
        for call in calls:
            with pytest.raises(ValueError, match="closed"):
                call()
        assert (control.host, control.port) == (host, port)


def test_wrong_arguments() -> None:
    with ControlPlane(Constellation()) as control:
        with pytest.raises(ValueError, match=r"\[9, 9\] is outside"):
            control.ping([Route(HERE, Satellite(9, 9))], 1)
        with pytest.raises(PacketError, match="message of 1025 bytes; 1024 are allowed"):
            control.relay([DIRECT], bytes(1025), 1)
        assert control.exchange([], 1) == []
    control.close()  # twice
    with pytest.raises(ValueError, match="the control plane was closed"):
        control.ping([DIRECT], 1)
