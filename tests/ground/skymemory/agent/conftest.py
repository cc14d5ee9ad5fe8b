"""Agents of tests: real processes, each with a folder of its own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from skymemory.testbed.local import LocalConstellation
from support.agents import AgentProcess, tell_up


@pytest.fixture
def start_agent(tmp_path: Path) -> Iterator[Callable[..., AgentProcess]]:
    """Start an agent: `start_agent(local, *flags)`; it knows that constellation as if `skymem up` had started it, None: none."""
    with ExitStack() as stack:

        def start(local: LocalConstellation | None = None, *flags: str) -> AgentProcess:
            if local is not None:
                tell_up(tmp_path, local)
            agent = stack.enter_context(AgentProcess(tmp_path, *flags))
            if local is not None:
                agent.wait_ready()
            return agent

        yield start
