"""Constellations that tests share: real satellites, real sockets, at ports of their own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from skymemory.config import Constellation
from skymemory.testbed.local import LocalConstellation, free_port


def at_free_port(constellation: Constellation) -> Constellation:
    """The same constellation at a UDP port that nobody uses."""
    return constellation.replace(network={"port": free_port(constellation)})


@pytest.fixture(scope="session")
def full_sky() -> Iterator[LocalConstellation]:
    """The paper's 5 planes x 19 slots, once for the whole session. Use keys of your own; do not kill its satellites."""
    with LocalConstellation(at_free_port(Constellation())) as local:
        yield local


@pytest.fixture
def start_sky() -> Iterator[Callable[..., LocalConstellation]]:
    """Start a constellation for one test: `start_sky(constellation={"planes": 3, "slots": 3}, ...)`, sections by TOML name.

    The default is 3 planes x 5 slots with nine servers around [2, 3].
    """
    with ExitStack() as stack:

        def start(**sections: dict[str, object]) -> LocalConstellation:
            grid = {"planes": 3, "slots": 5, **sections.pop("constellation", {})}
            cache = {"servers": 9, "centre": [2, 3], **sections.pop("cache", {})}
            base = Constellation.model_validate({"constellation": grid, "cache": cache, **sections}, strict=False)
            return stack.enter_context(LocalConstellation(at_free_port(base)))

        yield start
