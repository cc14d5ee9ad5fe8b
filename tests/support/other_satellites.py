"""Satellites of another version of the program, on loopback: they refuse each packet as the real ones do."""

import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from skymemory.sky.constellation import Constellation
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import Packet, decode
from support.raw_host import crc16

_LOOK_S: Final = 0.05
_START: Final = icd.PRIMARY_BYTES + icd.RESPONSE_SECONDARY_BYTES


def refused(request: Packet, version: int) -> bytes:
    """Return `bad_version` in what every version has, with this version in its header."""
    answer = Packet(
        is_request=False,
        apid=request.apid,
        op=request.op,
        status=icd.STATUS_BAD_VERSION,
        src=request.dst,
        dst=request.src,
        gateway=request.dst,
        request_id=request.request_id,
        key=request.key,
    )
    whole = bytearray(answer.encode()[: _START + icd.BASE_HEADER_BYTES])
    whole[_START + icd.OFF_VERSION] = version
    whole[4:6] = (len(whole) + icd.PEC_BYTES - icd.PRIMARY_BYTES - 1).to_bytes(2)
    return bytes(whole) + crc16(bytes(whole)).to_bytes(icd.PEC_BYTES)


class OtherSatellites:
    """Satellites that speak another version, at the addresses of these. A context manager."""

    def __init__(self, constellation: Constellation, satellites: Iterable[Satellite], version: int) -> None:
        """Bind the sockets."""
        self.version = version
        self.asked = 0
        """Packets that came."""
        self.spoil: Callable[[bytes], bytes] = lambda answer: answer
        """Function that damages an answer before it goes."""
        self.answers_from: socket.socket | None = None
        """Socket that answers instead of the satellite's."""
        self._sockets = []
        for one in satellites:
            listening = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            listening.bind((constellation.address(*one), constellation.network.port))
            listening.settimeout(_LOOK_S)
            self._sockets.append(listening)
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._serve, args=(one,)) for one in self._sockets]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self._ended.set()
        for thread, listening in zip(self._threads, self._sockets, strict=True):
            thread.join()
            listening.close()

    def _serve(self, listening: socket.socket) -> None:
        while not self._ended.is_set():
            with suppress(TimeoutError):
                datagram, address = listening.recvfrom(65536)
                self.asked += 1
                answer = self.spoil(refused(decode(datagram), self.version))
                (self.answers_from or listening).sendto(answer, address)
