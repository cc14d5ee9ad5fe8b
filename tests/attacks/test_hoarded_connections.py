"""A stranger takes every connection that the gateway has, and says nothing."""

import socket
from collections.abc import Callable
from contextlib import ExitStack
from urllib.parse import urlsplit

import redis

from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess
from support.waiting import PATIENCE_S

PLACES = 1000


def test_hoarded_connections_keep_nobody_out(start_agent: Callable[..., AgentProcess], full_sky: LocalConstellation) -> None:
    agent = start_agent(full_sky, "--resp-port", "0", "--resp-password", "right")
    port = urlsplit(agent.addresses["redis"]).port
    assert port is not None
    with redis.Redis(port=port, password="right") as before, ExitStack() as stack:
        assert before.set("mine", "1")
        before_number = before.client_id()
        for _ in range(PLACES + 100):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE_S))
        with redis.Redis(port=port, password="right") as late:
            assert late.get("mine") == b"1"
        assert before.client_id() == before_number  # it has its connection still
