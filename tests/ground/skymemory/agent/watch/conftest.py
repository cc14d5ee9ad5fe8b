"""The page, served over a sky that is only a store."""

import threading
from collections.abc import Iterator

import pytest

from skymemory.agent.watch import sampler as sampling
from support.pages import Serve, served


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames follow each other at once."""
    monkeypatch.setattr(sampling, "WATCHED_S", 0.02)
    monkeypatch.setattr(sampling, "ALONE_S", 0.02)


@pytest.fixture
def serve(quick: None) -> Iterator[Serve]:
    """`served`; when the test is over, no thread of the page is left."""
    yield served
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("skymem-page")]
