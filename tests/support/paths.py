"""Paths between clients and satellites, which can be cut: for each client a relay before every satellite, at a port of its own.

All relays are in one process, which passes datagrams on as they are.
"""

import multiprocessing
import os
import select
import socket
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Final, NamedTuple, Self

from skymemory.sky.constellation import Constellation
from skymemory.testbed.local import free_port
from skymemory.wire.address import Satellite

_DATAGRAM: Final = 65536
_AT_ONCE: Final = 64
"""Datagrams that are passed on before other sockets have their turn."""
_BUFFER_BYTES: Final = 4 << 20
_END_S: Final = 5.0


class Cut(NamedTuple):
    """What does not pass on the paths of a client."""

    up: frozenset[Satellite] = frozenset()
    """Satellites that get nothing from the client."""
    down: frozenset[Satellite] = frozenset()
    """Satellites whose answers are lost."""


class Paths:
    """The paths of several clients. A context manager."""

    def __init__(self, sky: Constellation, clients: int) -> None:
        self._sky = sky
        self.skies = [sky.replace(network={"port": free_port(sky)})]
        """The constellation as each client sees it."""
        while len(self.skies) < clients:
            if (port := free_port(sky)) not in [one.network.port for one in self.skies]:
                self.skies.append(sky.replace(network={"port": port}))
        spawn = multiprocessing.get_context("spawn")
        self._orders, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_carry, args=(theirs, sky, [one.network.port for one in self.skies]), daemon=True)

    def __enter__(self) -> Self:
        self._process.start()
        self._orders.recv()
        return self

    def __exit__(self, *_: object) -> None:
        self._orders.send(None)
        self._process.join(_END_S)
        self._process.kill()

    def cut(self, client: int, up: Collection[Satellite] = (), down: Collection[Satellite] = ()) -> None:
        """Cut these paths of a client, and restore all others of it."""
        self._orders.send((client, Cut(frozenset(up), frozenset(down))))
        self._orders.recv()


class _Relays:
    """The relays of all clients."""

    def __init__(self, sky: Constellation, ports: Sequence[int]) -> None:
        self.cuts = [Cut() for _ in ports]
        self.poll = select.epoll()
        self.takes: dict[int, Callable[[], None]] = {}
        """By descriptor: what is done if something has come."""
        for client, port in enumerate(ports):
            for place in sky.torus.satellites():
                self._front(client, place, (sky.address(*place), port), (sky.address(*place), sky.network.port))

    def _front(self, client: int, place: Satellite, here: tuple[str, int], there: tuple[str, int]) -> None:
        front = self._socket()
        front.bind(here)
        backs: dict[tuple[str, int], socket.socket] = {}

        def take() -> None:
            data, sender = front.recvfrom(_DATAGRAM)
            if place in self.cuts[client].up:
                return
            if sender not in backs:
                backs[sender] = self._back(client, place, front, sender, there)
            backs[sender].send(data)

        self._watch(front, take)

    def _back(
        self, client: int, place: Satellite, front: socket.socket, host: tuple[str, int], there: tuple[str, int]
    ) -> socket.socket:
        """Return a socket that stands for one socket of a host."""
        back = self._socket()
        back.connect(there)

        def take() -> None:
            data = back.recv(_DATAGRAM)
            if place not in self.cuts[client].down:
                front.sendto(data, host)

        self._watch(back, take)
        return back

    def _socket(self) -> socket.socket:
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        one.setblocking(False)
        return one

    def _watch(self, one: socket.socket, take: Callable[[], None]) -> None:
        self.takes[one.fileno()] = take
        self.poll.register(one.fileno(), select.EPOLLIN)


def _carry(orders: Connection, sky: Constellation, ports: Sequence[int]) -> None:
    with suppress(OSError):  # a path does not wait for a processor
        os.nice(-10)
    relays = _Relays(sky, ports)
    relays.poll.register(orders.fileno(), select.EPOLLIN)
    orders.send("ready")
    while True:
        for descriptor, _ in relays.poll.poll():
            if descriptor == orders.fileno():
                if (order := orders.recv()) is None:
                    return
                relays.cuts[order[0]] = order[1]
                orders.send("done")
                continue
            with suppress(BlockingIOError, ConnectionRefusedError):  # all is taken; the satellite is gone, or the host is
                for _ in range(_AT_ONCE):
                    relays.takes[descriptor]()
