"""Connections of a real server: at the limit of descriptors, and behind proxies."""

import resource
import socket
from contextlib import ExitStack

import pytest

from support.served import Server
from support.waiting import wait_until

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def behind_proxy(start_servers, babbler) -> Server:
    """A server whose clients all come from a proxy that it trusts."""
    return start_servers(babbler, "--trusted-proxy", "127.0.0.1")


def test_at_the_limit_of_descriptors_it_pauses_and_tells_it_once(behind_proxy) -> None:
    server = behind_proxy
    host, port = server.address.removeprefix("http://").split(":")
    before = len(server.log.read_text().splitlines())
    soft, hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (40, hard))
    with ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(socket.create_connection((host, int(port))))
        wait_until(lambda: "cannot be let in now" in server.log.read_text(), "it is told")
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (soft, hard))
    wait_until(lambda: server.request("/health").status == 200, "clients come in again")
    lines = server.log.read_text().splitlines()[before:]
    assert len([line for line in lines if "HTTP clients cannot be let in now" in line]) == 1
    assert len(lines) < 5


@pytest.mark.parametrize(("which", "others"), [("server", False), ("behind_proxy", True)])
def test_a_trusted_proxy_may_have_more_connections_than_an_address(request, which, others) -> None:
    server = request.getfixturevalue(which)
    host, port = server.address.removeprefix("http://").split(":")
    with ExitStack() as stack:
        first = stack.enter_context(socket.create_connection((host, int(port))))
        first.setblocking(False)
        for _ in range(140):  # an address may have 128
            stack.enter_context(socket.create_connection((host, int(port))))
        assert server.request("/health").status == 200

        def is_open() -> bool:
            try:
                return first.recv(1) != b""
            except BlockingIOError:
                return True
            except ConnectionError:
                return False

        assert is_open() == others
