"""A stranger opens many connections to `skymem serve`, and sends heads that never end, or nothing at all."""

import json
import socket
from contextlib import ExitStack, suppress
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.waiting import wait_until

pytestmark = pytest.mark.model


def test_heads_that_never_end_are_ended(open_server: Any) -> None:
    address = urlsplit(open_server.address)
    with ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection((address.hostname, address.port))) for _ in range(20)]
        left = list(slow)
        for one in slow:
            one.setblocking(False)
            one.sendall(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n")

        def all_ended() -> bool:
            for one in list(left):
                try:
                    one.sendall(b"X-Slow: 1\r\n")  # always a bit more, as Slowloris does
                    is_over = one.recv(100) == b""
                except BlockingIOError:
                    is_over = False
                except OSError:
                    is_over = True
                if is_over:
                    left.remove(one)
            return not left

        wait_until(all_ended, lambda: f"{len(left)} heads are still read", patience_s=40.0, pause_s=0.5)


def test_connections_that_do_nothing_make_room(open_server: Any) -> None:
    address = urlsplit(open_server.address)
    body = json.dumps({"model": "babbler", "prompt": "a", "max_tokens": 1}).encode()
    with ExitStack() as stack:
        hoarded = [stack.enter_context(socket.create_connection((address.hostname, address.port))) for _ in range(900)]
        assert open_server.request("/v1/completions", body).status == 200
        hoarded[0].settimeout(40.0)
        with suppress(ConnectionResetError):
            assert hoarded[0].recv(1) == b""  # the first one had to go
