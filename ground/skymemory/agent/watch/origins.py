"""Check of who asks: pages of this agent and programs may, but no page of somebody else that a browser here has open.

The agent has no password. It listens on loopback, and a browser on this machine runs what strangers' pages tell it. Two ways lead
from such a page to a server on loopback: a WebSocket, which browsers do not keep to one origin; and a name of the stranger's that
he lets point to 127.0.0.1 (DNS rebinding), so that his page and the agent are one origin. `Origin` tells the first, `Host` the
second.
"""

import socket
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # The browser always asks for new files; their marks (ETag) keep that cheap.
    "Cache-Control": "no-cache",
}
"""Headers of every answer."""


def refusal(request: web.Request) -> str | None:
    """Return why a request is refused; None: it is answered."""
    why = strange_name(request)
    if why is not None:
        return why
    host, origin = request.headers.get("Host", ""), request.headers.get("Origin")
    if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
        return f"Origin is {origin[:80]!r}; allowed is the page of this agent, {request.scheme}://{host}"
    return None


def strange_name(request: web.Request) -> str | None:
    """Return the fault of the name that a request came by; None: no stranger lets it point here.

    Without a name (HTTP/1.0, such as HAProxy's health checks) it came from no browser: they always send one.
    """
    host = request.headers.get("Host")
    if host is None or _is_ours(_name(f"//{host}")):
        return None
    return f"Host is {host[:80]!r}; allowed are addresses such as 127.0.0.1, localhost, and this machine's name"


def strange_name_on_loopback(request: web.Request) -> str | None:
    """Do the same for monitoring, which asks over the network by names unknown to this machine, such as a service's.

    On loopback are programs of this machine, which have no use for such a name, and its browsers.
    """
    here = request.get_extra_info("sockname")
    is_loopback = here is not None and ip_address(here[0].partition("%")[0]).is_loopback
    return strange_name(request) if is_loopback else None


def _name(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_ours(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost") or name == socket.gethostname().lower():
        return True
    try:
        ip_address(name)  # an address cannot point elsewhere
    except ValueError:
        return False
    return True
