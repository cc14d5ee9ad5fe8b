"""Strangers' pages are not answered."""

import socket
from unittest.mock import Mock

import pytest
from aiohttp.test_utils import make_mocked_request

from skymemory.agent.watch.origins import refusal, strange_name_on_loopback


def asked(host: str, origin: str | None = None) -> str | None:
    headers = {"Host": host, **({} if origin is None else {"Origin": origin})}
    return refusal(make_mocked_request("GET", "/", headers=headers))


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:8090", "localhost:8090", "LOCALHOST", "[::1]:8090", "192.168.1.7:8090", "a.localhost:1", socket.gethostname()],
)
def test_addresses_and_names_of_this_machine(host: str) -> None:
    assert asked(host) is None
    assert asked(host, f"http://{host}") is None


@pytest.mark.parametrize(
    "host", ["", "evil.example", "evil.example:8090", "127.0.0.1.evil.example", "localhost.evil", "[", ":8090"]
)
def test_names_that_a_stranger_may_point_here(host: str) -> None:
    assert "allowed are addresses such as 127.0.0.1" in (asked(host) or "")


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "", "http://127.0.0.1:8091", "http://127.0.0.1:8090.evil.example", "file://"]
)
def test_pages_of_others(origin: str) -> None:
    why = asked("127.0.0.1:8090", origin) or ""
    assert why.startswith("Origin is ")
    assert why.endswith("allowed is the page of this agent, http://127.0.0.1:8090")


@pytest.mark.parametrize(
    ("address", "strange_host_is_refused"),
    [
        (("127.0.0.1", 8090), True),
        (("::1", 8090, 0, 0), True),
        (("192.168.1.7", 8090), False),
        (("fe80::1%eth0", 8090, 0, 2), False),
    ],
)
def test_monitoring_may_come_over_the_network_by_any_name(address: tuple[object, ...], strange_host_is_refused: bool) -> None:
    transport = Mock()
    transport.get_extra_info = {"sockname": address}.get
    for host, is_strange in (("ground-1.example:8090", True), ("agent", True), ("10.0.0.7:8090", False), ("localhost", False)):
        request = make_mocked_request("GET", "/metrics", headers={"Host": host}, transport=transport)
        assert (strange_name_on_loopback(request) is not None) == (is_strange and strange_host_is_refused)
