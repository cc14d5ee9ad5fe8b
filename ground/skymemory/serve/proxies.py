"""`TrustedProxies`: the client's address behind proxies, as the header X-Forwarded-For tells it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

HEADER: Final = "X-Forwarded-For"
_ENTRIES_MAX: Final = 32
"""Most entries of the header that are looked at, from the right."""

Network: TypeAlias = IPv4Network | IPv6Network


def network(text: str) -> Network:
    """Return the network of an address, or of one with a prefix, such as 10.0.0.0/8.

    Raises:
        ValueError: It is neither; the message says what is allowed.
    """
    try:
        return ip_network(text)
    except ValueError as error:
        raise ValueError(f"{text!r}: allowed is an address, or a network such as 10.0.0.0/8 ({error})") from error


class TrustedProxies:
    """Networks whose word about their clients counts. Anybody can send the header, so without any it is not read."""

    def __init__(self, networks: Iterable[Network] = ()) -> None:
        self._networks = tuple(networks)

    def trusts(self, address: str) -> bool:
        """Return True if an address is one of the proxies'."""
        ip = _ip(address)
        return ip is not None and any(ip in one for one in self._networks)

    def client(self, peer: str, forwarded: Sequence[str]) -> str:
        """Return the address of the client: the last one that no trusted proxy has.

        Args:
            peer: Address at the other end of the connection.
            forwarded: Values of the header, in their order. Each proxy adds the address that it was asked by to the end.
        """
        client = peer
        entries = [entry for value in forwarded for entry in value.rsplit(",", _ENTRIES_MAX)]
        for entry in reversed(entries[-_ENTRIES_MAX:]):
            if not self.trusts(client) or (address := _ip(_without_port(entry.strip()))) is None:
                break
            client = str(address)
        return client


def _without_port(entry: str) -> str:
    """Return an entry without the port that some proxies add: 192.0.2.1:80, [2001:db8::1]:80."""
    if entry.startswith("["):
        return entry[1:].partition("]")[0]
    return entry.partition(":")[0] if entry.count(":") == 1 else entry


def _ip(text: str) -> IPv4Address | IPv6Address | None:
    try:
        ip = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return ip.ipv4_mapped or ip if isinstance(ip, IPv6Address) else ip
