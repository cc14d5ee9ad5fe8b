"""Misbehaviour of Redis clients and browsers towards an agent."""

import base64
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

from support.agents import AgentProcess
from support.waiting import PATIENCE_S

Event = Callable[[AgentProcess], None]


def _connect(agent: AgentProcess, name: str) -> socket.socket:
    address = urlsplit(agent.addresses[name])
    link = socket.create_connection((address.hostname, address.port or 0), PATIENCE_S)
    link.settimeout(PATIENCE_S)
    return link


def _say(agent: AgentProcess, name: str, data: bytes, *, hear: bool = True) -> bytes:
    """Send, read the first words of an answer, hang up."""
    with _connect(agent, name) as link, suppress(ConnectionError):
        link.sendall(data)
        return link.recv(1 << 16) if hear else b""
    return b""


def unknown_command(agent: AgentProcess) -> None:
    assert _say(agent, "redis", b"*2\r\n$5\r\nDANCE\r\n$1\r\nx\r\n").startswith(b"-ERR")


def no_command(agent: AgentProcess) -> None:
    assert _say(agent, "redis", b"*1\r\n$-7\r\n\xff\xfe\r\n").startswith(b"-ERR")


def oversize_value(agent: AgentProcess) -> None:
    assert _say(agent, "redis", b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870913\r\n").startswith(b"-ERR")


def half_a_command(agent: AgentProcess) -> None:
    _say(agent, "redis", b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\nhalf", hear=False)


def hangs_up_before_the_answer(agent: AgentProcess) -> None:
    _say(agent, "redis", b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n" * 20, hear=False)


def _websocket(agent: AgentProcess, frames: bytes) -> None:
    with _connect(agent, "http") as link, suppress(ConnectionError):
        host = urlsplit(agent.addresses["http"]).netloc
        key = base64.b64encode(os.urandom(16)).decode()
        link.sendall(
            f"GET /api/live HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
        )
        assert link.recv(1 << 16).startswith(b"HTTP/1.1 101")
        link.sendall(frames)


def nonsense_text(agent: AgentProcess) -> None:
    _websocket(agent, b"\x81\x85\0\0\0\0dance")


def nonsense_frame(agent: AgentProcess) -> None:
    _websocket(agent, os.urandom(40))


def half_a_request(agent: AgentProcess) -> None:
    _say(agent, "http", b"GET /metr", hear=False)


def nonsense_request(agent: AgentProcess) -> None:
    _say(agent, "http", b"\xff\xfe\r\n\r\n")


EVENTS: list[tuple[Event, int]] = [
    (unknown_command, 50),
    (no_command, 50),
    (oversize_value, 50),
    (half_a_command, 50),
    (hangs_up_before_the_answer, 50),
    (nonsense_text, 50),
    (nonsense_frame, 50),
    (half_a_request, 50),
    (nonsense_request, 50),
]
"""Events, and how often each happens; they need an agent with `--resp-port 0`."""
