"""Recorded packets: a ground host talks to a sky over relays, one before each satellite, which keep what it sends."""

import socket
import threading
from contextlib import suppress
from selectors import EVENT_READ, DefaultSelector
from types import TracebackType
from typing import Final, Self

from skymemory.sky.constellation import Constellation
from skymemory.wire.packets import Packet, decode
from support.ports import free_ports

_DATAGRAM: Final = 65536
_LOOK_S: Final = 0.05


class RecordedSky:
    """A sky as a ground host sees it over the relays. A context manager."""

    def __init__(self, sky: Constellation) -> None:
        """Bind the relays' sockets."""
        self.constellation = sky.replace(network={"port": free_ports(1)[0]})
        """The same sky, for the host."""
        self._datagrams: list[bytes] = []
        self._ways = DefaultSelector()
        self._hosts: dict[tuple[socket.socket, tuple[str, int]], socket.socket] = {}
        for place in sky.torus.satellites():
            front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            front.bind((sky.address(*place), self.constellation.network.port))
            self._ways.register(front, EVENT_READ, (sky.address(*place), sky.network.port))
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._carry)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()
        for key in list(self._ways.get_map().values()):
            self._ways.unregister(key.fileobj)
            key.fileobj.close()
        self._ways.close()

    def sent(self) -> list[Packet]:
        """Return the packets that the host has sent so far."""
        return [decode(datagram) for datagram in self._datagrams]

    def _carry(self) -> None:
        while not self._ended.is_set():
            for key, _ in self._ways.select(_LOOK_S):
                with suppress(ConnectionRefusedError):  # the satellite is gone
                    self._pass_on(key.fileobj, key.data)

    def _pass_on(self, here: socket.socket, there: tuple[str, int] | tuple[socket.socket, tuple[str, int]]) -> None:
        datagram, sender = here.recvfrom(_DATAGRAM)
        if isinstance(there[0], socket.socket):  # an answer
            there[0].sendto(datagram, there[1])
            return
        self._datagrams.append(datagram)
        if (here, sender) not in self._hosts:
            back = self._hosts[here, sender] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            back.connect(there)
            self._ways.register(back, EVENT_READ, (here, sender))
        self._hosts[here, sender].send(datagram)
