"""Programs that are attacked: real processes, as operators start them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess, tell_up
from support.guarded_sky import GuardedSky, guarded_sky

if TYPE_CHECKING:
    from support.served import Server

StartAgent = Callable[..., AgentProcess]
StartServer = Callable[..., "Server"]


@pytest.fixture
def start_agent(tmp_path: Path) -> Iterator[StartAgent]:
    """Start an agent over a constellation: `start_agent(local, *flags)`."""
    with ExitStack() as stack:

        def start(local: LocalConstellation, *flags: str) -> AgentProcess:
            tell_up(tmp_path, local)
            agent = stack.enter_context(AgentProcess(tmp_path, *flags))
            agent.wait_ready()
            return agent

        yield start


@pytest.fixture(scope="session")
def babbler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model that never ends by itself."""
    from support.served import save_babbler

    return save_babbler(tmp_path_factory.mktemp("babbler"))


@pytest.fixture(scope="session")
def small_sky() -> Iterator[LocalConstellation]:
    """Satellites for blocks of 16 tokens."""
    from support.served import small_sky

    with small_sky() as local:
        yield local


@pytest.fixture(scope="session")
def open_server(tmp_path_factory: pytest.TempPathFactory, babbler: Path, small_sky: LocalConstellation) -> Iterator[Server]:
    """A server of the babbler without keys, for all attacks: each closes its own connections. Use prompts of your own."""
    from support.served import start_server

    server = start_server(tmp_path_factory.mktemp("server"), babbler, "--served-model-name", "babbler", up=small_sky)
    yield server
    server.process.kill()
    server.process.wait()


@pytest.fixture
def start_server(tmp_path: Path, babbler: Path) -> Iterator[StartServer]:
    """Start a server of the babbler: `start_server(*options, up=constellation)`."""
    from support.served import start_server

    with ExitStack() as stack:

        def start(*words: str, up: LocalConstellation | None = None) -> Server:
            server = start_server(tmp_path, babbler, "--served-model-name", "babbler", *words, up=up)
            stack.callback(server.process.wait)
            stack.callback(server.process.kill)
            return server

        yield start


@pytest.fixture
def start_guarded(start_sky: Callable[..., LocalConstellation], tmp_path: Path) -> Callable[..., GuardedSky]:
    """Start satellites with keys, or without: `start_guarded(is_keyed=True, satellite={"store_mib": 1})`."""
    return partial(guarded_sky, start_sky, tmp_path / "keys")
