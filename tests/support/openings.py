"""How a ground host asks a satellite to serve it, and what stand-ins of satellites answer, in tests that speak packets."""

import socket
from dataclasses import replace

from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import Packet, decode

COOKIE = 0x5C00_71E5
"""Cookie that stand-ins give out."""


def opened(request: Packet) -> Packet | None:
    """Return the answer to a request for a cookie; None if the request is another one."""
    if request.op != icd.OP_ASSOCIATE:
        return None
    return replace(
        request,
        is_request=False,
        src=request.dst,
        dst=request.src,
        deadline_ms=0,
        seq_count=0,
        flags=0,
        cookie=COOKIE,
        payload=b"",
    )


def ask_cookie(host: socket.socket, address: tuple[str, int], src: Satellite, dst: Satellite) -> int:
    """Return the cookie that a satellite gives a host, whose requests need it.

    Args:
        host: The socket that the requests go out from, with a timeout.
        address: Where the satellite listens.
        src: The host.
        dst: The satellite.
    """
    request = Packet(is_request=True, apid=icd.APID_ISL, op=icd.OP_ASSOCIATE, src=src, dst=dst, request_id=0xC00C1E)
    host.sendto(request.encode(), address)
    answer = decode(host.recv(65536))
    assert answer.status == icd.STATUS_COOKIE
    return answer.cookie
