"""A stranger sends half a body on each of many connections, to take every place in the queue of `skymem serve`."""

import json
import socket
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest

pytestmark = pytest.mark.model

ATTACKERS = 60
"""More than the queue and the batch have places."""


def test_half_sent_bodies_keep_nobody_out(open_server: Any) -> None:
    address = urlsplit(open_server.address)
    body = json.dumps({"model": "babbler", "prompt": "a", "max_tokens": 1}).encode()
    head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 8000000\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(ATTACKERS):
            half = stack.enter_context(socket.create_connection((address.hostname, address.port)))
            half.sendall(head.encode() + b'{"prompt": "')
        # All of them were taken in: what comes later on another connection is read later
        for _ in range(3):
            answer = open_server.request("/v1/completions", body)
            assert (answer.status, answer.json.get("error")) == (200, None)
