"""Addresses with ports."""

import pytest

from skymemory.common.addresses import address_text, local_host


@pytest.mark.parametrize(
    ("host", "text"),
    [
        ("127.0.0.1", "127.0.0.1:80"),
        ("localhost", "localhost:80"),
        ("::1", "[::1]:80"),
        ("fe80::1%eth0", "[fe80::1%eth0]:80"),
        ("", ":80"),
    ],
)
def test_an_ipv6_address_has_brackets(host: str, text: str) -> None:
    assert address_text(host, 80) == text


def test_a_server_at_all_addresses_is_reached_at_loopback() -> None:
    assert [local_host(host) for host in ("0.0.0.0", "::", "192.0.2.1")] == ["127.0.0.1", "::1", "192.0.2.1"]
