"""The server's address, taken before a model is loaded."""

import socket

from skymemory.common.port_holder import why_not_bound


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that has the address, and takes no client yet.

    Raises:
        OSError: The address cannot be taken; `filename` names it.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise OSError(error.errno, error.strerror, f"{host}:{port}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise OSError(error.errno, why_not_bound(error, "tcp", host, port), f"{host}:{port}") from error
    return listener


def url(listener: socket.socket) -> str:
    """Return the address for clients."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if listener.family == socket.AF_INET6 else f"http://{host}:{port}"
