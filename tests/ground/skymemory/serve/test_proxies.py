"""The client's address behind proxies."""

import pytest

from skymemory.serve.proxies import TrustedProxies, network

PROXIES = TrustedProxies(map(network, ("10.0.0.0/8", "192.0.2.1", "2001:db8::/32")))


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),  # no proxy of ours: anybody may write a header
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["203.0.113.66, 198.51.100.1"], "198.51.100.1"),  # the client wrote the first itself
        ("10.0.0.1", ["203.0.113.66", "198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["198.51.100.1, 192.0.2.1 , 10.9.9.9"], "198.51.100.1"),
        ("10.0.0.1", ["10.0.0.2, 10.0.0.3"], "10.0.0.2"),
        ("10.0.0.1", ["198.51.100.1, unknown"], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1, unknown, 10.0.0.7"], "10.0.0.7"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1:4711"], "198.51.100.1"),
        ("10.0.0.1", ["[2001:db9::5]:4711"], "2001:db9::5"),
        ("10.0.0.1", ["2001:db9::5"], "2001:db9::5"),
        ("::ffff:10.0.0.1", ["::ffff:198.51.100.1"], "198.51.100.1"),
        ("2001:db8::1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["1.1.1.1," * 100_000 + ",".join(["10.0.0.2"] * 31)], "1.1.1.1"),
        ("", ["198.51.100.1"], ""),
    ],
)
def test_the_last_address_that_no_trusted_proxy_has_is_the_clients(peer: str, forwarded: list[str], client: str) -> None:
    assert PROXIES.client(peer, forwarded) == client


def test_without_proxies_the_header_is_not_read() -> None:
    assert TrustedProxies().client("10.0.0.1", ["198.51.100.1"]) == "10.0.0.1"


@pytest.mark.parametrize("text", ["", "proxy.example", "10.0.0.0/33", "10.0.0.1/8"])
def test_what_is_no_network_is_told(text: str) -> None:
    with pytest.raises(ValueError, match=r"allowed is an address, or a network such as 10\.0\.0\.0/8"):
        network(text)
