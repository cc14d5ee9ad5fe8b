"""The page, served over a sky that is only a store."""

import threading
from collections.abc import Iterator

import pytest

from support.pages import Serve, served


@pytest.fixture
def serve() -> Iterator[Serve]:
    """`served`; when the test is over, no thread of the page is left."""
    yield served
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("skymem-page")]
