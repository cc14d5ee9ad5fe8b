"""Somebody who sits on the paths between hosts and all satellites of a constellation."""

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from selectors import EVENT_READ, DefaultSelector

from skymemory.sky.constellation import Constellation
from skymemory.testbed.local import free_port
from skymemory.wire import icd
from skymemory.wire.address import Satellite
from skymemory.wire.packets import Packet, decode

Change = Callable[[Packet], Iterable[Packet]]
"""What comes instead of an answer. Those to requests for a cookie come as they are."""
Lie = Callable[[Satellite, Packet], Iterable[Packet] | None]
"""What a request to a satellite is answered with, so that it does not get there; None: it does."""
_LOOK_S = 0.05
_ALL = 65536
_BUFFER_BYTES = 4 << 20


@dataclass
class _Path:
    """The path to one satellite."""

    satellite: Satellite
    here: socket.socket
    """Where the satellite seems to listen."""
    there: socket.socket
    host: tuple[str, int] | None = None


def _as_it_is(packet: Packet) -> Iterable[Packet]:
    return [packet]


def _carried(_: Satellite, __: Packet) -> None:
    return None


@contextmanager
def on_path(
    sky: Constellation, change: Change = _as_it_is, lie: Lie = _carried, *, from_elsewhere: bool = False
) -> Iterator[Constellation]:
    """Sit on all paths: hosts of the constellation that this yields get what the one in between lets through.

    Args:
        from_elsewhere: Answers come from another port.
    """
    seen = sky.replace(network={"port": free_port(sky)})
    with ExitStack() as stack:
        selector = stack.enter_context(DefaultSelector())

        def opened(address: tuple[str, int] | None = None) -> socket.socket:
            end = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
            end.setblocking(False)
            if address is not None:
                end.bind(address)
            return end

        elsewhere = opened(("127.0.0.1", 0))
        for satellite in sky.torus.satellites():
            address = sky.address(*satellite)
            path = _Path(satellite, opened((address, seen.network.port)), opened())
            path.there.connect((address, sky.network.port))
            selector.register(path.here, EVENT_READ, path)
            selector.register(path.there, EVENT_READ, path)

        def out(path: _Path, data: bytes) -> None:
            request = decode(data)
            answers = None if request.op == icd.OP_ASSOCIATE else lie(path.satellite, request)
            if answers is None:
                path.there.send(data)
                return
            assert path.host is not None
            for answer in answers:
                path.here.sendto(answer.encode(), path.host)

        def back(path: _Path, data: bytes) -> None:
            packet = decode(data)
            opens = packet.op == icd.OP_ASSOCIATE
            assert path.host is not None
            for answer in [packet] if opens else change(packet):
                (elsewhere if from_elsewhere and not opens else path.here).sendto(answer.encode(), path.host)

        over = threading.Event()

        def carry() -> None:
            while not over.is_set():
                for key, _ in selector.select(_LOOK_S):
                    path: _Path = key.data
                    try:
                        if key.fileobj is path.here:
                            data, path.host = path.here.recvfrom(_ALL)
                            out(path, data)
                        else:
                            back(path, path.there.recv(_ALL))
                    except (BlockingIOError, ConnectionRefusedError):
                        pass

        thread = threading.Thread(target=carry)
        thread.start()
        try:
            yield seen
        finally:
            over.set()
            thread.join()
