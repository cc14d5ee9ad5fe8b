"""Telemetry that satellites send to this host for the time of a lease. What comes is not trusted."""

import errno
import secrets
import selectors
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from skymemory.sky.constellation import Constellation
from skymemory.sky.entry_satellites import Route
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import GROUND_PLANE, Packet, PacketError, decode

_RENEW_S: Final = 2.0
"""Seconds between two renewals of a lease."""
_LOOK_S: Final = 0.25
"""Seconds between two looks whether to stop."""
_AT_ONCE_MAX: Final = 1024
"""Packets that are read between two looks at the clock."""
_RECEIVE_BUFFER_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class _Lease:
    """A request for one satellite's telemetry, and the endpoint that it is sent to."""

    packet: Packet
    endpoint: tuple[str, int]

    def covers(self, packet: Packet, endpoint: tuple[str, int]) -> bool:
        """Return True if a packet is telemetry that was asked for here."""
        asked = self.packet
        return (
            endpoint == self.endpoint
            and not packet.is_request
            and bool(packet.flags & icd.FLAG_TLM)
            and packet.status == icd.STATUS_OK
            and (packet.op, packet.apid, packet.src, packet.dst) == (asked.op, asked.apid, asked.dst, asked.src)
        )


def listen(
    constellation: Constellation, routes: Sequence[Route], duration_s: float, stopped: Callable[[], bool]
) -> Iterator[tuple[Satellite, bytes]]:
    """Yield messages from the Software Bus of satellites as they come, each with its headers.

    Args:
        stopped: Function that is called now and then; True ends the listening early.
    """
    end_s = time.monotonic() + duration_s
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as endpoint,
        selectors.DefaultSelector() as selector,
    ):
        endpoint.setblocking(False)
        endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
        endpoint.bind(("", 0))
        selector.register(endpoint, selectors.EVENT_READ)
        leases = {lease.packet.request_id: lease for lease in _leases(constellation, routes)}
        renew_s = 0.0
        while (now_s := time.monotonic()) < end_s and not stopped():
            if now_s >= renew_s:
                left_ms = round(min(max(1.0, (end_s - now_s) * 1000), 0xFFFFFFFF))
                for lease in leases.values():
                    _send(endpoint, lease, left_ms)
                renew_s = now_s + _RENEW_S
            selector.select(max(0.0, min(end_s, renew_s, now_s + _LOOK_S) - time.monotonic()))
            for packet, source in _received(endpoint):
                asked = leases.get(packet.request_id)
                if asked is not None and asked.covers(packet, source):
                    yield packet.src, packet.payload


def _leases(constellation: Constellation, routes: Sequence[Route]) -> Iterator[_Lease]:
    host = Satellite(GROUND_PLANE, 1 + secrets.randbelow(65535))
    first_id = secrets.randbits(62)
    for index, route in enumerate(routes):
        packet = Packet(
            is_request=True,
            apid=icd.APID_ISL,
            op=icd.OP_RELAY,
            src=host,
            dst=route.satellite,
            request_id=first_id + index,
            flags=icd.FLAG_TLM,
            seq_count=(first_id + index) & icd.SEQ_COUNT_MASK,
        )
        yield _Lease(packet, (constellation.address(*route.entry), constellation.network.port))


def _send(endpoint: socket.socket, lease: _Lease, left_ms: int) -> None:
    try:
        endpoint.sendto(lease.packet.encode(deadline_ms=left_ms), lease.endpoint)
    except OSError as error:  # the queue is full, or no way leads there now; the lease is renewed soon
        if error.errno == errno.EBADF:
            raise


def _received(endpoint: socket.socket) -> Iterator[tuple[Packet, tuple[str, int]]]:
    """Yield the packets that are here; other datagrams are passed over."""
    for _ in range(_AT_ONCE_MAX):  # bounded, so that a flood does not stop the clock
        try:
            datagram, source = endpoint.recvfrom(icd.LIMIT_PACKET_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except ConnectionError:
            continue
        try:
            yield decode(datagram), source
        except PacketError:
            continue
