"""Listening for clients: sockets that have an address, and `Acceptor`, which lets clients in as long as there are descriptors.

asyncio's own servers go on asking when the system has no descriptor for another client, and log each time: tens of thousands of
lines in seconds (CPython issue 151615).
"""

import asyncio
import errno
import logging
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from skymemory.common.addresses import address_text
from skymemory.common.port_holder import why_not_bound

_log = logging.getLogger(__name__)

_ACCEPTED_AT_ONCE: Final = 64
"""Clients that are let in before others have their turn."""
_PAUSE_S: Final = 0.5
"""Time until clients are let in again when there was no descriptor."""
_TOLD_S: Final = 60.0
"""Time between two lines of the log about it."""

Take = Callable[[socket.socket, Any], None]
"""Function for a client that was let in. Arguments: its socket, which does not block; its address."""


def bind(host: str, port: int) -> list[socket.socket]:
    """Return sockets that have an address, or all addresses of a name, and take no client yet. They do not block.

    Args:
        port: 0: any that is free, the same for all.

    Raises:
        OSError: The address cannot be taken; `filename` names it.
    """
    found: list[socket.socket] = []
    mistake: OSError | None = None
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise OSError(error.errno, error.strerror, address_text(host, port)) from error
    for family, kind, protocol, _, address in dict.fromkeys(addresses):
        try:
            one = socket.socket(family, kind, protocol)
        except OSError as error:  # for example a machine without IPv6
            mistake = error
            continue
        try:
            one.setblocking(False)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6 and len(addresses) > 1:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind((address[0], found[0].getsockname()[1] if found else port, *address[2:]))
            found.append(one)
        except OSError as error:
            one.close()
            mistake = error
            if error.errno != errno.EADDRNOTAVAIL:
                break
    if mistake is not None and (not found or mistake.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)):
        for one in found:
            one.close()
        raise OSError(mistake.errno, why_not_bound(mistake, "tcp", host, port), address_text(host, port)) from mistake
    return found


def listen_early(host: str, port: int) -> list[socket.socket]:
    """Return sockets where clients wait from now on, for an `Acceptor` that comes later; none if the address cannot be taken."""
    try:
        found = bind(host, port)
    except OSError:  # whoever serves there says so in its turn
        return []
    for one in found:
        one.listen(socket.SOMAXCONN)
    return found


class Acceptor:
    """Lets clients of some sockets in. Used from one event loop."""

    def __init__(self, sockets: Sequence[socket.socket], take: Take, who: str) -> None:
        """Do nothing yet.

        Args:
            sockets: Sockets that have their addresses and do not block; they are closed with this.
            take: Called with each client.
            who: Words for the clients in the log, such as `Redis clients`.
        """
        self._sockets = list(sockets)
        self._take = take
        self._who = who
        self._told_s: float | None = None

    @property
    def address(self) -> Any:
        """Address of the first socket."""
        return self._sockets[0].getsockname()

    def start(self) -> None:
        """Listen, and let clients in from now on.

        Raises:
            OSError: The system does not let it.
        """
        for one in self._sockets:
            one.listen(socket.SOMAXCONN)
            asyncio.get_running_loop().add_reader(one, self._accept, one)

    def close(self) -> None:
        """Let nobody in any more; safe to call twice."""
        while self._sockets:
            one = self._sockets.pop()
            with suppress(RuntimeError):  # no loop runs any more
                asyncio.get_running_loop().remove_reader(one)
            one.close()

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                client, address = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionError):
                return
            except OSError as error:
                self._pause(listener, error)
                return
            client.setblocking(False)
            self._take(client, address)

    def _pause(self, listener: socket.socket, error: OSError) -> None:
        """Let nobody in for a while: the socket would call again at once."""
        now_s = time.monotonic()
        if self._told_s is None or now_s - self._told_s >= _TOLD_S:
            self._told_s = now_s
            _log.warning("%s cannot be let in now, and wait: %s", self._who, error.strerror)
        loop = asyncio.get_running_loop()
        loop.remove_reader(listener)
        loop.call_later(_PAUSE_S, self._resume, listener)

    def _resume(self, listener: socket.socket) -> None:
        if listener in self._sockets:
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)


def into_protocols(factory: Callable[[], asyncio.Protocol]) -> Take:
    """Return what lets an `Acceptor` make a protocol of asyncio for each client, such as one of aiohttp's."""
    tasks: set[asyncio.Task[None]] = set()

    async def connect(client: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(factory, client)
        except OSError:  # it has gone
            client.close()

    def take(client: socket.socket, _: Any) -> None:
        task = asyncio.get_running_loop().create_task(connect(client))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    return take
