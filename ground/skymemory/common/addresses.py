"""Addresses as people and programs write them."""

from ipaddress import IPv6Address
from typing import Final

_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # nothing is opened here


def address_text(host: str, port: int) -> str:
    """Return a host and a port in one: an IPv6 address has brackets, or its last part would look like the port."""
    try:
        IPv6Address(host)
    except ValueError:
        return f"{host}:{port}"
    return f"[{host}]:{port}"


def local_host(host: str) -> str:
    """Return the address under which this machine reaches a server that listens on this one."""
    return _ANY.get(host, host)
