"""Gateways of tests: real agents, each in a process of its own, and clients that others wrote."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess, tell_up


def port_of(agent: AgentProcess, served: str = "redis") -> int:
    """Where it serves Redis clients, or `lmcache`."""
    return int(agent.addresses[served].rpartition(":")[2])


@pytest.fixture(scope="module")
def agent(full_sky: LocalConstellation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    """One for all tests of a module, over the full sky."""
    folder = tmp_path_factory.mktemp("agent")
    tell_up(folder, full_sky)
    with AgentProcess(folder, "--resp-port", "0") as one:
        one.wait_ready()
        yield one


@pytest.fixture(scope="module")
def port(agent: AgentProcess) -> int:
    return port_of(agent)


@pytest.fixture
def connect(port: int) -> Iterator[Callable[..., Any]]:
    """`connect(**options)`: a redis-py client of the gateway."""
    clients = []

    def one(**options: Any) -> Any:
        clients.append(redis.Redis(port=options.pop("port", port), **options))
        return clients[-1]

    yield one
    for client in clients:
        client.close()
